"""Players that are told everything on their command line, and tell nothing back."""

import re
from collections.abc import Callable, Sequence

from toast.gateway.players.base import Listener, Opening
from toast.gateway.players.errors import PlayerError
from toast.gateway.players.process import run_process

__all__ = ["CommandPlayer", "any_words", "ffplay_words", "vlc_words"]

_PLACE = re.compile(r"\{(?:url|playlist|start|title)\}")

Words = Callable[[Opening], Sequence[str]]


class CommandPlayer:
    """A program whose end is the end of the viewing.

    Args:
        name: what people call it.
        command: the program and arguments of the person's own.
        words: the arguments that open a film.
    """

    def __init__(self, name: str, command: Sequence[str], words: Words) -> None:
        self.name = name
        self._command = command
        self._words = words

    async def play(self, opening: Opening, _listener: Listener) -> None:
        """Play a film until the program ends.

        Raises:
            PlayerError: it cannot be started, or ends with an error.
        """
        if any(_PLACE.search(word) for word in self._command):
            places = _places(opening)
            words = [_filled(word, places) for word in self._command]
        else:
            words = [*self._command, *self._words(opening)]
        async with run_process(self.name, words) as process:
            code = await process.wait()
        if code:
            said = f": {process.last_words}" if process.last_words else ""
            raise PlayerError(f"{self.name} ended with code {code}{said}")


def vlc_words(opening: Opening) -> list[str]:
    """How VLC is opened; several files of subtitles are parted by '#'."""
    words = ["--play-and-exit", f"--meta-title={opening.title}"]
    if opening.start_seconds:
        words.append(f"--start-time={opening.start_seconds:.3f}")
    if opening.subtitles:
        words.append("--input-slave=" + "#".join(each.url for each in opening.subtitles))
    return [*words, opening.url]


def ffplay_words(opening: Opening) -> list[str]:
    """How ffplay is opened; it has no way to be given subtitles by a URL."""
    words = ["-loglevel", "error", "-autoexit", "-window_title", opening.title]
    if opening.start_seconds:
        words += ["-ss", f"{opening.start_seconds:.3f}"]
    return [*words, "-i", opening.url]


def any_words(opening: Opening) -> list[str]:
    """How a program is opened of which nothing is known."""
    return [opening.url]


def _places(opening: Opening) -> dict[str, str]:
    """What stands for what in a command."""
    return {
        "{url}": opening.url,
        "{playlist}": opening.playlist_url,
        "{start}": f"{opening.start_seconds:.3f}",
        "{title}": opening.title,
    }


def _filled(word: str, places: dict[str, str]) -> str:
    return _PLACE.sub(lambda place: places[place.group()], word)
