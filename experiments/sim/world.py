"""All that viewers share: time, tracker, server, the operator's seed; and a run from end to end."""

import math

import numpy as np

from experiments.sim.cut import Cut
from experiments.sim.events import Events
from experiments.sim.flow import Flow
from experiments.sim.links import Uplink
from experiments.sim.origin import Asked
from experiments.sim.peer import Peer
from experiments.sim.settings import SimSettings
from experiments.sim.tracker import Member, SimTracker
from experiments.sim.viewer import SimViewer
from experiments.swarms.engine import Progress, Say
from experiments.swarms.result import LoadSample
from experiments.swarms.scenario import Scenario
from toast.common.timemap import TimeMap
from toast.policy.buffer import Buffer, create_buffer, pieces_within
from toast.policy.lookahead import create_horizon
from toast.policy.neighbours import create_neighbours
from toast.policy.pickers import create_picker
from toast.policy.viewing import ViewingPolicy, ViewingSettings

__all__ = ["World"]

_SAMPLES = 200
_IN_ORDER = frozenset({"in-order", "hybrid"})  # the others' plans rise by chance alone
_BACK_SECONDS = 30.0  # what viewers keep for a step back


class World:
    """A scenario being carried out.

    Args:
        scenario: what is carried out.
        timemap: of its film; None: its bit rate is constant.
        settings: of all that is not ours.
        say: is told how far it is.

    Raises:
        PolicyError: the buffer is too small for the film's pieces.
    """

    def __init__(
        self,
        scenario: Scenario,
        *,
        timemap: TimeMap | None = None,
        settings: SimSettings | None = None,
        say: Say = lambda _: None,
    ) -> None:
        film = scenario.film
        geometry = film.geometry
        self.settings = settings or SimSettings.fitting(scenario.viewers, geometry.pieces)
        self.events = Events()
        self.cut = Cut(
            timemap or TimeMap.constant(film.film_bytes, film.duration_seconds), geometry
        )
        self.film_rate = film.film_bytes / self.cut.timemap.duration
        self.behaviour = scenario.behaviour
        self.choking = scenario.choking
        self.parallel = ViewingSettings().hand_over.parallel
        self.may_rank_in_order = scenario.picker in _IN_ORDER
        self.upload_slots = scenario.upload_slots
        self.peer_exchange = scenario.peer_exchange
        self.server_latency = scenario.server_latency_seconds
        self.neighbours = create_neighbours(scenario.neighbours, **scenario.neighbours_options)
        self.is_unlimited = scenario.buffer_fraction is None
        self.rng = np.random.default_rng([scenario.random_seed, 0x51A])
        self.tracker = SimTracker(self.settings.answer_peers, self.rng)
        rate = math.inf if scenario.origin_rate_bps is None else scenario.origin_rate_bps / 8
        self.origin = Uplink(rate, self.events)
        crowd = scenario.crowd()
        self.told = np.zeros((len(crowd) + 1, geometry.pieces), dtype=np.bool_)
        self.scratch = np.empty(geometry.pieces)
        self._connections = scenario.connections
        self._scenario = scenario
        self._say = say
        self._buffer_pieces = pieces_within(
            film.film_bytes, film.piece_bytes, most_bytes=None, fraction=scenario.buffer_fraction
        )
        self.viewers = [
            SimViewer(
                self,
                who,
                self._make_policy(
                    np.random.default_rng([scenario.random_seed, 0x70A57, who.number])
                ),
                scenario.request_queue_seconds,
            )
            for who in crowd
        ]
        self.peers: list[Peer] = [*self.viewers]
        self.load: list[LoadSample] = []
        self.asked: list[Asked] | None = None
        """What the server was asked for, where that is to be known."""
        self._arrived = 0
        self._to_see = len(crowd)
        self.seed = self._make_seed(scenario.seed_upload_bps / 8)

    def _make_policy(self, rng: np.random.Generator) -> ViewingPolicy:
        scenario = self._scenario
        return ViewingPolicy(
            self.cut.geometry,
            self.cut.timemap.duration,
            picker=create_picker(scenario.picker, **scenario.picker_options),
            horizon=create_horizon(scenario.horizon, **scenario.horizon_options),
            buffer=self._make_buffer(),
            settings=ViewingSettings(),
            rng=rng,
        )

    def _make_buffer(self) -> Buffer:
        if self._buffer_pieces is None:
            return create_buffer("unlimited")
        return create_buffer("limited", pieces=self._buffer_pieces, back_seconds=_BACK_SECONDS)

    def _make_seed(self, rate: float) -> Peer | None:
        if rate <= 0:
            return None
        seed = Peer(
            self,
            len(self.viewers),
            upload_rate=rate,
            download_rate=None,
            latency=self.server_latency,
            operator=True,
        )
        seed.told[:] = True
        seed.present = True
        self.peers.append(seed)
        self.tracker.announce(Member(seed.number, None, 0.0, complete=True, operator=True))
        return seed

    # -- connections -----------------------------------------------------------------------------

    def connect(self, caller: SimViewer, called: Peer) -> bool:
        """Make a connection; False if nobody is there, or one of them has no room."""
        if not called.present or not caller.present:
            return False
        limit = self._connections
        if len(caller.connected) >= limit or len(called.connected) >= limit:
            return False
        if called.number not in caller.connected:
            caller.connected[called.number] = called
            called.connected[caller.number] = caller
            self._offer(called, caller)
            if isinstance(called, SimViewer):
                self._offer(caller, called)
                called.neighbourhood.changed()
        return True

    def _offer(self, source: Peer, sink: SimViewer) -> None:
        flow = Flow(source, sink, self.cut)
        source.flows[sink.number] = flow
        sink.connected_source(flow)
        if not sink.complete:
            source.choker.wanted(flow)

    def disconnect(self, one: Peer, other: Peer) -> None:
        """End a connection."""
        if other.number not in one.connected:
            return
        for peer, neighbour in ((one, other), (other, one)):
            peer.neighbour_left(neighbour)

    # -- the run ---------------------------------------------------------------------------------

    def arrived(self, viewer: SimViewer) -> None:
        """A viewer has come."""
        self._arrived = viewer.number + 1

    def has_seen(self, viewer: SimViewer) -> None:  # noqa: ARG002 - whoever it is
        """A viewer has seen the film."""
        self._to_see -= 1

    def run(self) -> float:
        """Carry it out. Returns when it ended, seconds."""
        scenario, events = self._scenario, self.events
        for viewer in self.viewers:
            who = viewer.who
            events.at(who.arrives_seconds, viewer.arrive)
            if who.seek is not None:
                after, to = who.seek
                events.at(who.arrives_seconds + after, viewer.seek, to)
            if who.leaves_seconds is not None:
                events.at(who.arrives_seconds + who.leaves_seconds, viewer.go)
        longest = scenario.end_seconds * self.settings.patience_factor
        step = scenario.end_seconds / _SAMPLES
        time = 0.0
        while self._to_see and time < longest:
            time += step
            events.run(time)
            self._note_load()
        end = max(v.ended_at if v.ended_at is not None else events.now for v in self.viewers)
        if scenario.run_seconds is not None and scenario.run_seconds > end:
            end = scenario.run_seconds
            while events.now < end:
                events.run(min(end, events.now + step))
                self._note_load()
        return end

    @property
    def notes(self) -> list[str]:
        """What a reader of the figures must know."""
        notes = ["headers, the tracker's answers and protocol messages are not counted"]
        if self._to_see:
            notes.append(f"{self._to_see} viewers had not seen the film when the run was ended")
        return notes

    @property
    def http_bytes(self) -> int:
        """Sent by the VoD server so far."""
        self.origin.advance()
        return round(self.origin.sent_bytes)

    @property
    def seed_bytes(self) -> int:
        """Sent by the operator's seed so far."""
        if self.seed is None:
            return 0
        self.seed.uplink.advance()
        return round(self.seed.uplink.sent_bytes)

    def _note_load(self) -> None:
        now = self.events.now
        watching = sum(viewer.is_watching and not viewer.playing.ended for viewer in self.viewers)
        sample = LoadSample(now, self.http_bytes, self.seed_bytes, watching)
        self.load.append(sample)
        end = max(self._scenario.end_seconds, now)
        self._say(Progress(now, end, self._arrived, watching, self._offload(now)))

    def _offload(self, now: float) -> float | None:
        """So far: of what was played."""
        played = sum(v.playing.position(now) for v in self.viewers[: self._arrived])
        if played <= 0:
            return None
        return 1 - (self.http_bytes + self.seed_bytes) / (played * self.film_rate)
