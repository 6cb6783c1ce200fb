"""What a viewer received, from whom, why, and what of it was of no use."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from toast.common.geometry import Geometry
from toast.policy.handover import Reason
from toast.swarm import Block
from toast.viewer.sources import PieceSource

__all__ = ["Accounts"]


@dataclass(slots=True)
class Accounts:
    """Running totals of one viewing, in bytes.

    Attributes:
        from_peers: blocks received from other viewers and kept.
        from_seed: blocks received from the operator's seed and kept.
        from_origin: what the VoD server sent for us, response headers included.
        origin_payload: the film's bytes in that, by reason.
        refused: pieces that the server should have supplied, had its budget allowed it.
        regret: origin bytes of blocks that a peer then delivered before they were injected.
        ejected: pieces deleted to make room, each time counted.
        requested: pieces asked of peers, each counted once.
        chosen: those of them that were the picker's choice: when a piece was first asked for,
            fewer better ranked ones were still waiting than the plan puts at its top.
    """

    from_peers: int = 0
    from_seed: int = 0
    from_origin: int = 0
    origin_payload: Counter[Reason] = field(default_factory=Counter)
    refused: frozenset[int] = frozenset()
    regret: int = 0
    ejected: int = 0
    requested: int = 0
    chosen: int = 0
    _ranked: list[int] = field(default_factory=list)
    _top: int = 0
    _asked_of: dict[int, dict[int, Block]] = field(default_factory=dict)
    _credited: set[tuple[int, int]] = field(default_factory=set)
    _asked: set[int] = field(default_factory=set)
    _arrived: dict[int, set[int]] = field(default_factory=dict)
    _supplied: dict[int, list[int]] = field(default_factory=dict)

    def planned(self, ranked: list[int], *, top: int) -> None:
        """A plan came into force.

        Args:
            ranked: the pieces it wants, best first.
            top: how many of them it asks for at once.
        """
        self._ranked = ranked
        self._top = top

    def block_requested(self, block: Block) -> None:
        """A block was asked of a peer; only a piece's first request is the picker's choice."""
        self._asked_of.setdefault(block.piece, {})[block.block] = block
        if block.piece in self._asked:
            return
        if block.piece in self._ranked:
            better = self._ranked[: self._ranked.index(block.piece)]
            self.chosen += sum(piece not in self._asked for piece in better) < self._top
        self._asked.add(block.piece)
        self.requested += 1

    def source_of(self, piece: int) -> PieceSource:
        """Who has supplied most of a piece that is complete now, before `piece_done` is called."""
        peers, seed, origin = self._supplied.get(piece, [0, 0, 0])
        told = self._arrived.get(piece, set())
        for number, block in self._asked_of.get(piece, {}).items():
            if number not in told:
                peers, seed = peers + (not block.operator), seed + block.operator
        most = max(peers, seed, origin)
        if most == origin:
            return PieceSource.ORIGIN
        return PieceSource.PEERS if most == peers else PieceSource.SEED

    def block_arrived(self, block: Block, geometry: Geometry) -> None:
        """A block was stored. Injected ones were counted when they were fetched."""
        if block.address is None or (block.piece, block.block) in self._credited:
            self._credited.discard((block.piece, block.block))
            return
        size = geometry.block_size(block.piece, block.block)
        if block.operator:
            self.from_seed += size
        else:
            self.from_peers += size
        self._supplied.setdefault(block.piece, [0, 0, 0])[int(block.operator)] += 1
        self._arrived.setdefault(block.piece, set()).add(block.block)

    def arrived_of(self, piece: int) -> frozenset[int]:
        """The blocks of an unfinished piece that peers have delivered."""
        return frozenset(self._arrived.get(piece, ()))

    def injected(self, piece: int, blocks: set[int]) -> None:
        """The server's copy of these blocks was given to libtorrent."""
        self._supplied.setdefault(piece, [0, 0, 0])[2] += len(blocks)
        asked = self._asked_of.get(piece, {})
        for block in blocks:
            asked.pop(block, None)

    def piece_done(self, piece: int, geometry: Geometry) -> None:
        """A piece is complete: it waits no longer, so nothing overtakes it.

        libtorrent may tell of its last blocks later, and of those of the film's end never: what
        was asked of a peer, and not injected, has come from that peer.
        """
        told = self._arrived.get(piece, set())
        for number, block in self._asked_of.get(piece, {}).items():
            if number not in told:
                self.block_arrived(block, geometry)
                self._credited.add((piece, number))
        self.piece_lost(piece)
        if piece in self._ranked:
            self._ranked.remove(piece)

    def piece_lost(self, piece: int) -> None:
        """A piece was thrown away: it is asked for anew."""
        self._arrived.pop(piece, None)
        self._supplied.pop(piece, None)
        self._asked_of.pop(piece, None)
        self._asked.discard(piece)

    @property
    def offload(self) -> float | None:
        """The share of what came that other viewers brought; None while nothing came."""
        received = self.from_peers + self.from_seed + self.from_origin
        return self.from_peers / received if received else None

    def report(self) -> dict[str, Any]:
        """The totals under the names that reports use."""
        return {
            "bytes_from_peers": self.from_peers,
            "bytes_from_seed": self.from_seed,
            "bytes_from_origin": self.from_origin,
            "origin_payload_by_reason": {
                str(reason): count for reason, count in sorted(self.origin_payload.items())
            },
            "bytes_regretted": self.regret,
            "pieces_refused_by_budget": len(self.refused),
            "offload": self.offload,
            "ejected_pieces": self.ejected,
            "requested_pieces": self.requested,
            "choice_share": self.chosen / self.requested if self.requested else None,
        }
