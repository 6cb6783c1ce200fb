"""The VoD server's part in a viewing: fetches what the hand-over orders, and injects it."""

import asyncio
import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from toast.common import blockhashes
from toast.common.geometry import BLOCK_BYTES
from toast.origin import OriginClient, OriginError
from toast.policy.handover import MissingBlocks, Order, OriginEstimate, Reason
from toast.policy.requests import AWAITED, RequestSettings, make_requests
from toast.swarm import FilmSwarm, Metainfo
from toast.viewer.accounts import Accounts
from toast.viewer.early import EarlyBlocks
from toast.viewer.errors import WrongBlock
from toast.viewer.turns import Turn

__all__ = ["Supply"]

_AGAIN_SECONDS = 0.25
_AWAITED_SECONDS = 1.0
_KEPT_PARTS = 16
_HASHES_GAP = 128
_NOBODY = OriginEstimate(rtt_seconds=0.0, rate=1.0, up=False)


@dataclass(slots=True)
class _Injected:
    at: float
    data: bytes
    whole: bool
    twice: bool = False


@dataclass(slots=True)
class _Fetch:
    """A piece that was ordered: what is still to come of it."""

    order: Order
    reason: Reason
    left: set[int]


class Supply:
    """What comes from the server.

    Args:
        metainfo: the film.
        origin: the client of its VoD server, or None if there is none.
        accounts: where the bytes are counted.
        clock: monotonic seconds.
        stuck_seconds: a piece injected and neither verified nor refused by then is opened again.
        changed: called when a fetch has failed, and when all is here that a picture waited for.
        hashes: the client of the file of block hashes, or None: then nothing can be read of a
            piece before it is complete.
        readable: called with a piece of which more can be read now.
        requests: how requests are cut.

    Attributes:
        closed: bool[pieces], on its way from the server: not to be asked of peers.
        early: what the server has sent of pieces that are not complete.
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
        hashes: OriginClient | None = None,
        readable: Callable[[int], None] = lambda _: None,
        requests: RequestSettings | None = None,
    ) -> None:
        self._request_settings = requests or RequestSettings()
        self.early = EarlyBlocks(metainfo.geometry)
        self._hashes = hashes if metainfo.block_hashes is not None else None
        self._readable = readable
        self._turn: Turn | None = None
        self._lessons: set[asyncio.Task[None]] = set()
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
        self._fetches: dict[int, _Fetch] = {}
        self._requests: dict[asyncio.Task[None], range] = {}

    @property
    def up(self) -> bool | None:
        """Whether the server can be asked; None if there is none."""
        return None if self._origin is None else self._origin.up

    @property
    def last_error(self) -> str | None:
        """Why the last fetch failed, if it did."""
        return None if self._origin is None else self._origin.last_error

    @property
    def is_hurrying(self) -> bool:
        """Whether what a picture waits for is on its way."""
        return self._turn is not None and not self._turn.is_over

    def estimate(self) -> OriginEstimate:
        """How long the next fetch will take; down if there is no server."""
        return _NOBODY if self._origin is None else self._origin.estimate()

    @property
    def retry_in(self) -> float:
        """Seconds until a server that is down is tried again; +inf if none is down."""
        if self._origin is None or self._origin.up:
            return math.inf
        return self._origin.retry_in

    def missing_blocks(self, begun: Mapping[int, NDArray[np.bool_]]) -> MissingBlocks:
        """For a piece: bool[blocks], which of its blocks are not here.

        Args:
            begun: for each piece that is begun: which blocks peers have not delivered.
        """

        def missing_blocks(piece: int) -> NDArray[np.bool_]:
            blocks = begun.get(piece)
            if blocks is None or self._poisoned[piece]:
                blocks = np.ones(self._geometry.blocks_in(piece), dtype=np.bool_)
            received = self.early.received(piece)
            return blocks if received is None else blocks & ~received

        return missing_blocks

    def fetch(self, orders: Sequence[Order], swarm: FilmSwarm) -> None:
        """Start to fetch what was ordered; each piece is injected when it is here."""
        if not orders:
            return
        self._learn([order.piece for order in orders if self._is_awaited(order)])
        for order in orders:
            piece = order.piece
            self.closed[piece] = True
            reason = Reason.POISONED if self._poisoned[piece] else order.reason
            blocks = {block for first, end in order.blocks for block in range(first, end)}
            self._fetches[piece] = _Fetch(order, reason, blocks)
        awaited = [order for order in orders if order.reason in AWAITED]
        requests = make_requests(awaited, self._geometry, self._request_settings)
        if requests.first:
            total = sum(end - start for start, end in requests.first)
            self._turn = Turn(len(requests.first), total, self._clock)
        for start, end in requests.first:
            self._request(start, end, swarm, turn=self._turn)
        others = [order for order in orders if order.reason not in AWAITED]
        behind = make_requests(others, self._geometry, self._request_settings)
        for start, end in (*requests.then, *behind.then):
            self._request(start, end, swarm, after=self._turn)

    def abandon(self, unneeded: NDArray[np.bool_]) -> None:
        """Stop fetching pieces that nobody needs now; what has come of them is kept for a while.

        Args:
            unneeded: bool[pieces].
        """
        for request, pieces in self._requests.items():
            if unneeded[pieces.start : pieces.stop].all():
                request.cancel()
                self._give_up(pieces)
        self.early.trim(_KEPT_PARTS, keep={*self._fetches, *self._injected})

    def mend(self, swarm: FilmSwarm) -> None:
        """Look after pieces that were injected and not heard of since.

        libtorrent drops a piece that it is given while it still clears the same one away. So it is
        given a second time (what it has taken it skips), and after `stuck_seconds` opened again.
        """
        now = self._clock()
        for piece, injected in list(self._injected.items()):
            if now - injected.at > self._stuck_seconds:
                del self._injected[piece]
                self.early.drop(piece)
                self.closed[piece] = False
            elif not injected.twice and now - injected.at > _AGAIN_SECONDS:
                injected.twice = True
                swarm.inject(piece, injected.data)

    def piece_verified(self, piece: int) -> bytes | None:
        """A piece is there, whoever brought it. Returns its bytes if all of them came from here."""
        self.closed[piece] = False
        self._poisoned[piece] = False
        injected = self._injected.pop(piece, None)
        if piece not in self._fetches:
            self.early.drop(piece)
        return injected.data if injected is not None and injected.whole else None

    def piece_failed(self, piece: int) -> None:
        """Some peer lied about a block: all of the piece is fetched anew."""
        self.closed[piece] = False
        self._poisoned[piece] = True
        self._injected.pop(piece, None)
        self._fetches.pop(piece, None)  # it fetches only what was missing before
        self.early.drop(piece)

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
            self._count_origin()
        if not self.hash_is_right(piece, fetched.data):
            raise self._origin.distrust()
        return fetched.data

    async def close(self) -> None:
        """Give up all fetches."""
        tasks = (*self._requests, *self._lessons)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    @staticmethod
    def _is_awaited(order: Order) -> bool:
        """Whether somebody waits for its first bytes, not for all of it."""
        return order.reason in AWAITED or order.slack < _AWAITED_SECONDS

    def _learn(self, pieces: Sequence[int]) -> None:
        """Fetch the hashes of the blocks of these pieces, those of near ones at once."""
        if self._hashes is None or not self._hashes.up:
            return
        unknown = sorted(piece for piece in pieces if not self.early.knows(piece))
        # What lies between costs less than another request.
        edges = np.flatnonzero(np.diff(unknown) * self._geometry.blocks_in(0) > _HASHES_GAP) + 1
        runs = np.split(unknown, edges) if unknown else []
        for run in runs:
            task = asyncio.create_task(self._fetch_hashes(int(run[0]), int(run[-1]) + 1))
            self._lessons.add(task)
            task.add_done_callback(self._lessons.discard)

    async def _fetch_hashes(self, first: int, end: int) -> None:
        """The hashes of the blocks of pieces [first, end), each checked against its root."""
        assert self._hashes is not None
        assert self._metainfo.block_hashes is not None
        start, _ = blockhashes.leaves_span(self._geometry, first)
        _, stop = blockhashes.leaves_span(self._geometry, end - 1)
        try:
            fetched = await self._hashes.fetch(start, stop)
        except OriginError:
            return  # the pieces can be read when they are complete
        finally:
            self._count_origin()
        full = self._geometry.piece_bytes // BLOCK_BYTES
        for piece in range(first, end):
            begin, until = blockhashes.leaves_span(self._geometry, piece)
            leaves = fetched.data[begin - start : until - start]
            if not blockhashes.check(leaves, self._metainfo.block_hashes.root(piece), full):
                self._hashes.distrust()
                return
            if not self.closed[piece]:
                continue  # it is complete meanwhile, or given up
            try:
                grown = self.early.expect(piece, leaves)
            except WrongBlock:
                assert self._origin is not None
                self._origin.distrust()
                grown = True  # the blocks beside it may be right
            if grown:
                self._readable(piece)

    def _request(
        self,
        start: int,
        end: int,
        swarm: FilmSwarm,
        *,
        turn: Turn | None = None,
        after: Turn | None = None,
    ) -> None:
        """Begin to fetch bytes [start, end): in the turn of others, or behind it."""
        pieces = self._geometry.pieces_of(start, end)
        task = asyncio.create_task(self._fetch(start, end, pieces, swarm, turn=turn, after=after))
        self._requests[task] = pieces
        task.add_done_callback(self._requests.pop)
        if turn is not None:
            task.add_done_callback(lambda _: self._end_of_turn(turn))

    def _end_of_turn(self, turn: Turn) -> None:
        turn.ended()
        if turn.is_over:
            self._changed()

    async def _fetch(
        self,
        start: int,
        end: int,
        pieces: range,
        swarm: FilmSwarm,
        *,
        turn: Turn | None,
        after: Turn | None,
    ) -> None:
        assert self._origin is not None

        def received(at: int, data: bytes) -> None:
            if turn is not None:
                turn.received(len(data))
            self._received(at, data, swarm)

        try:
            if after is not None:
                await after.wait_nearly_over()
            await self._origin.fetch(start, end, received)
        except WrongBlock:
            self._origin.distrust()
            self._give_up(pieces)
            self._changed()
        except OriginError:
            self._give_up(pieces)  # peers may bring it, and the next step tries again
            self._changed()
        except Exception:
            self._give_up(pieces)  # whatever it is, nobody may wait for them for ever
            raise
        finally:
            self._count_origin()

    def _received(self, offset: int, data: bytes, swarm: FilmSwarm) -> None:
        """Bytes of the film have come: lend them out, and inject the pieces that they complete."""
        for piece in self._geometry.pieces_of(offset, offset + len(data)):
            base = self._geometry.piece_start(piece)
            begin = max(offset, base)
            end = min(offset + len(data), base + self._geometry.piece_size(piece))
            fetch = self._fetches.get(piece)
            if fetch is not None:
                self._accounts.origin_payload[fetch.reason] += end - begin
            part = memoryview(data)[begin - offset : end - offset]
            if self.early.add(piece, begin - base, part):
                self._readable(piece)
            if fetch is None:
                continue
            blocks = range((begin - base) // BLOCK_BYTES, -(-(end - base) // BLOCK_BYTES))
            fetch.left.difference_update(self.early.received_of(piece, blocks))
            if not fetch.left:
                del self._fetches[piece]
                self._inject(fetch.order, swarm)  # that it is verified will be told

    def _give_up(self, pieces: range) -> None:
        """What is still to come of these pieces may come from elsewhere."""
        for piece in pieces:
            if self._fetches.pop(piece, None) is not None:
                self.closed[piece] = False

    def _inject(self, order: Order, swarm: FilmSwarm) -> None:
        piece = order.piece
        ordered = {block for first, end in order.blocks for block in range(first, end)}
        done = not self.closed[piece]  # peers completed it meanwhile
        in_time = ordered if done else ordered & self._accounts.arrived_of(piece)
        self._accounts.regret += sum(self._geometry.block_size(piece, block) for block in in_time)
        if done:
            self.early.drop(piece)
            return
        data = self.early.data(piece)
        received = self.early.received(piece)
        whole = received is not None and bool(received.all())
        if whole and not self.hash_is_right(piece, data):
            assert self._origin is not None
            self.early.drop(piece)
            self.closed[piece] = False
            raise self._origin.distrust()
        self._accounts.injected(piece, ordered - in_time)
        self._injected[piece] = _Injected(self._clock(), data, whole)
        swarm.inject(piece, data)

    def _count_origin(self) -> None:
        clients = [client for client in (self._origin, self._hashes) if client is not None]
        self._accounts.from_origin = sum(client.received_bytes for client in clients)
