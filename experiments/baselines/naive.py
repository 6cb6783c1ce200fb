"""The client that one writes in an afternoon: in-order priorities, and the server when it is late.

What it reaches stands in docs/baselines.md.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.baselines.giving import Giver
from experiments.baselines.torrent import TorrentViewer
from experiments.baselines.viewing import Receipts
from experiments.errors import LabError
from experiments.real.client import ClientContext
from experiments.swarms.clients import NaiveOptions, create_options
from toast.common.geometry import BLOCK_BYTES, Geometry
from toast.origin import OriginClient, OriginError
from toast.swarm import Metainfo

__all__ = ["NaiveViewer", "Wishes", "choose", "runs_of"]

_OFF, _TOP = 0, 7
_LOOK_SECONDS = 0.1  # how often it looks where the playhead is
_HERE = 2  # a block's state in libtorrent's download queue from which on it has been received


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the naive client wants at one moment, pieces in order of their due time.

    Attributes:
        of_peers: to be asked of peers (priority 7); all others are not (0).
        of_server: to be fetched from the server now.
    """

    of_peers: tuple[int, ...]
    of_server: tuple[int, ...]


def choose(slack: NDArray[np.float64], missing: NDArray[np.bool_], options: NaiveOptions) -> Wishes:
    """What to get next, and from whom.

    Whether anybody has a piece does not matter: what cannot be had yet is asked for when it can.

    Args:
        slack: float64[P], seconds until each piece is due; +inf behind the playhead.
        missing: bool[P], neither here nor on the way from the server.
        options: the client's.
    """
    order = np.argsort(slack, kind="stable")
    order = order[missing[order] & np.isfinite(slack[order])]
    due = order[slack[order] <= options.hand_over_seconds]
    wanted = order[slack[order] >= options.give_up_seconds][: options.wanted_pieces]
    return Wishes(tuple(wanted.tolist()), tuple(due.tolist()))


def runs_of(missing: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """The runs of missing blocks of a piece: first of each, and the one after its last."""
    edges = np.diff(np.concatenate(([False], missing, [False])).astype(np.int8))
    starts, ends = np.flatnonzero(edges > 0), np.flatnonzero(edges < 0)
    return list(zip(starts.tolist(), ends.tolist(), strict=True))


class NaiveViewer(TorrentViewer):
    """Priority 7 for the next pieces and 0 for all others; the server shortly before the due time.

    The server's requests are not part of a download cap, as with our own viewer.
    """

    def __init__(self, context: ClientContext) -> None:
        super().__init__(context)
        options = create_options(context.scenario.client, **context.scenario.client_options)
        assert isinstance(options, NaiveOptions)
        self._options = options
        self._origin: OriginClient | None = None
        self._fetching: set[int] = set()
        self._early: list[tuple[int, bytes]] = []
        self._can_take = False
        self._from_server = 0
        self._regretted = 0
        self._top: frozenset[int] = frozenset()

    async def _join(self, film: Metainfo) -> None:
        if not film.origins:
            raise LabError(f"{self.context.source} names no server of the film itself")
        self._origin = OriginClient(
            self.context.http, film.origins, film_bytes=film.film_bytes, clock=self._loop.time
        )
        await super()._join(film)

    def _settings(self) -> dict[str, Any]:
        # It would go over to an order of its own in a swarm that has much of the film.
        return super()._settings() | {"auto_sequential": False}

    def _ask_for(self, params: Any, film: Metainfo) -> None:
        self._top = frozenset(range(min(self._options.wanted_pieces, film.geometry.pieces)))
        params.piece_priorities = [
            _TOP if piece in self._top else _OFF for piece in range(film.geometry.pieces)
        ]

    def _decide(self, now: float) -> float:
        assert self.playhead is not None
        assert self.film is not None
        slack = self.playhead.slack(now)
        missing = ~self.have
        missing[list(self._fetching)] = False
        wishes = choose(slack, missing, self._options)
        self._prioritize(frozenset(wishes.of_peers))
        assert self._origin is not None
        if self._origin.up:
            for piece in wishes.of_server:
                self._fetching.add(piece)
                self._spawn(self._fetch(piece, self._origin, self.film.geometry))
        left = slack[missing] - self._options.hand_over_seconds
        return float(min(_LOOK_SECONDS, left[left > 0].min(initial=_LOOK_SECONDS)))

    def _prioritize(self, wanted: frozenset[int]) -> None:
        if not wanted:
            # With nothing wanted libtorrent counts the torrent as finished, and asks for nothing
            # any more: what was wanted last stays so.
            return
        changes = [(piece, _TOP) for piece in wanted - self._top]
        changes += [(piece, _OFF) for piece in self._top - wanted]
        if changes:
            self._handle.prioritize_pieces(changes)
        self._top = wanted

    async def _fetch(self, piece: int, origin: OriginClient, geometry: Geometry) -> None:
        """Get what is missing of a piece from the server, and give it to libtorrent."""
        assert self._credits is not None
        missing = np.ones(geometry.blocks_in(piece), dtype=np.bool_)
        if self._options.missing_blocks_only:
            missing = self._missing_blocks(piece, missing)
        data = bytearray(geometry.piece_size(piece))
        start = geometry.piece_start(piece)
        try:
            for first, end in runs_of(missing):
                low, high = first * BLOCK_BYTES, min(end * BLOCK_BYTES, len(data))
                fetched = await origin.fetch(start + low, start + high)
                data[low:high] = fetched.data
                self._from_server += high - low
        except OriginError:
            self._fetching.discard(piece)
            return
        brought = fetched_blocks = frozenset(np.flatnonzero(missing).tolist())
        if not self.have[piece]:
            brought = fetched_blocks & self._credits.came_from_swarm(piece)
            for block in fetched_blocks - brought:
                self._credits.asked(piece, block, Giver.ORIGIN)
            self._give(piece, bytes(data))
        self._regretted += sum(geometry.block_size(piece, block) for block in brought)

    def _missing_blocks(self, piece: int, all_: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """bool[blocks] of a piece that have not been received."""
        for part in self._handle.get_download_queue():
            if part["piece_index"] == piece:
                return np.array([block["state"] < _HERE for block in part["blocks"]])
        return all_

    def _give(self, piece: int, data: bytes) -> None:
        """Put a piece in its place; blocks that are there stay as they are."""
        if self._can_take:
            self._handle.add_piece(piece, data, 0)
        else:
            self._early.append((piece, data))

    def _checked(self) -> None:
        # Until now libtorrent would have dropped what it was given, silently.
        self._can_take = True
        while self._early:
            self._handle.add_piece(*self._early.pop(0), 0)

    def _got(self, piece: int) -> None:
        self._fetching.discard(piece)
        super()._got(piece)

    def _failed(self, piece: int) -> None:
        self._fetching.discard(piece)

    def receipts(self) -> Receipts:
        """What it got and gave so far."""
        got = super().receipts()
        return Receipts(
            peers=got.peers,
            seed=got.seed,
            origin=self._from_server,
            wasted=got.wasted,
            regretted=self._regretted,
            uploaded=got.uploaded,
        )
