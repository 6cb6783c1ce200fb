"""One viewer: the facts that it hands to the policies, and what becomes of their decisions.

What the viewer in `toast.viewer` does around the policies, without files and sockets.
"""

import math
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from experiments.bound import Behaviour
from experiments.sim.cut import Part, lowest
from experiments.sim.flow import Flow
from experiments.sim.neighbourhood import SimNeighbourhood
from experiments.sim.origin import Fetch, OriginMeter
from experiments.sim.peer import Peer
from experiments.sim.playing import Playing
from experiments.sim.rows import row_of
from experiments.swarms.result import ViewerRow
from experiments.swarms.scenario import SwarmViewer
from toast.policy.estimate import UplinkMemory, Uplinks
from toast.policy.facts import Counts, Facts
from toast.policy.viewing import Decision, ViewingPolicy

if TYPE_CHECKING:
    from experiments.sim.world import World

__all__ = ["SimViewer"]


_GAINED_SECONDS = 0.1
_CLOSE_SECONDS = 1.0
_NO_UPLINKS = Uplinks.none()


class SimViewer(Peer):
    """A viewer.

    Args:
        world: all that is shared.
        who: when it comes, and how it is connected.
        policy: what it decides by.
        queue_seconds: how far ahead it queues requests.

    Attributes:
        sources: from each neighbour, by number: what it sends.
        queue_seconds: as given.
        meter: what is known of the server.
        playing: the playhead.
        have: bool[P], the pieces that are here.
        is_watching: whether it has come and not gone; it may have left the swarm before.
    """

    def __init__(
        self, world: "World", who: SwarmViewer, policy: ViewingPolicy, queue_seconds: float
    ) -> None:
        super().__init__(
            world,
            who.number,
            upload_rate=who.link.upload_rate,
            download_rate=who.link.download_rate,
            latency=who.link.latency_seconds,
            operator=False,
        )
        self.who = who
        self.queue_seconds = queue_seconds
        self.sources: dict[int, Flow] = {}
        self.meter = OriginMeter()
        pieces = world.cut.pieces
        self.have: NDArray[np.bool_] = np.zeros(pieces, dtype=np.bool_)
        self._have_now = memoryview(self.have.data)
        self.playing = Playing(world.cut, who.arrives_seconds)
        self.neighbourhood = SimNeighbourhood(self)
        self.is_watching = False
        self.departed_at: float | None = None
        self.ended_at: float | None = None
        self._policy = policy
        self._counts = Counts(self._missing_bytes, self._unasked)
        self._memory = UplinkMemory()
        self._closed: NDArray[np.bool_] = np.zeros(pieces, dtype=np.bool_)
        self._closed_now = memoryview(self._closed.data)
        self._in_flight: NDArray[np.bool_] = np.zeros(pieces, dtype=np.bool_)
        self._availability: NDArray[np.int32] = np.zeros(pieces, dtype=np.int32)
        self._parts: dict[int, Part] = {}
        self._fetches: dict[int, Fetch] = {}
        self._missing = pieces
        self._wanted: list[int] = []
        self._wanted_set: frozenset[int] = frozenset()
        self._decided_at = -math.inf
        self._decide_at = math.inf
        self._look_at = math.inf
        self._order_at = self._later_at = math.inf
        self._first_due = self._ahead_seconds = 0.0
        self._is_server_busy = self._is_in_order = False
        self.decisions = 0
        self.from_peers = self.from_seed = self.from_origin = 0
        self.wasted = self.regretted = 0
        self.by_reason: Counter[str] = Counter()

    def arrive(self, _: object = None) -> None:
        """Come, and begin to watch."""
        self.is_watching = self.present = True
        self.world.arrived(self)
        self.neighbourhood.join()
        self._decide_soon(0.0)

    def go(self, _: object = None) -> None:
        """Leave for good, wherever the film is."""
        if self.ended_at is None:
            self.playing.break_off(self.world.events.now)
            self._end()
        self.leave_swarm()
        self.is_watching = False

    def seek(self, to: float) -> None:
        """Jump to a film time."""
        if self.ended_at is None and self.is_watching:
            self.playing.seek(self.world.events.now, to)
            self._look_at = math.inf
            self._follow()
            self._decide_soon(0.0)

    def leave_swarm(self) -> None:
        """Serve nobody any more."""
        if not self.present:
            return
        self.present = False
        self.departed_at = self.world.events.now
        for peer in list(self.connected.values()):
            self.world.disconnect(self, peer)
        self.neighbourhood.leave()

    def _end(self) -> None:
        """The film is over, for this viewer."""
        self.ended_at = self.world.events.now
        if self.world.behaviour is not Behaviour.SEEDING:
            self.leave_swarm()
            self.is_watching = False
        self.world.has_seen(self)

    @property
    def need_seconds(self) -> float:
        """How far ahead of us someone must watch to have in time what we will need."""
        return self._policy.need_seconds

    def _follow(self) -> None:
        now = self.world.events.now
        was_awaiting = self.playing.awaiting
        again = self.playing.follow(now, self._have_now)
        if self.playing.ended:
            if self.ended_at is None:
                self._end()
            return
        if again < math.inf and not self._look_at <= again:
            self._look_at = again
            self.world.events.at(again, self._look, again)
        if was_awaiting and not self.playing.awaiting:
            self._decide_soon(0.0)

    def _look(self, time: float) -> None:
        """The playhead comes to where something was missing when this was planned, or the end."""
        if time == self._look_at and self.is_watching:
            self._look_at = math.inf
            ran = self.playing.running
            self._follow()
            if ran and not self.playing.running and not self.playing.ended:
                self._decide_soon(0.0)

    # -- decisions -------------------------------------------------------------------------------

    def _decide_soon(self, delay: float) -> None:
        """Decide after a while, or earlier; never twice within `least_seconds`."""
        if self._missing == 0 or not self.present:
            return
        events = self.world.events
        time = events.now + delay
        if time < self._decide_at:
            earliest = self._decided_at + self.world.settings.least_seconds
            if time < earliest:
                time = earliest
                if time >= self._decide_at:
                    return
            self._decide_at = time
            events.at(time, self._decide, time)

    def _gather(self) -> None:
        """Decide on what has happened, together with what will in a moment."""
        next_at = self._decided_at + self.world.settings.gather_seconds
        self._decide_soon(max(0.0, next_at - self.world.events.now))

    def _decide(self, time: float) -> None:
        if time != self._decide_at or not self.present:
            return  # another moment was fixed since
        self._decide_at = math.inf
        if self._is_put_off(time):
            return
        self._decided_at = now = self.world.events.now
        self.decisions += 1
        world = self.world.settings
        for flow in list(self.sources.values()):
            flow.look()
        if self._missing == 0 or not self.present:
            return
        decision = self._policy.decide(self._facts(now), self._missing_blocks, counts=self._counts)
        for piece in decision.eject.tolist():
            self._eject(piece)
        self._want(decision)
        for order in decision.orders:
            self._closed[order.piece] = True
            self._fetches[order.piece] = Fetch(self, order)
        self._is_server_busy = len(self._fetches) >= self.world.parallel
        for flow in list(self.sources.values()):
            self.ask(flow)
        self.neighbourhood.watch(now)
        # The server is asked in time; with everything else a moment more or less does not matter.
        later = min(max(decision.wait_seconds, world.gather_seconds), world.refresh_seconds)
        self._decide_soon(min(decision.order_seconds, later))
        self._order_at = now + decision.order_seconds
        self._later_at = now + later
        self._ahead_seconds = self._server_ahead_seconds()
        self._first_due = self.playing.open_due(now, self._have_now, self._closed_now)

    def _is_put_off(self, time: float) -> bool:
        """Whether only the server was to be asked now, and there is time again.

        A piece has come meanwhile, or what the server had still to send before the next one.
        """
        if time != self._order_at or time >= self._later_at:
            return False
        first_due = self.playing.open_due(time, self._have_now, self._closed_now)
        gained = first_due - self._first_due
        if gained < _GAINED_SECONDS:
            # In a close look, and where the plan is drawn or goes by rarity, one more decision is
            # a chance to ask for something else.
            if not (self._is_in_order and self.world.settings.gather_seconds > _CLOSE_SECONDS):
                return False
            ahead, self._ahead_seconds = self._ahead_seconds, self._server_ahead_seconds()
            gained += ahead - self._ahead_seconds
            if gained <= 0:
                return False
            gained = max(gained, self.world.settings.least_seconds)
        self._order_at += gained
        self._first_due = first_due
        self._decide_soon(min(self._order_at, self._later_at) - time)
        return True

    def _server_ahead_seconds(self) -> float:
        """What the server needs for what it was asked for, and a piece after that."""
        estimate = self.meter.estimate
        left = 0
        for piece in self._fetches:
            left += self._missing_bytes(piece)
        piece_bytes = self.world.cut.geometry.piece_bytes
        return estimate.rtt_seconds + (left + piece_bytes) / max(estimate.rate, 1.0)

    def _facts(self, now: float) -> Facts:
        world = self.world
        uplinks = _NO_UPLINKS
        down_rate, queued_bytes = 0.0, 0
        if self.sources:
            received, queued, choked, told = [], [], [], []
            for flow in self.sources.values():
                received.append(flow.received_bytes)
                queued.append(flow.queued_bytes)
                choked.append(flow.choked)
                told.append(flow.source.told)
                down_rate += flow.rate
                queued_bytes += flow.queued_bytes
            uplinks = self._memory.observe(now, list(self.sources), received, queued, choked, told)
        playing = self.playing
        position = playing.position(now)
        return Facts(
            now=now,
            slack=playing.slack(now, world.scratch),
            have=self.have,
            closed=self._closed,
            availability=self._availability,
            in_flight=self._in_flight,
            down_rate=down_rate,
            queued_bytes=queued_bytes,
            origin=self.meter.estimate,
            lead_seconds=self.neighbourhood.lead_seconds(now, position),
            together=self.neighbourhood.together,
            starting=playing.awaiting,
            seeking=playing.seeking,
            uplinks=uplinks,
            passed=None if world.is_unlimited else position - world.cut.until,
        )

    def _missing_blocks(self, piece: int) -> NDArray[np.bool_]:
        part = self._parts.get(piece)
        whole = self.world.cut.whole[piece]
        return self.world.cut.flags(piece, whole if part is None else whole & ~part.got)

    def _missing_bytes(self, piece: int) -> int:
        part, cut = self._parts.get(piece), self.world.cut
        whole = cut.whole[piece]
        return cut.size(piece, whole if part is None else whole & ~part.got)

    def _unasked(self, piece: int) -> tuple[int, list[int]]:
        part, cut = self._parts.get(piece), self.world.cut
        left, of_whom = cut.whole[piece] & ~(0 if part is None else part.got), []
        for place, flow in enumerate(self.sources.values()):
            if flow.queued_bytes:
                for begun, blocks, _ in flow.runs:
                    if begun == piece:
                        left &= ~blocks
                        of_whom.append(place)
        return cut.size(piece, left), of_whom

    def _want(self, decision: Decision) -> None:
        """Put what is wanted in the order in which libtorrent asks for it (`toast.swarm.steering`).

        A ranking by piece number goes by number, what is under way included; any other one as it
        is. What nobody has comes last, and one missing piece is always wanted.
        """
        plan, view = decision.plan, decision.view
        ranked = [*plan.top.tolist(), *plan.open.tolist()]
        in_flight = view.in_flight
        fresh = [piece for piece in ranked if not in_flight[piece]]
        rising = fresh == sorted(fresh)
        self._is_in_order = rising and self.world.may_rank_in_order
        if rising:
            ranked.sort()
        ranked += decision.coming.tolist()
        if not ranked and view.missing.any():
            open_ones = view.missing & ~view.closed
            eligible = open_ones if open_ones.any() else view.missing
            latest = np.where(eligible, np.minimum(view.slack, 1e9), -np.inf)
            ranked = [int(np.argmax(latest))]
        self._wanted = ranked
        self._wanted_set = frozenset(ranked)

    def _eject(self, piece: int) -> None:
        """Make room."""
        if self.have[piece]:
            self.have[piece] = False
            self._missing += 1
            self.complete = False
            self.playing.lost(piece)
            self.tell(piece, there=False)
        elif (part := self._parts.pop(piece, None)) is not None:
            self.wasted += self.world.cut.size(piece, part.got)
            self._in_flight[piece] = False

    def supplied(self, fetch: Fetch) -> None:
        """The server's copy of some blocks is here: it is put in, and the piece is whole."""
        if not self.is_watching:
            return
        piece = fetch.order.piece
        self.from_origin += fetch.size
        self.by_reason[str(fetch.order.reason)] += fetch.size
        if self._fetches.pop(piece, None) is None:
            return
        part = self._parts.get(piece)
        got = 0 if part is None else part.got
        if not self._closed[piece]:
            got = fetch.blocks  # peers completed it meanwhile
        self.regretted += self.world.cut.size(piece, fetch.blocks & got)
        if self._closed[piece]:
            self._verified(piece)

    # -- the swarm -------------------------------------------------------------------------------

    def connected_source(self, flow: Flow) -> None:
        """Somebody may be asked from now on, once it lets us."""
        self.sources[flow.source.number] = flow
        self._availability += flow.source.told

    def neighbour_left(self, peer: Peer) -> None:
        """A connection is gone."""
        super().neighbour_left(peer)
        flow = self.sources.pop(peer.number, None)
        if flow is not None:
            self._availability -= peer.told
        if self.present:
            self.neighbourhood.changed(peer)
            self._decide_soon(0.0)

    def unchoked(self, flow: Flow) -> None:
        """A neighbour takes requests."""
        if self.present:
            self.ask(flow)
            self._gather()

    def neighbour_has(self, flow: Flow, piece: int, *, there: bool) -> None:
        """A neighbour tells that it has a piece, or no more."""
        if there:
            self._availability[piece] += 1
            if piece in self._wanted_set:
                if len(flow.runs) <= 1:
                    self.ask(flow)
            elif not flow.queued_bytes and not self.have[piece]:
                self._gather()
        else:
            self._availability[piece] -= 1
            flow.drop(piece)

    def ask(self, flow: Flow) -> None:
        """Fill a neighbour's request queue from what is wanted."""
        if flow.choked:
            return
        room = flow.room()
        if room <= 0:
            return
        told, have, closed = flow.source.told_now, self._have_now, self._closed_now
        parts, whole = self._parts, self.world.cut.whole
        for piece in self._wanted:
            if not told[piece] or have[piece] or closed[piece]:
                continue
            part = parts.get(piece)
            if part is None:
                part = parts[piece] = Part(whole[piece])
                self._in_flight[piece] = True
            while part.open:
                blocks = lowest(part.open, flow.run_blocks)
                part.open ^= blocks
                room -= blocks.bit_count()
                flow.ask(piece, blocks)
                if room <= 0:
                    return

    def reopen(self, piece: int, blocks: int) -> None:
        """Blocks that were asked for will not come: somebody else may be asked."""
        part = self._parts.get(piece)
        if part is None:
            return
        part.open |= blocks & ~part.got
        if not part.got and part.open == self.world.cut.whole[piece]:
            del self._parts[piece]
            self._in_flight[piece] = False

    def receive(self, flow: Flow, piece: int, blocks: int, size: int) -> None:
        """Blocks have come from a peer."""
        if not self.present:
            return
        part = self._parts.get(piece)
        if part is None:
            self.wasted += size  # it is here already
            return
        fresh = blocks & ~part.got
        useful = size if fresh == blocks else self.world.cut.size(piece, fresh)
        self.wasted += size - useful
        part.got |= fresh
        if flow.source.operator:
            self.from_seed += useful
        else:
            self.from_peers += useful
        if part.got == self.world.cut.whole[piece]:
            self._verified(piece)

    def _verified(self, piece: int) -> None:
        """A piece is here: play on if it was waited for, tell the neighbours, decide anew."""
        awaited = self._closed_now[piece] and (self._is_server_busy or not self.playing.running)
        self.have[piece] = True
        self._missing -= 1
        self._closed[piece] = False
        self._in_flight[piece] = False
        self._parts.pop(piece, None)
        events = self.world.events
        if self.latency > 0:
            events.at(events.now + self.latency, self._tell_late, piece)
        else:
            self.tell(piece)
        if self._missing == 0 and not self.complete:
            self._completed()
        if not self.playing.running:
            self._follow()
        if awaited:
            # The server is asked for no more than a few pieces at a time: the next may go.
            self._decide_soon(0.0)
        else:
            self._gather()

    def _tell_late(self, piece: int) -> None:
        if self.have[piece]:
            self.tell(piece)

    def _completed(self) -> None:
        self.complete = True
        for peer in self.connected.values():
            peer.choker.left(self.number)
        if self.world.behaviour is Behaviour.DOWNLOAD_ONLY:
            self.leave_swarm()

    def row(self, end: float) -> ViewerRow:
        """What the viewing came to, at the end of the run."""
        return row_of(self, end)
