"""Which player opens the film."""

import shlex
import shutil
from pathlib import PurePath
from typing import Final

from toast.common.errors import UsageError
from toast.gateway.players.base import Player
from toast.gateway.players.command import CommandPlayer, any_words, ffplay_words, vlc_words
from toast.gateway.players.mpv import MpvPlayer

__all__ = ["AUTO", "choose_player", "find_player"]

AUTO: Final = ("mpv", "vlc", "ffplay")
"""Those looked for, in this order: the first can tell where it is, the last shows no subtitles."""

_OPENED: Final = {
    "vlc": ("VLC", vlc_words),
    "cvlc": ("VLC", vlc_words),
    "ffplay": ("ffplay", ffplay_words),
}


def choose_player(text: str) -> Player | None:
    """The player that a person asks for.

    Args:
        text: "auto", "none", or a program with arguments as for a shell. A known program (mpv, vlc,
            cvlc, ffplay) is given all that it understands. Any other is given the film's URL as its
            last argument; or, where its arguments say `{url}`, `{playlist}`, `{start}` or
            `{title}`, what these stand for.

    Returns:
        The player; None for "none", and for "auto" where there is none.

    Raises:
        UsageError: there is no such program.
    """
    if text == "none":
        return None
    if text == "auto":
        return find_player()
    try:
        command = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"'{text}' is no command: {str(error).lower()}") from error
    if not command:
        raise UsageError("say which player: auto, none, or a program")
    if shutil.which(command[0]) is None:
        raise UsageError(
            f"there is no player '{command[0]}' here: install it, or use --player none"
        )
    name = PurePath(command[0]).name
    if name == "mpv":
        return MpvPlayer(command)
    shown, words = _OPENED.get(name, (name, any_words))
    return CommandPlayer(shown, command, words)


def find_player() -> Player | None:
    """The best player that is installed, or None."""
    for name in AUTO:
        if shutil.which(name) is not None:
            return choose_player(name)
    return None
