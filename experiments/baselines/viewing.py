"""What all baselines share: a playhead that halts where a byte is missing, and an end."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.bound import Behaviour
from experiments.errors import LabError
from experiments.real.client import ClientContext
from experiments.swarms.result import ViewerRow
from toast.common.timemap import TimeMap
from toast.common.waiting import wait_event
from toast.policy.playhead import Playhead, State
from toast.swarm import Metainfo
from toast.viewer import fetch_metainfo

__all__ = ["Baseline", "Receipts"]

_REST_SECONDS = 0.5  # the longest that a position which others look at may be out of date


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipts:
    """What a baseline got from whom, and gave. Bytes, as in `ViewerRow`."""

    peers: int = 0
    seed: int = 0
    origin: int = 0
    wasted: int = 0
    regretted: int = 0
    uploaded: int = 0


class Baseline(ABC):
    """A viewer that is not ours.

    The .torrent is fetched first, by those too that could do without: the film's times stand in
    it. As with our viewer, its start is counted from then on, and it costs the server a few
    thousandths of the film.

    Args:
        context: see `ClientContext`.

    Attributes:
        film: the film, once it has arrived.
        have: bool[pieces], here and right.
        playhead: where it is.
    """

    def __init__(self, context: ClientContext) -> None:
        self.context = context
        self.film: Metainfo | None = None
        self.have: NDArray[np.bool_] = np.empty(0, np.bool_)
        self.playhead: Playhead | None = None
        self._loop = asyncio.get_running_loop()
        self._wake = asyncio.Event()
        self._stopped = False
        self._failure: BaseException | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._arrived_at = 0.0
        self._departed_at = self._ended_at = 0.0
        self._is_present = False
        self._is_right = True

    async def run(self) -> None:
        """Arrive now, watch until the behaviour's end or until `stop`, then leave the swarm.

        Raises:
            ToastError: the film cannot be watched.
        """
        film = self.film = await fetch_metainfo(self.context.source, self.context.http)
        self._arrived_at = self._loop.time()
        self.have = np.zeros(film.geometry.pieces, dtype=np.bool_)
        self._is_present = True
        try:
            await self._join(film)
            self.playhead = Playhead(self.timemap, film.geometry, self._loop.time())
            await self._watch(self.playhead)
        finally:
            self._ended_at = self._loop.time()
            await self._leave_once()
        self._is_right = await self._is_film_right()

    def stop(self) -> None:
        """End the viewing; `run` returns soon after."""
        self._stopped = True
        self._wake.set()

    def seek(self, seconds: float) -> None:  # noqa: ARG002 - the protocol's
        """No baseline seeks: the scenario is refused.

        Raises:
            LabError: always.
        """
        raise LabError("this client does not seek")

    @property
    def timemap(self) -> TimeMap:
        """When each byte of the film is needed: as its .torrent says, or at a constant rate."""
        assert self.film is not None
        duration = self.context.scenario.film.duration_seconds
        return self.film.timemap or TimeMap.constant(self.film.film_bytes, duration)

    @property
    def position_seconds(self) -> float:
        """Film time of its playhead."""
        return 0.0 if self.playhead is None else self.playhead.position

    @property
    def has_played(self) -> bool:
        """Whether its playhead has reached the end of the film."""
        return self.playhead is not None and self.playhead.state is State.ENDED

    @property
    def is_present(self) -> bool:
        """Whether it takes part now."""
        return self._is_present

    @property
    def received(self) -> tuple[int, int]:
        """Film bytes so far: (from other viewers, from anyone)."""
        got = self.receipts()
        return got.peers, got.peers + got.seed + got.origin

    @abstractmethod
    def receipts(self) -> Receipts:
        """What it got and gave so far; also after it has left."""

    def row(self) -> ViewerRow:
        """What it came to, once `run` has ended."""
        assert self.playhead is not None
        assert self.film is not None
        got = self.receipts()
        whole = self.has_played
        played = self.film.film_bytes if whole else self.timemap.byte_of(self.position_seconds)
        return ViewerRow(
            number=self.context.viewer.number,
            arrived_at=self._arrived_at - self.context.began_at,
            departed_at=self._departed_at - self.context.began_at,
            start_seconds=self.playhead.start_seconds,
            stalls=self.playhead.stalls,
            stalled_at=[at - self.context.began_at for at in self.playhead.stalled_at],
            stall_seconds=self.playhead.stall_seconds(self._ended_at),
            played_bytes=played,
            bytes_from_peers=got.peers,
            bytes_from_seed=got.seed,
            bytes_from_origin=got.origin,
            bytes_wasted=got.wasted,
            bytes_regretted=got.regretted,
            bytes_uploaded=got.uploaded,
            upload_rate=self.context.viewer.link.upload_rate,
            is_right=self._is_right,
        )

    # -- what each does in its own way -------------------------------------------------------------

    @abstractmethod
    async def _join(self, film: Metainfo) -> None:
        """Begin to get the film. Raises `ToastError` if that cannot be."""

    @abstractmethod
    async def _leave(self) -> None:
        """Get and give no more; what was begun by `_spawn` has been ended. Called once."""

    def _decide(self, now: float) -> float:
        """Choose what to get next; seconds until that is to be done anew, if nothing comes."""
        del now
        return _REST_SECONDS

    async def _is_film_right(self) -> bool:
        """Whether the pieces that are here are the film's, looked at after it has left."""
        return True

    # -- for those ---------------------------------------------------------------------------------

    def _got(self, piece: int) -> None:
        """A piece is here, and right."""
        self.have[piece] = True
        self._wake.set()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something beside; what goes wrong in it ends the viewing."""
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        """End the viewing with an error."""
        self._failure = self._failure or error
        self._wake.set()

    # -- the loop ----------------------------------------------------------------------------------

    async def _watch(self, playhead: Playhead) -> None:
        while True:
            now = self._loop.time()
            playhead.tick(now, self.have)
            if self._failure is not None:
                raise self._failure
            if self._stopped or await self._is_over():
                return
            wait = min(playhead.next_event(now, self.have), _REST_SECONDS)
            if self._is_present and not self.have.all():
                wait = min(wait, self._decide(now))
            await wait_event(self._wake, max(wait, 0.001))

    async def _is_over(self) -> bool:
        """Whether nothing is left to do; a download-only viewer leaves, and plays on."""
        behaviour = self.context.scenario.behaviour
        if behaviour is Behaviour.DOWNLOAD_ONLY and self.have.all():
            await self._leave_once()
        return self.has_played and behaviour is not Behaviour.SEEDING

    async def _leave_once(self) -> None:
        if not self._is_present:
            return
        self._is_present = False
        self._departed_at = self._loop.time()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._leave()
