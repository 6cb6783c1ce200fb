"""Files of subtitles beside a film: which belong to it, and in which language they are.

Found are, beside the film and in a folder `Subs` or `Subtitles` there: `Name.srt`, `Name.en.vtt`,
`Name.English.forced.srt` for a film `Name.mkv`. In such a folder also `Name/2_English.srt`, and
any file at all if the film has the folder to itself.
"""

import asyncio
import os
import re
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from toast.media.errors import SubtitleError
from toast.media.languages import find_language
from toast.media.subtitles import MAX_SUBTITLE_BYTES
from toast.media.types import FILM_SUFFIXES

__all__ = ["SideFile", "SideFiles", "find_subtitles"]

_SUFFIXES: Final = frozenset({".srt", ".vtt"})
_FOLDERS: Final = frozenset({"subs", "subtitles"})
_MAX_ENTRIES: Final = 4096
_MAX_FILES: Final = 64
_AGAIN_SECONDS: Final = 2.0
_FORCED: Final = frozenset({"forced"})
_FOR_DEAF: Final = frozenset({"sdh", "cc", "hi"})


@dataclass(frozen=True, slots=True)
class SideFile:
    """Subtitles in a file beside the film.

    Attributes:
        path: where they are.
        label: what a person chooses them by.
        language: tag of BCP 47, or None if the name says nothing.
    """

    path: Path
    label: str
    language: str | None

    @property
    def file_name(self) -> str:
        """Its name, without a folder."""
        return self.path.name

    async def load(self) -> bytes:
        """The file as it is.

        Raises:
            SubtitleError: it cannot be read, or is larger than subtitles are.
        """
        return await asyncio.to_thread(self._load)

    def _load(self) -> bytes:
        try:
            # Neither a link out of the folder, nor a pipe that would be waited for.
            number = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            with os.fdopen(number, "rb") as file:
                if not stat.S_ISREG(os.fstat(number).st_mode):
                    raise SubtitleError(f"{self.file_name} is not a file")
                data = file.read(MAX_SUBTITLE_BYTES + 1)
        except OSError as error:
            raise SubtitleError(f"{self.file_name} cannot be read: {error.strerror}") from error
        if len(data) > MAX_SUBTITLE_BYTES:
            raise SubtitleError(f"{self.file_name} is too large to be subtitles")
        return data


class SideFiles:
    """The subtitles beside one film, looked for anew now and then.

    Whoever has been told of one by its number finds it under that number again: files that come
    later are added at the end, and one that goes cannot be loaded any more.

    Args:
        film: the film's file; need not be there yet.
        clock: monotonic seconds.
    """

    def __init__(self, film: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._film = film
        self._clock = clock
        self._looked_at: float | None = None
        self._found: list[SideFile] = []

    def list(self) -> Sequence[SideFile]:
        """Those found so far; looks again if the last look is two seconds ago."""
        now = self._clock()
        if self._looked_at is None or now - self._looked_at >= _AGAIN_SECONDS:
            self._looked_at = now
            known = {each.path for each in self._found}
            fresh = [each for each in find_subtitles(self._film) if each.path not in known]
            self._found += fresh[: _MAX_FILES - len(self._found)]
        return tuple(self._found)


def find_subtitles(film: Path) -> list[SideFile]:
    """The subtitles of a film, those beside it first, in the order of their names.

    Never leaves the film's folder: links are not followed. A folder that cannot be read has none.
    """
    stem = film.stem.casefold()
    beside = list(_entries(film.parent))
    alone = sum(_suffix(entry.name) in FILM_SUFFIXES for entry in beside) <= 1
    paths = [Path(entry.path) for entry in beside if _is_named_after(entry, stem)]
    for folder in beside:
        if folder.name.casefold() in _FOLDERS and folder.is_dir(follow_symlinks=False):
            paths += _find_inside(folder.path, stem, alone=alone)
    return [_describe(path, film.stem) for path in paths[:_MAX_FILES]]


def _find_inside(folder: str, stem: str, *, alone: bool) -> Iterator[Path]:
    for entry in _entries(folder):
        if entry.name.casefold() == stem and entry.is_dir(follow_symlinks=False):
            yield from (Path(each.path) for each in _entries(entry.path) if _is_subtitle(each))
        elif _is_named_after(entry, stem) or (alone and _is_subtitle(entry)):
            yield Path(entry.path)


def _entries(folder: str | Path) -> list["os.DirEntry[str]"]:
    """What is in a folder, by name; of a huge one, a part."""
    try:
        with os.scandir(folder) as entries:
            found = [entry for entry, _ in zip(entries, range(_MAX_ENTRIES), strict=False)]
    except OSError:
        return []
    return sorted(found, key=lambda entry: entry.name)


def _suffix(name: str) -> str:
    return os.path.splitext(name)[1].lower()  # noqa: PTH122  # thousands of names: no Path for each


def _is_subtitle(entry: "os.DirEntry[str]") -> bool:
    return _suffix(entry.name) in _SUFFIXES and entry.is_file(follow_symlinks=False)


def _is_named_after(entry: "os.DirEntry[str]", stem: str) -> bool:
    name = entry.name.casefold()
    return name.startswith(stem + ".") and _is_subtitle(entry)


def _describe(path: Path, stem: str) -> SideFile:
    """What a file's name says about its language."""
    name = path.stem
    if name.casefold().startswith(stem.casefold()):
        name = name[len(stem) :]
    words = [word for word in re.split(r"[\s._()\[\]-]+", name) if word and not word.isdigit()]
    small = {word.casefold() for word in words}
    language = find_language(words)
    notes = [note for note, of in (("forced", _FORCED), ("SDH", _FOR_DEAF)) if small & of]
    label = language.name if language is not None else " ".join(words) or "Subtitles"
    if language is not None and notes:
        label += f" ({', '.join(notes)})"
    return SideFile(path, label[:80], None if language is None else language.tag)
