"""Somebody who listens to players, and programs that pass for players."""

import asyncio
import sys
from dataclasses import dataclass, field

from toast.gateway.players import Opening, SideTrack

OPENING = Opening(
    url="http://127.0.0.1:9/films/0/a%20film.mp4",
    playlist_url="http://127.0.0.1:9/films/0/playlist.m3u8",
    title="a film",
    start_seconds=12.5,
    subtitles=(
        SideTrack("http://127.0.0.1:9/films/0/subtitles/0.vtt", "English", "en"),
        SideTrack("http://127.0.0.1:9/films/0/subtitles/1.vtt", "Notes", None),
    ),
)


@dataclass
class Ears:
    """Keeps what a player tells."""

    positions: list = field(default_factory=list)
    troubles: list = field(default_factory=list)
    told: asyncio.Event = field(default_factory=asyncio.Event)

    def position(self, seconds, *, paused, rate):
        self.positions.append((seconds, paused, rate))
        self.told.set()

    def trouble(self, text):
        self.troubles.append(text)


def program(folder, code, name="player"):
    """A program in Python; `arguments` and `folder` are there."""
    path = folder / name
    head = f"#!{sys.executable}\nimport sys\narguments, folder = sys.argv[1:], {str(folder)!r}\n"
    path.write_text(head + code)
    path.chmod(0o755)
    return str(path)
