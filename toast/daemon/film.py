"""One film of the library, at rest or running."""

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from toast.common.errors import ToastError
from toast.common.waiting import run_apart
from toast.daemon.errors import DaemonError
from toast.daemon.folders import fingerprint
from toast.daemon.house import House
from toast.daemon.queue import FilmFacts
from toast.daemon.record import FilmRecord
from toast.media import MediaError, MediaInfo, probe
from toast.media.side_files import SideFile, SideFiles
from toast.media.types import film_type
from toast.policy.playhead import State
from toast.swarm import Metainfo, parse_metainfo
from toast.viewer import (
    Behaviour,
    FilmPoster,
    FilmReader,
    FilmUnavailable,
    Pace,
    PieceSource,
    Source,
    Viewer,
    ViewerSettings,
    assemble_viewer,
)
from toast.viewer.reader import BlockingFilm

__all__ = ["Film"]

_WATCHED_SHARE = 0.9
"""Who came so far has watched the film: the rest is credits."""
_BARREN_SECONDS = 30.0
_NOTHING: NDArray[np.uint8] = np.empty(0, np.uint8)


class Film:
    """One film. Every call but `read` returns at once.

    Args:
        record: what is remembered of it.
        house: what it shares with the others.
    """

    def __init__(self, record: FilmRecord, house: House) -> None:
        self._base = record
        self._house = house
        self._viewer: Viewer | None = None
        self._wanted: NDArray[np.bool_] = np.ones(record.pieces, np.bool_)
        self._opened = asyncio.Event()
        self._running: asyncio.Task[None] | None = None
        self._is_checking = False
        self._readers = 0
        self._watched_until = 0.0
        self._collected = record.uploaded_bytes
        self.is_stopping = False
        self._sources = _NOTHING
        self._path = self.folder / record.name
        self._side_files = SideFiles(self._path)
        self._poster = FilmPoster(self._path)
        self._collected_at: float | None = None
        self._fed_at = time.monotonic()
        self._fed_bytes = 0
        self.stored_bytes = 0
        self.is_dirty = False
        self.is_new = True
        self.is_removed = False
        self.is_stopping = False

    # -- what it is ------------------------------------------------------------------------------

    @property
    def id(self) -> str:
        """Its info-hash, hexadecimal."""
        return self._base.id

    @property
    def folder(self) -> Path:
        """Where its file lies."""
        return self._house.films / self._base.folder

    @property
    def record(self) -> FilmRecord:
        """What is to be remembered of it, as of now."""
        viewer = self._viewer
        if viewer is None or viewer.playhead is None:
            return self._base
        facts = viewer.progress()
        base = self._base
        return replace(
            base,
            uploaded_bytes=base.uploaded_bytes + viewer.transferred()[0],
            bytes_from_peers=base.bytes_from_peers + facts["bytes_from_peers"],
            bytes_from_seed=base.bytes_from_seed + facts["bytes_from_seed"],
            bytes_from_origin=base.bytes_from_origin + facts["bytes_from_origin"],
            stalls=base.stalls + facts["stalls"],
            pieces_have=facts["pieces_have"],
            duration_seconds=facts["duration_seconds"] or base.duration_seconds,
        )

    @property
    def is_running(self) -> bool:
        """Whether it is in its swarm, or on the way in or out."""
        return self._running is not None

    @property
    def is_busy(self) -> bool:
        """Whether it changes by itself: it runs, and does more than to wait for others to ask."""
        if self._running is None:
            return False
        return self.is_watched_now or not self.is_complete or self._is_sending()

    @property
    def is_watched_now(self) -> bool:
        """Whether someone reads it, or did a moment ago."""
        return self._readers > 0 or time.monotonic() < self._watched_until

    @property
    def is_complete(self) -> bool:
        """Whether every piece is here, as far as is known."""
        viewer = self._viewer
        if viewer is not None and self._opened.is_set():
            return bool(viewer.have[self._wanted].all())
        return self._base.pieces_have >= self._base.pieces

    @property
    def state(self) -> str:
        """In a word."""
        if self._is_checking:
            return "checking"
        if self._base.error is not None:
            return "error"
        return self._state_running() if self.is_running else self._state_resting()

    def _state_running(self) -> str:
        if self.is_watched_now:
            return "watching"
        if self.is_complete:
            return "seeding"
        return "downloading" if self._is_flowing() else "waiting"

    def _state_resting(self) -> str:
        if self._base.paused:
            return "paused"
        return "complete" if self.is_complete else "queued"

    def _is_flowing(self) -> bool:
        if self._viewer is None or self._viewer.playhead is None:
            return False
        facts = self._viewer.progress()
        return facts["down_rate"] > 0 or (facts["origin_up"] is True and not self._is_budget_spent)

    @property
    def _is_budget_spent(self) -> bool:
        return self._house.budget.allowance(asyncio.get_running_loop().time()).bytes_left <= 0

    def _is_sending(self) -> bool:
        viewer = self._viewer
        return (
            viewer is not None and viewer.playhead is not None and viewer.progress()["up_rate"] > 0
        )

    def facts(self, now: float) -> FilmFacts:
        """What the rules of the house look at."""
        record = self.record
        return FilmFacts(
            id=record.id,
            priority=record.priority,
            added_at=record.added_at,
            paused=record.paused,
            failed=record.error is not None,
            watched_now=self.is_watched_now,
            complete=self.is_complete,
            watched=record.watched,
            behaviour=record.behaviour,
            sent_ratio=record.uploaded_bytes / record.size_bytes,
            seeded_seconds=record.seeded_seconds,
            stored_bytes=self.stored_bytes,
            size_bytes=record.size_bytes,
            last_used_at=now if self.is_watched_now else record.last_used_at,
            barren=self.is_running and time.monotonic() - self._fed_at > _BARREN_SECONDS,
        )

    @property
    def readers(self) -> int:
        """Players' connections that read it."""
        return self._readers

    @property
    def live(self) -> Mapping[str, Any]:
        """How its viewing stands, as `Viewer.progress` says; empty while it rests."""
        viewer = self._viewer
        return {} if viewer is None or viewer.playhead is None else viewer.progress()

    @property
    def sources(self) -> NDArray[np.uint8]:
        """uint8[pieces]: where each piece came from, as `PieceSource` numbers them."""
        viewer = self._viewer
        if viewer is not None and self._opened.is_set():
            self._sources = viewer.sources[viewer.wanted]
        if self._sources.size != self._base.pieces:
            known = PieceSource.DISK if self.is_complete else PieceSource.MISSING
            return np.full(self._base.pieces, known, np.uint8)
        return self._sources

    # -- orders ----------------------------------------------------------------------------------

    def change(self, **fields: Any) -> None:
        """Change what is remembered of it; the caller has checked the values."""
        self._base = replace(self._base, **fields)
        self.is_dirty = True

    def play_to(self, position: float, *, paused: bool = False, rate: float = 1.0) -> None:
        """A player is at this second of the film."""
        duration = self.record.duration_seconds
        at = max(0.0, position if duration is None else min(position, duration))
        watched = self._base.watched
        if duration is not None and at >= _WATCHED_SHARE * duration:
            watched = True
        self.change(position_seconds=at, watched=watched, last_used_at=time.time())
        self.touch()
        if self._viewer is not None and self._opened.is_set():
            self._viewer.report_position(at, paused=paused, rate=rate)

    def touch(self) -> None:
        """Someone is about to watch it, or still does."""
        self._watched_until = time.monotonic() + self._house.linger_seconds

    def start(self) -> None:
        """Join the swarm; a film that runs already goes on."""
        if self._running is None and not self.is_removed:
            self._base = replace(self._base, error=None)
            self.is_stopping = False
            self._running = asyncio.create_task(self._run(), name=f"film {self.id}")
            self._running.add_done_callback(self._ended)

    async def stop(self) -> None:
        """Leave the swarm, and wait until that is done."""
        running = self._running
        if running is None:
            return
        self.is_stopping = True
        if self._viewer is not None and self._opened.is_set():
            self._viewer.stop()
        else:
            running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    def forget_watching(self) -> None:
        """Whoever watched has left for good."""
        self._watched_until = 0.0

    def collect(self, now: float) -> int:
        """Count what has happened since the last call.

        Args:
            now: Unix time.

        Returns:
            Bytes sent to peers since the last call.
        """
        record = self.record
        if self._viewer is not None and self._viewer.media is not None and not record.video_codec:
            self._note_media(self._viewer.media)
        received = record.bytes_from_peers + record.bytes_from_seed + record.bytes_from_origin
        if received != self._fed_bytes or not self.is_running or self._is_checking:
            self._fed_bytes, self._fed_at = received, time.monotonic()
        elapsed = max(0.0, now - (self._collected_at or now))
        self._collected_at = now
        if self.is_complete and self.is_running:
            seeded = record.seeded_seconds + elapsed
            self._base = replace(self._base, seeded_seconds=seeded)
        if self.is_complete and record.completed_at is None:
            self.change(completed_at=now)
        sent, self._collected = self._collected, record.uploaded_bytes
        return record.uploaded_bytes - sent

    # -- running ---------------------------------------------------------------------------------

    async def _run(self) -> None:
        try:
            async with self._house.checking:
                self._is_checking = True
                viewer = await self._open()
            self._is_checking = False
            self._opened.set()
            self._house.changed()
            async with asyncio.TaskGroup() as tasks:
                beside = (
                    tasks.create_task(self._look_into_container(viewer)),
                    tasks.create_task(self._poster.run(viewer)),
                )
                try:
                    await viewer.run()
                finally:
                    for task in beside:
                        task.cancel()
        except ToastError as error:
            self.change(error=" ".join(str(error).split()))
        except BaseExceptionGroup as group:
            known, unknown = group.split(ToastError)
            if known is None or unknown is not None:
                raise
            self.change(error=" ".join(str(known.exceptions[0]).split()))

    async def _open(self) -> Viewer:
        torrent = await asyncio.to_thread(self._house.load_torrent, self.id)
        viewer = self._make_viewer(await asyncio.to_thread(parse_metainfo, torrent))
        # Hashing a large film takes seconds, and whoever wants to watch it waits meanwhile.
        known = self._base.intact
        intact = known is not None and await asyncio.to_thread(fingerprint, self._path) == known
        await viewer.open(self._on_checked, intact=intact)
        self._wanted = viewer.metainfo.wanted()
        self._viewer = viewer
        return viewer

    def _on_checked(self, _done: int, _total: int) -> None:
        """Called by the thread that hashes what is on disk; the way to end it early."""
        if self.is_stopping:
            raise DaemonError("stopped while its pieces were checked")

    def _make_viewer(self, metainfo: Metainfo) -> Viewer:
        house, record = self._house, self._base
        return assemble_viewer(
            Source(metainfo, record.origins, record.trackers),
            settings=ViewerSettings(
                folder=self.folder,
                behaviour=Behaviour.SEEDING,  # how long it runs is the daemon's decision
                pace=Pace.READERS,
                start_seconds=record.position_seconds,
            ),
            session=house.session,
            http=house.http,
            rng=house.rng,
            budget=house.budget,
        )

    def pace(self) -> None:
        """Let the playhead of a film that nobody watches go on by the clock, so that all comes."""
        viewer = self._viewer
        if viewer is None or not self._opened.is_set() or self.is_watched_now:
            return
        if self.is_complete or viewer.playhead is None or viewer.timemap is None:
            return
        position = viewer.own_position
        if viewer.playhead.state is State.ENDED:  # pieces are missing that were skipped
            first = int(np.argmin(viewer.have | ~self._wanted))
            position = viewer.timemap.time_of(viewer.metainfo.geometry.piece_start(first))
        viewer.report_position(position)

    def _ended(self, task: asyncio.Task[None]) -> None:
        intact = None
        if self.is_complete and self._opened.is_set() and not task.cancelled():
            intact = fingerprint(self._path)
        self._base = replace(self.record, intact=intact)
        self._viewer = None
        self._opened.clear()
        self._running = None
        self._is_checking = False
        self.is_dirty = True
        if not task.cancelled() and (error := task.exception()) is not None:
            # A defect of ours: this film halts, the others go on, and the log has the traceback.
            self.change(error=f"internal error: {type(error).__name__}")
            context = {"message": f"film {self.id} failed", "exception": error, "task": task}
            task.get_loop().call_exception_handler(context)
        self._house.changed()

    async def _look_into_container(self, viewer: Viewer) -> None:
        """Learn codecs and size of the picture, once per film."""
        if self._base.video_codec is not None or viewer.metainfo.timemap is None:
            return  # known, or the viewer itself is looking
        film = BlockingFilm(viewer, asyncio.get_running_loop())
        # What it is made of may remain unknown; a player may still play it.
        with contextlib.suppress(FilmUnavailable, MediaError):
            self._note_media(await run_apart(probe, cast("BinaryIO", film)))

    def _note_media(self, info: MediaInfo) -> None:
        self.change(
            video_codec=info.video_codec,
            audio_codec=info.audio_codec,
            width=info.width,
            height=info.height,
            duration_seconds=info.duration,
        )
        self._house.changed()

    # -- reading (FilmSource of the gateway) -----------------------------------------------------

    @property
    def film_id(self) -> str:
        """Its info-hash, hexadecimal."""
        return self.id

    @property
    def film_name(self) -> str:
        """Its file name."""
        return self._base.name

    @property
    def film_bytes(self) -> int:
        """Its size."""
        return self._base.size_bytes

    @property
    def etag(self) -> str:
        """The info-hash: equal means equal bytes."""
        return f'"{self.id}"'

    @property
    def last_modified(self) -> float | None:
        """Nobody knows."""
        return None

    @property
    def content_type(self) -> str:
        """By its name."""
        return film_type(self._base.name)

    @property
    def title(self) -> str:
        """Its name without the ending."""
        return PurePath(self._base.name).stem

    @property
    def duration_seconds(self) -> float | None:
        """How long it plays; None while that is not known."""
        return self.record.duration_seconds

    @property
    def subtitles(self) -> Sequence[SideFile]:
        """Those in files beside it."""
        return self._side_files.list()

    @property
    def has_poster(self) -> bool:
        """Whether there is a picture of it."""
        return self._poster.is_there

    async def poster(self) -> bytes | None:
        """A frame of it; None while there is none."""
        return await self._poster.load()

    async def read(self, start: int, end: int) -> AsyncGenerator[bytes]:
        """Verified bytes [start, end). Starts the film if it rests.

        Raises:
            DaemonError: the film was removed, or halted with an error.
            FilmUnavailable: a piece is to be had from nobody.
        """
        self._readers += 1
        try:
            viewer = await self._wait_opened()
            async with contextlib.aclosing(FilmReader(viewer).read(start, end)) as stream:
                async for chunk in stream:
                    yield chunk
        finally:
            self._readers -= 1
            self.touch()
            self._house.changed()

    async def _wait_opened(self) -> Viewer:
        self.start()
        opened = asyncio.create_task(self._opened.wait())
        try:
            while not self._opened.is_set():
                if self._running is None:
                    raise DaemonError(self._base.error or "this film cannot be read now")
                await asyncio.wait({opened, self._running}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            opened.cancel()
        assert self._viewer is not None
        return self._viewer
