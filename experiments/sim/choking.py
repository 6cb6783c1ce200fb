"""Whom a peer sends to: as libtorrent does it.

While there are slots, everyone who wants something has one. When there are more who want something
than slots, rounds decide: tit-for-tat gives the slots to those who sent most in the last round, the
seed choker to those who took most; among equals whoever waited longest comes first, and a share of
the slots goes to others by chance.
"""

from typing import TYPE_CHECKING

from experiments.swarms.scenario import Choking

if TYPE_CHECKING:
    from experiments.sim.flow import Flow
    from experiments.sim.peer import Peer

__all__ = ["Choker"]


class Choker:
    """The upload slots of one peer.

    Args:
        peer: whose.
    """

    __slots__ = ("_lucky", "_marks", "_opened_at", "_peer", "_rounds", "_running", "open")

    def __init__(self, peer: "Peer") -> None:
        self._peer = peer
        self.open: dict[int, Flow] = {}
        self._marks: dict[int, tuple[int, int]] = {}
        self._opened_at: dict[int, float] = {}
        self._lucky: list[int] = []
        self._rounds = 0
        self._running = False

    def wanted(self, flow: "Flow") -> None:
        """Somebody wants something from now on."""
        if self._peer.uplink.rate <= 0:
            return
        if len(self.open) < self._peer.world.upload_slots:
            self._unchoke(flow)
        elif not self._running:
            self._running = True
            self._mark()
            self._next_round()

    def left(self, number: int) -> None:
        """Somebody has left, or wants nothing more: the next one has its turn at once."""
        self._marks.pop(number, None)
        self._opened_at.pop(number, None)
        if self.open.pop(number, None) is None:
            return
        waiting = [flow for flow in self._wanting() if flow.sink.number not in self.open]
        if waiting:
            self._unchoke(min(waiting, key=self._patience))

    def _wanting(self) -> "list[Flow]":
        return [flow for flow in self._peer.flows.values() if not flow.sink.complete]

    def _patience(self, flow: "Flow") -> float:
        return self._opened_at.get(flow.sink.number, -1.0)

    def _unchoke(self, flow: "Flow") -> None:
        peer = self._peer
        self.open[flow.sink.number] = flow
        self._opened_at[flow.sink.number] = peer.world.events.now
        peer.world.events.at(peer.world.events.now + peer.latency, self._is_told, flow)

    def _is_told(self, flow: "Flow") -> None:
        if self.open.get(flow.sink.number) is flow and flow.choked:
            flow.choked = False
            flow.sink.unchoked(flow)

    def _choke(self, flow: "Flow") -> None:
        del self.open[flow.sink.number]
        if not flow.choked:
            flow.choked = True
            flow.cancel()

    def _next_round(self) -> None:
        events = self._peer.world.events
        events.at(events.now + self._peer.world.settings.unchoke_seconds, self._round)

    def _round(self, _: object) -> None:
        peer = self._peer
        wanting = self._wanting()
        if not peer.present or len(wanting) <= peer.world.upload_slots:
            self._running = False
            for flow in wanting:
                if peer.present and flow.sink.number not in self.open:
                    self._unchoke(flow)
            return
        chosen = self._choose(wanting)
        for number, flow in list(self.open.items()):
            if number not in chosen:
                self._choke(flow)
        for number, flow in chosen.items():
            if number not in self.open:
                self._unchoke(flow)
        self._mark()
        self._next_round()

    def _choose(self, wanting: "list[Flow]") -> "dict[int, Flow]":
        world = self._peer.world
        slots = world.upload_slots
        by_chance = min(max(1, int(slots * world.settings.optimistic_share)), slots)
        by_merit = slots - by_chance
        ranked = sorted(wanting, key=lambda flow: (-self._merit(flow), self._patience(flow)))
        chosen = {flow.sink.number: flow for flow in ranked[:by_merit]}
        others = {flow.sink.number: flow for flow in ranked[by_merit:]}
        if self._rounds % world.settings.optimistic_rounds == 0:
            self._lucky = []
        self._rounds += 1
        lucky = [number for number in self._lucky if number in others]
        rest = [number for number in others if number not in lucky]
        drawn = world.rng.permutation(len(rest))[: by_chance - len(lucky)].tolist()
        self._lucky = lucky + [rest[place] for place in drawn]
        chosen.update((number, others[number]) for number in self._lucky)
        return chosen

    def _merit(self, flow: "Flow") -> int:
        """Bytes of the last round by which somebody earns a slot."""
        given, taken = self._seen(flow)
        before_given, before_taken = self._marks.get(flow.sink.number, (given, taken))
        peer = self._peer
        if peer.complete or peer.world.choking is Choking.SEED:
            return given - before_given
        return taken - before_taken

    def _seen(self, flow: "Flow") -> tuple[int, int]:
        """Bytes sent to somebody, and received from there, so far."""
        back = flow.sink.flows.get(self._peer.number)
        return flow.received_bytes, 0 if back is None else back.received_bytes

    def _mark(self) -> None:
        self._marks = {flow.sink.number: self._seen(flow) for flow in self._wanting()}
