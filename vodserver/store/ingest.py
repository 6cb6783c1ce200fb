"""How a film gets in: cut, placed, written, flushed, read back, hashed, and only then visible.

What is written is noted extent by extent. An `add` that was killed is gone on with by the next one
of the same film: that reads the film again from its start, for SHA-256 cannot be taken up in its
middle, and writes only what is not on the disks yet as the film has it.
"""

import contextlib
import hashlib
import os
import secrets
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import numpy as np
from bencode2 import bencode

from toast.common.units import format_bytes
from toast.media import MediaInfo, probe
from vodserver.allocation import ALLOCATIONS, Allocation
from vodserver.errors import AllocationError, DiskError, FilmError, IngestStopped, StoreError
from vodserver.store.blocks import BlockHashes, BlocksWriter
from vodserver.store.catalog import Catalog, Extent, Title
from vodserver.store.names import clean_name, title_id
from vodserver.store.plan import FilmIdentity, IngestPlan, cut_of
from vodserver.store.removal import clear_folder, clear_garbage
from vodserver.store.store import Store
from vodserver.store.writing import ExtentWriter

__all__ = ["add_film"]

Progress = Callable[[int, int], None]
"""Called with the bytes done and the bytes in all."""


def add_film(
    store: Store,
    film: Path,
    *,
    name: str | None = None,
    media: MediaInfo | None = None,
    piece_bytes: int | None = None,
    restart: bool = False,
    progress: Progress | None = None,
    notice: Callable[[str], None] | None = None,
    include: Callable[[Title], None] | None = None,
    stop: Callable[[], bool] | None = None,
    rng: np.random.Generator | None = None,
) -> Title:
    """Take a film into a store.

    Nothing is visible before the film is whole, flushed and read back on every disk. What fails
    leaves nothing behind. What is stopped, or killed, leaves what it wrote for the next `add_film`
    of the same film, which goes on from there; `clear_debris` removes it when it is too old.

    It may run in a thread of its own while the store serves: it has a catalog connection of its
    own, and one `add_film` at a time.

    Args:
        store: opened by this process.
        film: a regular file that can be played.
        name: what people call it; the file's name without its suffix if not given.
        media: what is known of it; it is read from the file if not given.
        piece_bytes: size of a BitTorrent piece, a power of two; by its bit rate if not given.
        restart: begin again, whatever an earlier one left.
        progress: told of every extent that is done.
        notice: told in a line what the operator should know though nothing failed.
        include: told of the title when it is committed; `store.include` if not given, which is for
            the thread of the store's event loop alone.
        stop: asked before every extent whether to stop.
        rng: chance for the placement; fresh if not given.

    Raises:
        MediaError: the file is no film, or a damaged one.
        FilmError: it cannot be read, it changed meanwhile, or its name cannot be used.
        AllocationError: too few disks are there and active.
        DiskError: too few disks take what is written to them: full, read-only or broken.
        StoreUsageError: the store has it already.
        IngestStopped: `stop` said so.
    """
    label = clean_name(name if name is not None else film.stem)
    if not film.is_file():
        what = "is not a file" if film.exists() else "does not exist"
        raise FilmError(f"{film} {what}: name a film to add")
    media = media or probe(film)
    with Catalog(store.catalog.path) as catalog:
        ingest = _Ingest(
            catalog,
            dict(store.disk_paths),
            media,
            piece_bytes=piece_bytes,
            rng=rng or np.random.default_rng(),
            progress=progress or (lambda _done, _total: None),
            notice=notice or (lambda _line: None),
            stop=stop or (lambda: False),
        )
        file_name = label + film.suffix if name is not None else film.name
        title = ingest.run(film, label, file_name, restart=restart)
        (include or store.include)(title)
        ingest.tidy(title.folder)
    return title


class _Ingest:
    """One film on its way in."""

    def __init__(
        self,
        catalog: Catalog,
        paths: dict[int, Path],
        media: MediaInfo,
        *,
        piece_bytes: int | None,
        rng: np.random.Generator,
        progress: Progress,
        notice: Callable[[str], None],
        stop: Callable[[], bool],
    ) -> None:
        self._catalog = catalog
        self._paths = paths
        self._media = media
        self._piece_bytes = piece_bytes
        self._rng = rng
        self._progress = progress
        self._notice = notice
        self._stop = stop
        self._policy: Allocation = ALLOCATIONS.create(catalog.allocation)
        self._writer = ExtentWriter(catalog, paths, self._policy, rng, notice)

    def run(self, film: Path, label: str, file_name: str, *, restart: bool) -> Title:
        try:
            with film.open("rb") as source, self._writer:
                folder, plan = self._begin(source, film, restart=restart)
                try:
                    taken = self._take(source, film, folder, plan)
                    title = self._title(folder, plan, label, file_name, taken)
                    self._catalog.commit_title(title)
                except IngestStopped:
                    raise
                except Exception:
                    self._give_up(folder)
                    raise
        except DiskError:
            raise
        except OSError as error:
            raise FilmError(f"cannot read {film}: {error.strerror}") from error
        return title

    def tidy(self, folder: str) -> None:
        """Remove what a disk that failed has of the film; what cannot be stays noted."""
        with contextlib.suppress(StoreError):
            clear_garbage(self._catalog, self._paths, folder=folder)

    def _begin(self, source: BinaryIO, film: Path, *, restart: bool) -> tuple[str, IngestPlan]:
        """Take up what an earlier `add` of this film left, or note a new one."""
        away = [
            row
            for row in self._catalog.disks()
            if row.state == "active" and row.number not in self._paths
        ]
        used, capacity = self._writer.room()
        # Before anything is touched: what an earlier `add` left is still good with enough disks.
        if (usable := np.count_nonzero(capacity)) < self._policy.min_disks:
            if away:
                raise DiskError(f"the disk {away[0].path} is not there: mount it, and add again")
            raise AllocationError(
                f"{usable} disks of the store take films, and its placement "
                f"'{self._policy.name}' needs {self._policy.min_disks}: "
                "add one with 'vodserver disk add'"
            )
        for row in away:
            self._notice(f"the disk {row.path} is not there: the film goes onto other disks")
        size = self._media.timemap.film_bytes
        cut = cut_of(size, self._media.duration, self._piece_bytes)
        identity = FilmIdentity.of(source)
        where = str(film.resolve())
        for ingest in self._catalog.unfinished():
            found = IngestPlan.from_json(ingest.plan)
            if found is None:
                continue
            same = found.film == identity
            if same and found.cut == cut and not restart:
                for row in away:
                    # What was being written at the kill may be on a disk that is away now.
                    next_one = len(self._catalog.ingested(ingest.folder))
                    self._catalog.note_garbage(ingest.folder, next_one, row.number)
                return ingest.folder, found
            if same or found.path == where:  # nobody will go on with that one any more
                self._give_up(ingest.folder)
        placed = self._policy.place(
            -(-size // cut.extent_bytes), used, self._rng, capacity_bytes=capacity
        )
        placement = tuple(tuple(int(disk) for disk in disks) for disks in placed)
        plan = IngestPlan(where, identity, cut, placement)
        folder = secrets.token_hex(8)
        self._catalog.begin_ingest(folder, plan.to_json(), time.time())
        return folder, plan

    def _take(self, source: BinaryIO, film: Path, folder: str, plan: IngestPlan) -> "_Taken":
        blocks = BlocksWriter(self._catalog.path.parent, folder, plan.cut.piece_bytes)
        with blocks:
            taken = self._take_extents(source, film, folder, plan, blocks)
            taken.blocks = blocks.finish()
        return taken

    def _take_extents(
        self, source: BinaryIO, film: Path, folder: str, plan: IngestPlan, blocks: BlocksWriter
    ) -> "_Taken":
        size, cut = plan.film.size, plan.cut
        known = {extent.number: extent for extent in self._catalog.ingested(folder)}
        if known:
            done = format_bytes(sum(extent.size for extent in known.values()))
            self._notice(f"going on where an earlier add was stopped, after {done}")
        taken = _Taken()
        for number, disks in enumerate(plan.placement):
            if self._stop():
                raise IngestStopped("stopped: the next add of this film goes on from here")
            wanted = min(cut.extent_bytes, size - taken.size)
            data = source.read(wanted)
            if len(data) < wanted:
                raise FilmError(f"{film} became shorter while it was read: add it again")
            old = known.get(number)
            writing = self._writer.begin(folder, number, data, disks, old)
            try:
                taken.hash(data, cut.piece_bytes)
                blocks.add(data)
            finally:
                extent = self._writer.finish(writing)  # who gives up must not meet a write
            if extent != old:
                self._catalog.note_ingested(folder, extent)
            taken.extents.append(extent)
            self._progress(taken.size, size)
        facts = os.fstat(source.fileno())
        if (facts.st_size, facts.st_mtime_ns) != (size, plan.film.mtime_ns):
            raise FilmError(f"{film} changed while it was read: add it again")
        self._writer.complete(folder, taken.extents)
        return taken

    def _title(
        self, folder: str, plan: IngestPlan, label: str, file_name: str, taken: "_Taken"
    ) -> Title:
        info = bencode(
            {
                b"length": plan.film.size,
                b"name": file_name.encode("utf-8", "replace"),
                b"piece length": plan.cut.piece_bytes,
                b"pieces": b"".join(taken.pieces),
            }
        )
        media = self._media
        return Title(
            id=title_id(label, self._catalog.title_ids()),
            name=label,
            folder=folder,
            film_bytes=plan.film.size,
            duration=media.duration,
            piece_bytes=plan.cut.piece_bytes,
            extent_bytes=plan.cut.extent_bytes,
            info_hash=hashlib.sha1(info, usedforsecurity=False).hexdigest(),
            sha256=taken.whole.hexdigest(),
            info=info,
            timemap=bencode(media.timemap.to_bencodable()),
            media={
                "container": media.container,
                "video_codec": media.video_codec,
                "audio_codec": media.audio_codec,
                "width": media.width,
                "height": media.height,
            },
            added=time.time(),
            extents=tuple(taken.extents),
            block_roots=taken.blocks.roots,
            block_sums=taken.blocks.sums,
        )

    def _give_up(self, folder: str) -> None:
        """Remove what was written; what lies on a disk that is not there stays noted."""
        self._catalog.abandon_ingest(folder)
        clear_folder(self._catalog, self._paths, folder)


class _Taken:
    """What is known of the part of a film that was read."""

    def __init__(self) -> None:
        self.size = 0
        self.pieces: list[bytes] = []
        self.whole = hashlib.sha256()
        self.extents: list[Extent] = []
        self.blocks = BlockHashes(b"", b"")

    def hash(self, data: bytes, piece_bytes: int) -> None:
        view = memoryview(data)
        self.pieces.extend(
            hashlib.sha1(view[at : at + piece_bytes], usedforsecurity=False).digest()
            for at in range(0, len(data), piece_bytes)
        )
        self.whole.update(data)
        self.size += len(data)
