"""How a film gets in: cut, placed, written, flushed, read back, hashed, and only then visible."""

import errno
import hashlib
import os
import re
import secrets
import time
import unicodedata
from collections.abc import Callable, Container
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

import numpy as np
from bencode2 import bencode

from toast.common.geometry import BLOCK_BYTES
from toast.media import MediaInfo, probe
from vodserver.allocation import ALLOCATIONS, Allocation
from vodserver.errors import DiskError, FilmError
from vodserver.store.catalog import Extent, Title
from vodserver.store.layout import extent_path, flush_directory, remove_folder
from vodserver.store.store import Store
from vodserver.store.sums import sums_of

__all__ = ["Cut", "add_film", "cut_of"]

EXTENT_SECONDS: Final = 5.0
"""One extent holds so much video: what a viewer may wait for, and enough to pay for one seek."""

_MIN_PIECE: Final = BLOCK_BYTES
_MAX_PIECE: Final = 4 * 1024 * 1024
_MAX_PIECES: Final = 16_384
_MAX_EXTENT: Final = 64 * 1024 * 1024  # an extent is held in memory while it is taken in
_MAX_NAME: Final = 200

Progress = Callable[[int, int], None]
"""Called with the bytes done and the bytes in all."""


@dataclass(frozen=True, slots=True)
class Cut:
    """How a film is cut: bytes of a piece and of an extent (whole pieces)."""

    piece_bytes: int
    extent_bytes: int


def cut_of(film_bytes: int, duration: float) -> Cut:
    """Cut a film by its mean bit rate.

    A piece is the largest power of two that holds at most a second of video, so that the playhead
    is never far behind a piece's first byte; films of many hours get larger ones, to keep their
    .torrent small. An extent is 5 s of video, rounded up to whole pieces.

    Args:
        film_bytes: size, > 0.
        duration: seconds, > 0.
    """
    rate = film_bytes / duration
    piece = _MIN_PIECE
    while piece < _MAX_PIECE and (piece * 2 <= rate or -(-film_bytes // piece) > _MAX_PIECES):
        piece *= 2
    wanted = -(-round(rate * EXTENT_SECONDS) // piece) * piece
    return Cut(piece, min(max(wanted, piece), _MAX_EXTENT))


def add_film(
    store: Store,
    film: Path,
    *,
    name: str | None = None,
    progress: Progress | None = None,
    rng: np.random.Generator | None = None,
) -> Title:
    """Take a film into a store.

    Nothing is visible before the film is whole, flushed and read back on every disk; whatever
    stops it on the way leaves nothing behind, or, if the process is killed, only what the next
    `open_store` removes.

    Args:
        store: opened by this process.
        film: a regular file that can be played.
        name: what people call it; the file's name without its suffix if not given.
        progress: told of every extent that is done.
        rng: chance for the placement; fresh if not given.

    Raises:
        MediaError: the file is no film, or a damaged one.
        FilmError: it cannot be read, it changed meanwhile, or its name cannot be used.
        DiskError: a disk is missing, full, read-only or broken.
        StoreUsageError: the store has it already.
    """
    label = _clean_name(name if name is not None else film.stem)
    if not film.is_file():
        what = "is not a file" if film.exists() else "does not exist"
        raise FilmError(f"{film} {what}: name a film to add")
    missing = [row for row in store.disk_rows if row.number not in store.disk_paths]
    if missing:
        raise DiskError(f"the disk {missing[0].path} is not there: mount it, then add the film")
    media = probe(film)
    policy = ALLOCATIONS.create(store.catalog.allocation)
    folder = secrets.token_hex(8)
    store.catalog.begin_ingest(folder)
    try:
        title = _Ingest(store, folder, media, policy, rng or np.random.default_rng()).run(
            film, label, label + film.suffix if name is not None else film.name, progress
        )
        store.catalog.commit_title(title)
    except BaseException:
        if remove_folder(folder, store.disk_paths.values()):
            store.catalog.forget_ingest(folder)
        raise
    store.include(title)
    return title


class _Ingest:
    """One film on its way in."""

    def __init__(
        self,
        store: Store,
        folder: str,
        media: MediaInfo,
        policy: Allocation,
        rng: np.random.Generator,
    ) -> None:
        self._store = store
        self._folder = folder
        self._media = media
        self._policy = policy
        self._rng = rng

    def run(self, film: Path, label: str, file_name: str, progress: Progress | None) -> Title:
        try:
            with film.open("rb") as source:
                return self._take(source, film, label, file_name, progress)
        except DiskError:
            raise
        except OSError as error:
            raise FilmError(f"cannot read {film}: {error.strerror}") from error

    def _take(
        self, source: BinaryIO, film: Path, label: str, file_name: str, progress: Progress | None
    ) -> Title:
        before = os.fstat(source.fileno())
        size = self._media.timemap.film_bytes
        cut = cut_of(size, self._media.duration)
        count = -(-size // cut.extent_bytes)
        placement = self._policy.place(count, self._used_bytes(), self._rng)
        for number in np.unique(placement).tolist():
            self._make_folder(number)
        pieces: list[bytes] = []
        whole = hashlib.sha256()
        extents: list[Extent] = []
        done = 0
        with ThreadPoolExecutor(self._policy.copies, "ingest") as writers:
            for number in range(count):
                data = source.read(min(cut.extent_bytes, size - done))
                if len(data) < min(cut.extent_bytes, size - done):
                    raise FilmError(f"{film} became shorter while it was read: add it again")
                disks = tuple(int(disk) for disk in placement[number])
                sums = sums_of(data)
                written = [writers.submit(self._write, disk, number, data, sums) for disk in disks]
                view = memoryview(data)
                pieces.extend(
                    hashlib.sha1(view[at : at + cut.piece_bytes], usedforsecurity=False).digest()
                    for at in range(0, len(data), cut.piece_bytes)
                )
                whole.update(data)
                for job in written:
                    job.result()
                extents.append(Extent(number, len(data), disks, sums))
                done += len(data)
                if progress is not None:
                    progress(done, size)
        after = os.fstat(source.fileno())
        if (after.st_size, after.st_mtime_ns) != (before.st_size, before.st_mtime_ns) or (
            after.st_size != size
        ):
            raise FilmError(f"{film} changed while it was read: add it again")
        for disk in np.unique(placement).tolist():
            self._flush_folder(disk)
        info = bencode(
            {
                b"length": size,
                b"name": file_name.encode("utf-8", "replace"),
                b"piece length": cut.piece_bytes,
                b"pieces": b"".join(pieces),
            }
        )
        media = self._media
        return Title(
            id=_title_id(label, {title.id for title in self._store.titles()}),
            name=label,
            folder=self._folder,
            film_bytes=size,
            duration=media.duration,
            piece_bytes=cut.piece_bytes,
            extent_bytes=cut.extent_bytes,
            info_hash=hashlib.sha1(info, usedforsecurity=False).hexdigest(),
            sha256=whole.hexdigest(),
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
            extents=tuple(extents),
        )

    def _used_bytes(self) -> "np.typing.NDArray[np.int64]":
        used = np.zeros(len(self._store.disk_rows), dtype=np.int64)
        for title in self._store.titles():
            for extent in title.extents:
                used[list(extent.disks)] += extent.size
        return used

    def _make_folder(self, disk: int) -> None:
        path = self._path(disk, 0).parent
        try:
            path.mkdir()
        except OSError as error:
            raise _disk_error(self._store.disk_paths[disk], error) from error

    def _flush_folder(self, disk: int) -> None:
        path = self._path(disk, 0).parent
        try:
            flush_directory(path)
            flush_directory(path.parent)
        except OSError as error:
            raise _disk_error(self._store.disk_paths[disk], error) from error

    def _write(self, disk: int, number: int, data: bytes, sums: bytes) -> None:
        """Write one replica, make it durable, and see that it reads back as it was."""
        path = self._path(disk, number)
        try:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o444)
            try:
                view = memoryview(data)
                while view:
                    view = view[os.write(fd, view) :]
                os.fsync(fd)
                # Out of memory with it, so that what is read back comes from the disk.
                os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
                os.lseek(fd, 0, os.SEEK_SET)
                with os.fdopen(fd, "rb", closefd=False) as file:
                    same = sums_of(file.read()) == sums
            finally:
                os.close(fd)
        except OSError as error:
            raise _disk_error(self._store.disk_paths[disk], error) from error
        if not same:
            raise DiskError(
                f"the disk {self._store.disk_paths[disk]} does not return what was written to it: "
                "replace it"
            )

    def _path(self, disk: int, number: int) -> Path:
        return extent_path(self._store.disk_paths[disk], self._folder, number)


def _disk_error(disk: Path, error: OSError) -> DiskError:
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return DiskError(f"the disk {disk} is full: free some space, then add the film again")
    if error.errno in {errno.EROFS, errno.EACCES, errno.EPERM}:
        return DiskError(f"the disk {disk} cannot be written to: {error.strerror}")
    return DiskError(f"the disk {disk} failed: {error.strerror}")


def _clean_name(name: str) -> str:
    """A name that can stand in a line, a table and a file name.

    Raises:
        FilmError: nothing of it can.
    """
    unprintable = {"Cc", "Cf", "Cs"}  # controls, invisible marks, halves of characters
    kept = "".join(
        c
        for c in " ".join(name.split())
        if c not in "/\\" and unicodedata.category(c) not in unprintable
    )
    cleaned = " ".join(kept.split()).strip(".")[:_MAX_NAME].strip()
    if not cleaned:
        raise FilmError(f"the name {name!r} cannot be used: give another with --name")
    return cleaned


def _title_id(name: str, taken: Container[str]) -> str:
    """A short id for URLs, made of the name; numbered if the name is taken."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    base = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:48].strip("-") or "film"
    if base not in taken:
        return base
    number = 2
    while f"{base}-{number}" in taken:
        number += 1
    return f"{base}-{number}"
