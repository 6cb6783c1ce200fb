"""What a torrent of several files holds: which file is the film, and which subtitles go with it.

A .torrent comes from a stranger, and says where on our disk its files shall lie: any path that is
not plainly below one folder is refused (BEP 3; BEP 47 for padding and links).
"""

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from toast.swarm.errors import MetainfoError

__all__ = ["MAX_FILES", "Contents", "TorrentFile", "choose_film", "read_contents"]

MAX_FILES = 10_000
"""A season of a series with all its extras has some hundreds."""

_MAX_NAME_BYTES = 255  # of one path element, on every file system in use
_MAX_DEPTH = 16
_FILMS = frozenset({".avi", ".m4v", ".mkv", ".mov", ".mp4", ".mpeg", ".mpg", ".ts", ".webm"})
_FILMS |= {".3gp", ".flv", ".m2ts", ".mts", ".ogm", ".ogv", ".vob", ".wmv"}
_SUBTITLES = frozenset({".srt", ".vtt", ".ass"})
_SUBTITLE_FOLDERS = frozenset({"subs", "subtitles"})
_MAX_SUBTITLES = 64
_MAX_SUBTITLE_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class TorrentFile:
    """Bytes [start, start + size) of a torrent.

    Attributes:
        path: below the torrent's own folder.
        start: first byte, in piece space.
        size: bytes; may be 0.
    """

    path: PurePosixPath
    start: int
    size: int

    @property
    def end(self) -> int:
        """The byte after the last one."""
        return self.start + self.size


@dataclass(frozen=True, slots=True)
class Contents:
    """The files of a torrent, and what of them is wanted.

    Attributes:
        name: of the torrent's folder.
        files: all but padding, in order.
        film: the one that is played.
        subtitles: those that go with it.
    """

    name: str
    files: tuple[TorrentFile, ...]
    film: TorrentFile
    subtitles: tuple[TorrentFile, ...]


def read_contents(info: dict[Any, Any], wanted: str | None = None) -> Contents | None:
    """What a torrent of several files holds, from its info dictionary; None if it is one file.

    Args:
        info: the dictionary.
        wanted: the film to play, by path or name; None: the largest.

    Raises:
        MetainfoError: a path that could lead out of its folder, a file that is none, or no film.
    """
    entries = info.get(b"files")
    if entries is None:
        return None
    name = _element(info.get(b"name.utf-8", info.get(b"name")))
    files = _files(entries)
    film = choose_film(files, wanted)
    return Contents(name, files, film, choose_subtitles(files, film))


def _files(entries: Any) -> tuple[TorrentFile, ...]:
    if not isinstance(entries, list) or not entries:
        raise MetainfoError("this .torrent names no files")
    if len(entries) > MAX_FILES:
        raise MetainfoError(f"this .torrent has {len(entries)} files; {MAX_FILES} is the most")
    files: list[TorrentFile] = []
    start = 0
    for entry in entries:
        if not isinstance(entry, dict):
            raise MetainfoError("this .torrent names a file that is none")
        size, attributes = entry.get(b"length"), entry.get(b"attr", b"")
        if not isinstance(size, int) or size < 0 or not isinstance(attributes, bytes):
            raise MetainfoError("this .torrent names a file that is none")
        if b"l" in attributes:
            raise MetainfoError("this .torrent holds a link to another file: it is not to be used")
        if b"p" not in attributes:
            files.append(TorrentFile(_path(entry), start, size))
        start += size
    if len({str(file.path).casefold() for file in files}) != len(files):
        raise MetainfoError("this .torrent has two files of the same name")
    return tuple(files)


def choose_film(files: tuple[TorrentFile, ...], wanted: str | None = None) -> TorrentFile:
    """The file to play: the one that is named, or else the largest film.

    Args:
        files: of the torrent.
        wanted: path or name of a file of it.

    Raises:
        MetainfoError: there is none.
    """
    if wanted is not None:
        named = [file for file in files if wanted in {str(file.path), file.path.name} and file.size]
        if not named:
            raise MetainfoError(f"this .torrent holds no file '{wanted}'")
        return named[0]
    films = [file for file in files if file.size and _suffix(file) in _FILMS]
    if len(files) == 1 and files[0].size:
        films = [files[0]]
    if not films:
        raise MetainfoError("this .torrent holds no film")
    return max(films, key=lambda file: file.size)


def choose_subtitles(files: tuple[TorrentFile, ...], film: TorrentFile) -> tuple[TorrentFile, ...]:
    """The subtitles that go with a film: beside it under its name, or in a folder for them."""
    alone = sum(_suffix(file) in _FILMS for file in files) == 1
    stem = film.path.stem.casefold()
    found = []
    for file in files:
        if _suffix(file) not in _SUBTITLES or not 0 < file.size <= _MAX_SUBTITLE_BYTES:
            continue
        named = file.path.name.casefold().startswith(stem + ".")
        parent = file.path.parent
        in_folder = (
            parent.name.casefold() in _SUBTITLE_FOLDERS and parent.parent == film.path.parent
        )
        of_film = (
            parent.name.casefold() == stem
            and parent.parent.name.casefold() in _SUBTITLE_FOLDERS
            and parent.parent.parent == film.path.parent
        )
        if (
            (named and (parent == film.path.parent or in_folder))
            or of_film
            or (in_folder and alone)
        ):
            found.append(file)
    return tuple(found[:_MAX_SUBTITLES])


def _suffix(file: TorrentFile) -> str:
    return file.path.suffix.lower()


def _path(entry: dict[Any, Any]) -> PurePosixPath:
    elements = entry.get(b"path.utf-8", entry.get(b"path"))
    if not isinstance(elements, list) or not 0 < len(elements) <= _MAX_DEPTH:
        raise MetainfoError("this .torrent names a file without a usable path")
    return PurePosixPath(*(_element(element) for element in elements))


def _element(value: Any) -> str:
    """One step of a path, that leads down one step and nowhere else on any system."""
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else ""
    unsafe = not text.strip(" .") or len(text.encode()) > _MAX_NAME_BYTES
    if unsafe or any(char in "/\\\x7f" or ord(char) < 32 for char in text):
        raise MetainfoError("this .torrent has an unsafe file name: it is not to be used")
    return text
