"""What a run looks like: a live table on a terminal, lines elsewhere, and a table at the end."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from experiments.cells import Cell
from experiments.demo import Demo, ViewerState
from experiments.evidence import Result
from toast.common.units import format_bytes, format_rate, format_seconds

__all__ = ["follow", "show_evidence", "show_results"]

_LIVE_SECONDS = 0.5
_LINE_SECONDS = 5.0


async def follow(demo: Demo, console: Console) -> None:
    """Show how a run stands until cancelled."""
    if not console.is_terminal:
        while True:
            await asyncio.sleep(_LINE_SECONDS)
            if demo.began_at is not None:
                console.print(_line(demo), highlight=False, soft_wrap=True)
    with Live(console=console, auto_refresh=False, transient=True) as live:
        while True:
            live.update(_picture(demo, console.width), refresh=True)
            await asyncio.sleep(_LIVE_SECONDS)


def show_results(demo: Demo, figures: dict[str, Any], console: Console) -> None:
    """The table of viewers and the totals of a run."""
    table = Table(box=None, pad_edge=False)
    table.add_column("viewer", no_wrap=True)
    for heading in ("start", "stalls", "peers", "seed", "origin", "wasted", "uploaded", "of cap"):
        table.add_column(heading, justify="right", no_wrap=True)
    for viewer in demo.viewers:
        table.add_row(viewer.name, *_cells(viewer, demo.upload_rate))
    console.print(table)
    bound = figures["bound"]
    console.print(
        f"offload [bold]{figures['offload']:.1%}[/bold] of at most {bound:.1%}; "
        f"the operator sent {figures['copies']:.2f} copies of the film, "
        f"{format_bytes(figures['operator_bytes'])} "
        f"(HTTP {format_bytes(figures['operator_http_bytes'])}, "
        f"seed {format_bytes(figures['operator_seed_bytes'])}, "
        f"tracker {format_bytes(figures['operator_tracker_bytes'])})",
        highlight=False,
        soft_wrap=True,
    )


def show_evidence(
    cells: Sequence[Cell], results: Mapping[str, Result | None], console: Console
) -> None:
    """What was to be shown, and what came of it."""
    table = Table(box=None, pad_edge=False)
    table.add_column("cell", no_wrap=True)
    table.add_column("verdict", no_wrap=True)
    table.add_column("figures", overflow="fold")
    for cell in cells:
        result = results.get(cell.name)
        if result is None:
            table.add_row(cell.name, "not run", Text(cell.shows))
            continue
        # Only what is judged, each figure once: the rest is in the cell's file.
        names = dict.fromkeys(check.field for check in cell.checks)
        figures = ", ".join(f"{name} {result.figures.get(name)}" for name in names)
        verdict = Text("holds", "green") if result.held else Text("fails", "bold red")
        table.add_row(cell.name, verdict, Text(figures))
        for wrong in result.wrong:
            table.add_row("", "", Text(wrong, "red"))
    console.print(table)


def _cells(viewer: ViewerState, upload_rate: float) -> Sequence[str]:
    report = viewer.report
    if report is None:
        return ["-"] * 8
    allowed = upload_rate * report.presence_seconds
    stalls = f"{report.stalls} ({report.stall_seconds:.1f} s)" if report.stalls else "0"
    return [
        f"{report.start_seconds * 1000:.0f} ms",
        stalls,
        *(
            format_bytes(count)
            for count in (
                report.bytes_from_peers,
                report.bytes_from_seed,
                report.bytes_from_origin,
                report.bytes_wasted,
                report.bytes_uploaded,
            )
        ),
        f"{report.bytes_uploaded / allowed:.0%}" if allowed else "-",
    ]


def _elapsed(demo: Demo) -> float:
    # The event loop's clock is the monotonic one.
    return 0.0 if demo.began_at is None else time.monotonic() - demo.began_at


def _line(demo: Demo) -> str:
    started = [viewer for viewer in demo.viewers if viewer.started]
    watching = [viewer for viewer in started if viewer.report is None]
    sums = {name: _sum(demo, f"bytes_from_{name}") for name in ("peers", "seed", "origin")}
    return (
        f"{format_seconds(_elapsed(demo))}  {len(watching)} watching, "
        f"{len(started) - len(watching)} done, {len(demo.viewers) - len(started)} to come; "
        + ", ".join(f"{name} {format_bytes(count)}" for name, count in sums.items())
        + f"; {_sum(demo, 'stalls')} stalls"
    )


def _sum(demo: Demo, name: str) -> int:
    return sum(int(viewer.progress.get(name) or 0) for viewer in demo.viewers)


def _picture(demo: Demo, width: int) -> Group:
    bar_width = 4 if width < 100 else 20
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("viewer", no_wrap=True)
    table.add_column("playhead", no_wrap=True)
    for heading in ("buffer", "peers", "seed", "origin", "down", "up", "stall"):
        table.add_column(heading, justify="right", no_wrap=True)
    for viewer in demo.viewers:
        table.add_row(*_row(viewer, demo, bar_width))
    title = f"{demo.film.name}, {format_bytes(demo.film_bytes)}, {format_rate(demo.bit_rate)}"
    clock = format_seconds(_elapsed(demo))
    return Group(Text(f"{title}   {clock}   (* with a decoder)"), table)


def _row(viewer: ViewerState, demo: Demo, bar_width: int) -> Sequence[str]:
    name = viewer.name + (" *" if viewer.gateway else "")
    facts = viewer.progress
    if viewer.report is None and not facts:
        wait = max(0.0, viewer.arrives_seconds - _elapsed(demo))
        return [name, "starting" if viewer.started else f"comes in {wait:.0f} s"]
    done = viewer.report is not None
    share = 1.0 if done else min(1.0, viewer.position_seconds / demo.info.duration)
    filled = round(bar_width * share)
    bar = "#" * filled + "." * (bar_width - filled)
    where = "done" if done else format_seconds(viewer.position_seconds)
    counts = [
        format_bytes(float(facts.get(f"bytes_from_{name}") or 0))
        for name in ("peers", "seed", "origin")
    ]
    rates = ["", ""] if done else [format_rate(float(facts.get(k) or 0)) for k in _RATES]
    buffer = "" if done else f"{float(facts.get('buffer_seconds') or 0):.1f} s"
    return [name, f"{bar} {where}", buffer, *counts, *rates, str(facts.get("stalls", 0))]


_RATES = ("down_rate", "up_rate")
