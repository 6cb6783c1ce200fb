"""What every player is given, and what it tells."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

__all__ = ["Listener", "Opening", "Player", "SideTrack"]


@dataclass(frozen=True, slots=True)
class SideTrack:
    """Subtitles beside the film.

    Attributes:
        url: where they are, as WebVTT.
        label: what a person chooses them by.
        language: tag of BCP 47, or None.
    """

    url: str
    label: str
    language: str | None


@dataclass(frozen=True, slots=True)
class Opening:
    """What a player is opened with.

    Attributes:
        url: the film.
        playlist_url: a playlist with the film in it.
        title: what people call it.
        start_seconds: where to begin.
        subtitles: those beside the film, the preferred ones first.
    """

    url: str
    playlist_url: str
    title: str
    start_seconds: float = 0.0
    subtitles: Sequence[SideTrack] = ()


class Listener(Protocol):
    """Who wants to know what a player does."""

    def position(self, seconds: float, *, paused: bool, rate: float) -> None:
        """The player is there; about once a second, and whenever it pauses, seeks or speeds."""

    def trouble(self, text: str) -> None:
        """Something does not work, but the film goes on: one line."""


class Player(Protocol):
    """A program that plays films."""

    @property
    def name(self) -> str:
        """What people call it."""

    async def play(self, opening: Opening, listener: Listener) -> None:
        """Play a film until its end, or until somebody closes the player.

        Cancelling ends the program.

        Raises:
            PlayerError: it cannot be started, cannot play the film, or died.
        """
