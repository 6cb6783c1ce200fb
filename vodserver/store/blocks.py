"""The hashes of a title's blocks: a file beside the catalog, which has the roots to them.

STORE/blocks/FOLDER    SHA-256 of every 16 KiB of the film, in film order (toast.common.blockhashes)

They are made of the film in the pass that takes it in, or later from its replicas. So there is one
copy: what is lost or rotten is made again. What is read is compared with checksums, as extents are.
"""

import os
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Final, NamedTuple, Self

from toast.common.blockhashes import HASH_BYTES, leaves, leaves_bytes, root
from toast.common.geometry import BLOCK_BYTES, Geometry
from vodserver.errors import ReadError, StoreError
from vodserver.store.layout import flush_directory
from vodserver.store.rows import Title
from vodserver.store.sums import SUM_SPAN, matches, sums_of

__all__ = [
    "BLOCKS_NAME",
    "BlockHashes",
    "BlocksWriter",
    "blocks_path",
    "draft_of",
    "fault_of",
    "geometry_of",
    "read_blocks",
    "remove_blocks",
]

BLOCKS_NAME: Final = "blocks"

_CHECK_BYTES: Final = 16 * SUM_SPAN


class BlockHashes(NamedTuple):
    """What the catalog keeps of a title's block hashes.

    Attributes:
        roots: the root of every piece, 32 bytes each.
        sums: checksums of the file, as those of extents.
    """

    roots: bytes
    sums: bytes


def blocks_path(store: Path, folder: str) -> Path:
    """The file with the block hashes of the title of this folder."""
    return store / BLOCKS_NAME / folder


def draft_of(path: Path) -> Path:
    """What a file of block hashes is called until it is whole."""
    return path.with_name(f".{path.name}.new")


def geometry_of(title: Title) -> Geometry:
    """How a title is cut into pieces."""
    return Geometry(title.film_bytes, title.piece_bytes)


class BlocksWriter:
    """Writes the block hashes of a film as it passes by; leaves nothing unless it is finished.

    Under its name there is a whole file or none.

    Args:
        store: the store's directory.
        folder: of the title.
        piece_bytes: bytes of a piece.

    Used in a `with`, or between `open` and `close`.

    Raises:
        StoreError: the file cannot be written; all methods may raise it.
    """

    def __init__(self, store: Path, folder: str, piece_bytes: int) -> None:
        self._path = blocks_path(store, folder)
        self._draft = draft_of(self._path)
        self._full = piece_bytes // BLOCK_BYTES
        self._of_piece = bytearray()
        self._of_span = bytearray()
        self._roots: list[bytes] = []
        self._sums: list[bytes] = []
        self._file: BinaryIO | None = None

    def open(self) -> None:
        """Begin."""
        try:
            if not self._path.parent.is_dir():
                self._path.parent.mkdir(exist_ok=True)
                flush_directory(self._path.parent.parent)
            self._draft.unlink(missing_ok=True)
            self._file = self._draft.open("xb")
        except OSError as error:
            raise self._failed(error) from error

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(
        self,
        _: type[BaseException] | None,
        __: BaseException | None,
        ___: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End; what was not finished is removed."""
        if self._file is None:
            return
        try:
            self._file.close()
            self._draft.unlink(missing_ok=True)
        except OSError as error:
            raise self._failed(error) from error

    def add(self, data: bytes | memoryview) -> None:
        """Take in the next bytes of the film: whole blocks, but at its end."""
        hashes = leaves(data)
        assert self._file is not None, "it was opened"
        try:
            self._file.write(hashes)
        except OSError as error:
            raise self._failed(error) from error
        self._of_span += hashes
        self._sum(len(self._of_span) // SUM_SPAN * SUM_SPAN)
        self._of_piece += hashes
        size = self._full * HASH_BYTES
        while len(self._of_piece) >= size:
            self._roots.append(root(bytes(self._of_piece[:size]), self._full))
            del self._of_piece[:size]

    def finish(self) -> BlockHashes:
        """Make the file durable and give it its name."""
        if self._of_piece:
            self._roots.append(root(bytes(self._of_piece), self._full))
        self._sum(len(self._of_span))
        assert self._file is not None, "it was opened"
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._draft.rename(self._path)
            flush_directory(self._path.parent)
        except OSError as error:
            raise self._failed(error) from error
        return BlockHashes(b"".join(self._roots), b"".join(self._sums))

    def _sum(self, size: int) -> None:
        self._sums.append(sums_of(bytes(self._of_span[:size])))
        del self._of_span[:size]

    def _failed(self, error: OSError) -> StoreError:
        return StoreError(f"cannot write hashes of blocks to {self._path}: {error.strerror}")


def read_blocks(store: Path, title: Title, start: int, end: int) -> bytes:
    """Bytes [start, end) of a title's block hashes, verified; blocks.

    Raises:
        ReadError: they are not there, or not what was written.
    """
    path = blocks_path(store, title.folder)
    low = start // SUM_SPAN * SUM_SPAN
    high = min(-(-end // SUM_SPAN) * SUM_SPAN, leaves_bytes(geometry_of(title)))
    try:
        with path.open("rb", buffering=0) as file:
            file.seek(low)
            data = file.read(high - low)
    except OSError as error:
        raise ReadError(
            f"the block hashes of '{title.id}' cannot be read: {error.strerror}"
        ) from error
    if len(data) < high - low:
        raise ReadError(f"the block hashes of '{title.id}' are not all there")
    if not matches(data, low, title.block_sums):
        raise ReadError(f"the block hashes of '{title.id}' are not what was written")
    return data[start - low : end - low]


def fault_of(store: Path, title: Title, *, deep: bool) -> str | None:
    """What is wrong with a title's block hashes; None if nothing is. Blocks.

    Args:
        store: the store's directory.
        title: which; it has them, as the catalog says.
        deep: read all of them; else only whether there are as many as there should be.
    """
    path, size = blocks_path(store, title.folder), leaves_bytes(geometry_of(title))
    try:
        found = path.stat().st_size
    except OSError as error:
        return f"the block hashes of '{title.id}' cannot be read: {error.strerror}"
    if found != size:
        return f"the block hashes of '{title.id}' have {found} bytes and not {size}"
    try:
        for at in range(0, size if deep else 0, _CHECK_BYTES):
            read_blocks(store, title, at, min(at + _CHECK_BYTES, size))
    except ReadError as error:
        return str(error)
    return None


def remove_blocks(store: Path, folder: str) -> bool:
    """Remove the block hashes of a folder, whole or not; whether none is left."""
    path = blocks_path(store, folder)
    try:
        draft_of(path).unlink(missing_ok=True)
        path.unlink(missing_ok=True)
    except OSError:
        return False
    return True
