"""What `toast watch` and `toast play` show: a live line for people, JSON lines for programs."""

import asyncio
import sys
from abc import ABC, abstractmethod
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from toast.common.cli import print_json
from toast.common.units import format_bytes, format_rate, format_seconds
from toast.viewer import Source, Viewer

__all__ = ["Display", "make_display"]

_PROGRESS_SECONDS = 1.0


class Display(ABC):
    """Where a viewing's events go."""

    _start_told = False

    @abstractmethod
    def source(self, source: Source) -> None:
        """The film was found."""

    @abstractmethod
    def checking(self, done: int, total: int) -> None:
        """What is on disk is being hashed; called from a thread."""

    @abstractmethod
    def gateway(self, url: str, playlist_url: str) -> None:
        """Players can read the film here."""

    @abstractmethod
    def resumed(self, seconds: float) -> None:
        """The film begins where it was left."""

    @abstractmethod
    def trouble(self, text: str) -> None:
        """A player says that something does not work."""

    @abstractmethod
    def started(self, seconds: float) -> None:
        """The first frame's bytes are there."""

    @abstractmethod
    def progress(self, facts: dict[str, Any]) -> None:
        """How the viewing stands."""

    @abstractmethod
    def report(self, facts: dict[str, Any]) -> None:
        """What the viewing came to."""

    @abstractmethod
    def close(self) -> None:
        """Leave the terminal as it was."""

    def tell_start(self, viewer: Viewer) -> None:
        """Say once that the film has started, if it has."""
        playhead = viewer.playhead
        if not self._start_told and playhead is not None and playhead.start_seconds is not None:
            self._start_told = True
            self.started(playhead.start_seconds)

    async def follow(self, viewer: Viewer) -> None:
        """Show progress until cancelled."""
        while True:
            self.tell_start(viewer)
            self.progress(viewer.progress())
            await asyncio.sleep(_PROGRESS_SECONDS)


class _JsonLines(Display):
    def source(self, source: Source) -> None:
        print_json(
            {
                "event": "source",
                "film": source.metainfo.name,
                "film_bytes": source.metainfo.film_bytes,
                "piece_bytes": source.metainfo.geometry.piece_bytes,
                "info_hash": source.metainfo.info_hash.hex(),
                "origins": source.origins,
                "trackers": source.trackers,
            }
        )

    def checking(self, done: int, total: int) -> None:
        if done == total:
            print_json({"event": "checked", "pieces": total})

    def gateway(self, url: str, playlist_url: str) -> None:
        print_json({"event": "gateway", "url": url, "playlist_url": playlist_url})

    def resumed(self, seconds: float) -> None:
        print_json({"event": "resumed", "position_seconds": seconds})

    def trouble(self, text: str) -> None:
        print_json({"event": "trouble", "text": text})

    def started(self, seconds: float) -> None:
        print_json({"event": "started", "start_seconds": round(seconds, 4)})

    def progress(self, facts: dict[str, Any]) -> None:
        print_json({"event": "progress", **facts})

    def report(self, facts: dict[str, Any]) -> None:
        print_json({"event": "report", **facts})

    def close(self) -> None:
        """Lines are out when they are printed."""


class _Terminal(Display):
    def __init__(self) -> None:
        self._console = Console(stderr=True)
        self._live: Live | None = None
        self._trouble: str | None = None

    def source(self, source: Source) -> None:
        size = format_bytes(source.metainfo.film_bytes)
        self._console.print(f"[bold]{source.metainfo.name}[/bold], {size}", highlight=False)

    def checking(self, done: int, total: int) -> None:
        if done == total:
            self._console.print(f"{total} pieces on disk checked, resuming", highlight=False)

    def resumed(self, seconds: float) -> None:
        line = f"from {format_seconds(seconds)}, where it was left (--start 0 begins anew)"
        self._console.print(line, highlight=False)

    def trouble(self, text: str) -> None:
        self._console.print(text, style="yellow", highlight=False, soft_wrap=True)

    def gateway(self, url: str, playlist_url: str) -> None:  # noqa: ARG002  # one URL is enough to read
        # On standard output, alone on its line: the one thing that a script would want.
        sys.stdout.write(url + "\n")
        sys.stdout.flush()

    def started(self, seconds: float) -> None:
        self._console.print(f"first frame after {seconds * 1000:.0f} ms", highlight=False)

    def progress(self, facts: dict[str, Any]) -> None:
        duration = facts["duration_seconds"]
        share = facts["pieces_have"] / facts["pieces"]
        line = Text.assemble(
            (f"{facts['state']:8} ", "bold red" if facts["state"] == "stalled" else "bold green"),
            f"{format_seconds(facts['position_seconds'])}",
            f"/{format_seconds(duration)}  " if duration else "  ",
            f"buffer {facts['buffer_seconds']:.0f} s  have {share:.0%}  ",
            f"peers {facts['neighbours']} (↓{format_rate(facts['down_rate'])} ",
            f"↑{format_rate(facts['up_rate'])})  ",
            f"from peers {format_bytes(facts['bytes_from_peers'])}, ",
            f"server {format_bytes(facts['bytes_from_seed'] + facts['bytes_from_origin'])}",
        )
        trouble = facts["origin_error"] or facts["tracker_error"]
        if trouble:
            line.append(f"  {trouble}", "yellow")
        if not self._console.is_terminal:
            if trouble and trouble != self._trouble:
                self._console.print(trouble, highlight=False, soft_wrap=True)
            self._trouble = trouble
            return
        if self._live is None:
            self._live = Live(line, console=self._console, transient=True, refresh_per_second=2)
            self._live.start()
        self._live.update(line)

    def report(self, facts: dict[str, Any]) -> None:
        self.close()
        table = Table(show_header=False, box=None)
        server = facts["bytes_from_seed"] + facts["bytes_from_origin"]
        start = facts["start_seconds"]
        rows = {
            "start": "never" if start is None else f"{start * 1000:.0f} ms",
            "stalls": f"{facts['stalls']} ({facts['stall_seconds']:.1f} s)",
            "from other viewers": format_bytes(facts["bytes_from_peers"]),
            "from the server": format_bytes(server),
            "wasted": format_bytes(facts["bytes_wasted"]),
            "given to others": format_bytes(facts["bytes_uploaded"]),
            "film": "complete" if facts["complete"] else "not complete: watch it again to resume",
        }
        for name, value in rows.items():
            table.add_row(name, value)
        self._console.print(table)

    def close(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None


def make_display(as_json: bool) -> Display:
    """The display that fits who reads it."""
    return _JsonLines() if as_json else _Terminal()
