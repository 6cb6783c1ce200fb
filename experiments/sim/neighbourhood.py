"""What `toast.viewer.neighbourhood` does, in virtual time: announce, and let the policy choose.

The real one asks the policy once a second. Between two events all playheads move alike, so the
answer stays the same: here it is asked at each event, and now and then for what creeps up.
"""

import math
from typing import TYPE_CHECKING

from experiments.sim.peer import Address, Peer
from experiments.sim.tracker import Member
from toast.policy.neighbours import Candidate, company, is_worth_calling
from toast.policy.patience import Patience, Showing

if TYPE_CHECKING:
    from experiments.sim.viewer import SimViewer

__all__ = ["SimNeighbourhood"]

_WATCH_SECONDS = 1.0
_SOON_SECONDS = 0.05
_USEFUL_RATE = 1.0  # bytes/second


class SimNeighbourhood:
    """The swarm around one viewer.

    Args:
        viewer: whose.
    """

    def __init__(self, viewer: "SimViewer") -> None:
        self._viewer = viewer
        self._world = viewer.world
        self._settings = viewer.world.settings
        self._known: dict[int, tuple[Member, float]] = {}
        self._tried: dict[int, float] = {}
        self._patience = Patience()
        self._hope_until = -math.inf
        self._announced_at = -math.inf
        self._announce_at = math.inf
        self._choose_at = math.inf
        self._watched_at = -math.inf
        self._leads: list[tuple[float, float]] = []
        self.together = 1

    # -- announcing ------------------------------------------------------------------------------

    def join(self) -> None:
        """Tell the tracker."""
        self._hope_until = self._world.events.now + self._settings.patience_seconds
        self._announce_at = self._world.events.now
        self._announce(self._announce_at)
        if self._world.peer_exchange:
            self._exchange_later()

    def leave(self) -> None:
        """Say goodbye."""
        self._announce_at = self._choose_at = math.inf
        self._world.tracker.stopped(self._viewer.number)

    def _announce(self, time: float) -> None:
        if time != self._announce_at or not self._viewer.present:
            return
        viewer, events = self._viewer, self._world.events
        self._announced_at = events.now
        position = self._own_position(events.now)
        events.at(events.now + viewer.latency, self._is_heard, (position, viewer.complete))
        self._next_announce(self._settings.announce_seconds)

    def _own_position(self, now: float) -> float:
        """Where the playhead was when it was looked at last."""
        settings, viewer = self._settings, self._viewer
        most = settings.stale_complete_seconds if viewer.complete else settings.stale_seconds
        most = min(most, now - viewer.who.arrives_seconds)
        return viewer.playing.position(now - float(self._world.rng.uniform(0.0, most)))

    def _next_announce(self, delay: float) -> None:
        self._announce_at = self._world.events.now + delay
        self._world.events.at(self._announce_at, self._announce, self._announce_at)

    def _is_heard(self, said: tuple[float, bool]) -> None:
        viewer, events = self._viewer, self._world.events
        if viewer.present:
            position, complete = said
            member = Member(viewer.number, position, events.now, complete)
            named = self._world.tracker.announce(member)
            wait = self._world.server_latency + self._settings.server_seconds
            events.at(events.now + wait, self._learn, (named, events.now))

    def _learn(self, answer: tuple[list[Member], float]) -> None:
        if self._viewer.present:
            named, _ = answer
            now = self._world.events.now
            self._known.update({member.number: (member, now) for member in named})
            self._choose(now)

    # -- choosing --------------------------------------------------------------------------------

    def changed(self, peer: Peer | None = None) -> None:
        """Someone came or went: choose again."""
        if peer is not None and not peer.present:
            self._tried[peer.number] = self._world.events.now - self._settings.connect_seconds
        self._choose_soon(_SOON_SECONDS)

    def _choose_soon(self, delay: float) -> None:
        time = self._world.events.now + delay
        if time < self._choose_at:
            self._choose_at = time
            self._world.events.at(time, self._choose_now, time)

    def _choose_now(self, time: float) -> None:
        if time == self._choose_at and self._viewer.present:
            self._choose(self._world.events.now)

    def _choose(self, now: float) -> None:
        viewer, settings = self._viewer, self._settings
        self._choose_at = math.inf
        self._forget(now)
        self.watch(now, always=True)
        connected = viewer.connected
        waiting = {
            number: now - since
            for number, since in self._tried.items()
            if now - since < settings.connect_seconds and number not in connected
        }
        connecting = {number for number, age in waiting.items() if age < settings.eager_seconds}
        out = self._out_of_question(now) | (waiting.keys() - connecting)
        peers = self._world.peers
        known = (
            Candidate(
                address=peers[number].address,
                position=_position(member, now),
                complete=member.complete,
                operator=member.operator,
            )
            for number, (member, _) in self._known.items()
            if number not in out
        )
        candidates = [each for each in known if is_worth_calling(each, complete=viewer.complete)]
        useful = self._useful(now)
        position = self._own_position(now)
        self.together = 1 + len(company(position, candidates))
        chosen = self._world.neighbours.choose(
            position,
            candidates,
            {peers[number].address for number in (*connected, *connecting)},
            useful,
            viewer.need_seconds,
            self._world.rng,
        )
        for address in chosen:
            self._call(address, now)
        latest = max((self._tried[n] for n in (*waiting, *_numbers(chosen))), default=0.0)
        self._hope_until = latest + settings.connect_seconds if latest else now
        self._note_leads()
        if not connected and not viewer.complete:
            lonely = self._announced_at + settings.lonely_seconds
            if lonely < self._announce_at:
                self._next_announce(max(0.0, lonely - now))
        served = any(rate > _USEFUL_RATE for rate in useful.values())
        again = settings.rest_seconds if served else settings.choose_seconds
        if waiting or chosen:
            oldest = max(waiting.values(), default=0.0)
            again = min(again, settings.connect_seconds - oldest + _SOON_SECONDS)
        if not viewer.complete or waiting:
            self._choose_soon(again)

    def _useful(self, now: float) -> dict[Address, float]:
        """Bytes/second that neighbours sent lately."""
        sources = self._viewer.sources.values()
        return {flow.source.address: max(flow.lately(now), flow.rate) for flow in sources}

    def _call(self, address: Address, now: float) -> None:
        """Connect: at once when joining, else when libtorrent next does so."""
        viewer, world = self._viewer, self._world
        number = address[1]
        self._tried[number] = now
        other = world.peers[number]
        joining = now - viewer.who.arrives_seconds < self._settings.patience_seconds
        wait = 0.0 if joining else float(world.rng.uniform(0.0, self._settings.dial_seconds))
        # To connect is one round trip, and to greet another one.
        wait += 2 * (viewer.latency + other.latency)
        world.events.at(now + wait, self._is_called, other)

    def _is_called(self, other: Peer) -> None:
        viewer = self._viewer
        if not viewer.present or other.number in viewer.connected:
            return
        if not self._world.connect(viewer, other):
            # It hung up, or there is nobody: that is known at once, and not after a while.
            gone = self._world.events.now - self._settings.connect_seconds
            self._tried[other.number] = gone
        self.changed()

    def _out_of_question(self, now: float) -> set[int]:
        """Whom the policy must not choose: the silent, the weak, and who is not there."""
        settings, connected = self._settings, self._viewer.connected
        out = {
            number
            for number, since in self._tried.items()
            if settings.connect_seconds <= now - since < settings.retry_seconds
            and number not in connected
        }
        out |= {number for _, number in self._patience.weak}
        peers, enough = self._world.peers, self._patience.is_enough
        return out | {
            number
            for number in self._known
            if (enough and number not in connected)
            or self._patience.is_shunned(peers[number].address, now)
        }

    def _forget(self, now: float) -> None:
        known_seconds = self._settings.known_seconds
        self._known = {
            number: entry for number, entry in self._known.items() if now - entry[1] < known_seconds
        }
        self._tried = {n: since for n, since in self._tried.items() if n in self._known}

    # -- judging ---------------------------------------------------------------------------------

    def watch(self, now: float, *, always: bool = False) -> None:
        """Hang up on those who were asked for long and have said nothing."""
        if not always and now - self._watched_at < _WATCH_SECONDS:
            return
        self._watched_at = now
        sources = self._viewer.sources.values()
        showing = [
            (
                flow.source.address,
                Showing(
                    flow.received_bytes,
                    asked=flow.queued_bytes > 0,
                    choking=flow.choked,
                    called=flow.source.number in self._tried,
                ),
            )
            for flow in sources
        ]
        silent = self._patience.observe(now, showing, self._world.film_rate)
        for address in sorted(silent):
            self._world.disconnect(self._viewer, self._world.peers[address[1]])

    def _note_leads(self) -> None:
        reliable = self._viewer.connected.keys() - {number for _, number in self._patience.weak}
        self._leads = [
            (member.position, member.heard_at)
            for number, (member, _) in self._known.items()
            if number in reliable and member.position is not None and not member.operator
        ]

    def lead_seconds(self, now: float, own_position: float) -> float:
        """How far the foremost neighbour watches ahead of us, as far as is known."""
        if now < self._hope_until:
            return 0.0
        leads = (position + now - heard - own_position for position, heard in self._leads)
        return max((lead for lead in leads if lead > 0), default=math.inf)

    # -- peer exchange ---------------------------------------------------------------------------

    def _exchange_later(self) -> None:
        events = self._world.events
        events.at(events.now + self._settings.exchange_seconds, self._exchange)

    def _exchange(self, _: object) -> None:
        """Neighbours name theirs, and libtorrent connects to everyone that it knows of."""
        viewer = self._viewer
        if not viewer.present:
            return
        named = {n: p for peer in viewer.connected.values() for n, p in peer.connected.items()}
        for number, peer in sorted(named.items()):
            if number not in viewer.connected and peer is not viewer:
                self._world.connect(viewer, peer)
        self._exchange_later()


def _position(member: Member, now: float) -> float | None:
    """Where a playhead is now: it has gone on since it was told of."""
    return None if member.position is None else member.position + (now - member.heard_at)


def _numbers(addresses: tuple[Address, ...]) -> list[int]:
    return [number for _, number in addresses]
