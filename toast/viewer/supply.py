"""The VoD server's part in a viewing: fetches what the hand-over orders, and injects it."""

import asyncio
import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toast.common.geometry import BLOCK_BYTES
from toast.origin import OriginClient, OriginError
from toast.policy.handover import MissingBlocks, Order, OriginEstimate, Reason
from toast.swarm import FilmSwarm, Metainfo
from toast.viewer.accounts import Accounts

__all__ = ["Supply"]

_AGAIN_SECONDS = 0.25
_NOBODY = OriginEstimate(rtt_seconds=0.0, rate=1.0, up=False)


@dataclass(slots=True)
class _Injected:
    at: float
    data: bytes
    twice: bool = False


class Supply:
    """What comes from the server.

    Args:
        metainfo: the film.
        origin: the client of its VoD server, or None if there is none.
        accounts: where the bytes are counted.
        clock: monotonic seconds.
        stuck_seconds: a piece injected and neither verified nor refused by then is opened again.
        changed: called when a fetch has ended.

    Attributes:
        closed: bool[pieces], on its way from the server: not to be asked of peers.
    """

    def __init__(
        self,
        metainfo: Metainfo,
        origin: OriginClient | None,
        accounts: Accounts,
        *,
        clock: Callable[[], float],
        stuck_seconds: float,
        changed: Callable[[], None],
    ) -> None:
        self.closed: NDArray[np.bool_] = np.zeros(metainfo.geometry.pieces, dtype=np.bool_)
        self._poisoned = np.zeros(metainfo.geometry.pieces, dtype=np.bool_)
        self._metainfo = metainfo
        self._geometry = metainfo.geometry
        self._origin = origin
        self._accounts = accounts
        self._clock = clock
        self._stuck_seconds = stuck_seconds
        self._changed = changed
        self._injected: dict[int, _Injected] = {}
        self._fetches: dict[int, asyncio.Task[None]] = {}

    @property
    def up(self) -> bool | None:
        """Whether the server can be asked; None if there is none."""
        return None if self._origin is None else self._origin.up

    @property
    def last_error(self) -> str | None:
        """Why the last fetch failed, if it did."""
        return None if self._origin is None else self._origin.last_error

    def estimate(self) -> OriginEstimate:
        """How long the next fetch will take; down if there is no server."""
        return _NOBODY if self._origin is None else self._origin.estimate()

    @property
    def retry_in(self) -> float:
        """Seconds until a server that is down is tried again; +inf if none is down."""
        if self._origin is None or self._origin.up:
            return math.inf
        return self._origin.retry_in

    def missing_blocks(self, swarm: FilmSwarm) -> MissingBlocks:
        """For a piece: bool[blocks], which of its blocks are not here."""
        begun = swarm.missing_blocks()

        def missing_blocks(piece: int) -> NDArray[np.bool_]:
            blocks = begun.get(piece)
            if blocks is None or self._poisoned[piece]:
                return np.ones(self._geometry.blocks_in(piece), dtype=np.bool_)
            return blocks

        return missing_blocks

    def fetch(self, orders: Sequence[Order], swarm: FilmSwarm) -> None:
        """Start to fetch what was ordered; each piece is injected when it is here."""
        for order in orders:
            self.closed[order.piece] = True
            self._fetches[order.piece] = asyncio.create_task(self._fetch(order, swarm))

    def mend(self, swarm: FilmSwarm) -> None:
        """Look after pieces that were injected and not heard of since.

        libtorrent drops a piece that it is given while it still clears the same one away. So it is
        given a second time (what it has taken it skips), and after `stuck_seconds` opened again.
        """
        now = self._clock()
        for piece, injected in list(self._injected.items()):
            if now - injected.at > self._stuck_seconds:
                del self._injected[piece]
                self.closed[piece] = False
            elif not injected.twice and now - injected.at > _AGAIN_SECONDS:
                injected.twice = True
                swarm.inject(piece, injected.data)

    def piece_verified(self, piece: int) -> None:
        """A piece is there, whoever brought it."""
        self.closed[piece] = False
        self._poisoned[piece] = False
        self._injected.pop(piece, None)

    def piece_failed(self, piece: int) -> None:
        """Some peer lied about a block: all of the piece is fetched anew."""
        self.closed[piece] = False
        self._poisoned[piece] = True
        self._injected.pop(piece, None)
        fetch = self._fetches.pop(piece, None)
        if fetch is not None:
            fetch.cancel()  # it fetches only what was missing before

    def hash_is_right(self, piece: int, data: bytes) -> bool:
        """Whether these are the bytes that the .torrent promises."""
        digest = hashlib.sha1(data, usedforsecurity=False).digest()
        return digest == self._metainfo.piece_hashes[piece]

    async def fetch_piece(self, piece: int) -> bytes:
        """A whole verified piece, past the swarm.

        Raises:
            OriginError: the server does not have it either.
        """
        if self._origin is None:
            raise OriginError("there is no VoD server")
        start = self._geometry.piece_start(piece)
        try:
            fetched = await self._origin.fetch(start, start + self._geometry.piece_size(piece))
        finally:
            self._accounts.from_origin = self._origin.received_bytes
        if not self.hash_is_right(piece, fetched.data):
            raise self._origin.distrust()
        return fetched.data

    async def close(self) -> None:
        """Give up all fetches."""
        for fetch in self._fetches.values():
            fetch.cancel()
        await asyncio.gather(*self._fetches.values(), return_exceptions=True)

    async def _fetch(self, order: Order, swarm: FilmSwarm) -> None:
        assert self._origin is not None
        piece = order.piece
        size = self._geometry.piece_size(piece)
        base = self._geometry.piece_start(piece)
        reason = Reason.POISONED if self._poisoned[piece] else order.reason
        data = bytearray(size)
        try:
            for first, end in order.blocks:
                start, stop = first * BLOCK_BYTES, min(end * BLOCK_BYTES, size)
                fetched = await self._origin.fetch(base + start, base + stop)
                data[start:stop] = fetched.data
                self._accounts.origin_payload[reason] += len(fetched.data)
            self._inject(order, bytes(data), swarm)
        except OriginError:
            self.closed[piece] = False  # peers may bring it, and the next step tries again
        finally:
            self._accounts.from_origin = self._origin.received_bytes
            if self._fetches.get(piece) is asyncio.current_task():
                del self._fetches[piece]
            self._changed()

    def _inject(self, order: Order, data: bytes, swarm: FilmSwarm) -> None:
        piece = order.piece
        ordered = {block for first, end in order.blocks for block in range(first, end)}
        done = not self.closed[piece]  # peers completed it meanwhile
        in_time = ordered if done else ordered & self._accounts.arrived_of(piece)
        self._accounts.regret += sum(self._geometry.block_size(piece, block) for block in in_time)
        if done:
            return
        if len(ordered) == self._geometry.blocks_in(piece) and not self.hash_is_right(piece, data):
            assert self._origin is not None
            raise self._origin.distrust()
        self._accounts.injected(piece, ordered - in_time)
        self._injected[piece] = _Injected(self._clock(), data)
        swarm.inject(piece, data)
