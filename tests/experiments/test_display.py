"""What people see of a run: every viewer, in every state, in the width of a terminal."""

import asyncio
import contextlib
import io
import time

import pytest
from rich.console import Console

from experiments.accounting import ViewerReport
from experiments.demo import Demo, DemoSettings
from experiments.display import follow, show_results

PROGRESS = {
    "position_seconds": 3.0,
    "buffer_seconds": 1.25,
    "bytes_from_peers": 400_000,
    "bytes_from_seed": 50_000,
    "bytes_from_origin": 6_000,
    "down_rate": 125_000.0,
    "up_rate": 60_000.0,
    "stalls": 0,
}
REPORT = ViewerReport(
    film_bytes=750_000,
    start_seconds=0.123,
    stalls=2,
    stall_seconds=1.5,
    bytes_from_peers=700_000,
    bytes_from_seed=30_000,
    bytes_from_origin=20_000,
    bytes_wasted=1_000,
    bytes_uploaded=375_000,
    presence_seconds=6.0,
    arrived_at=0.0,
    departed_at=6.0,
    sha256=None,
    complete=False,
    choice_share=None,
    requested_pieces=0,
)
FIGURES = {
    "offload": 0.5,
    "bound": 0.75,
    "copies": 1.5,
    "operator_bytes": 1_500_000,
    "operator_http_bytes": 1_000_000,
    "operator_seed_bytes": 499_000,
    "operator_tracker_bytes": 1_000,
}


@pytest.fixture
def demo(small_film):
    """Four viewers: one is done, one watches, one has just come, one is to come."""
    run = Demo(small_film, DemoSettings(viewers=4, spacing_seconds=1000.0), lambda _: None)
    run.began_at = time.monotonic()
    done, watching, come, _ = run.viewers
    done.started = watching.started = come.started = True
    done.report = REPORT
    done.progress = watching.progress = PROGRESS
    return run


async def shown(demo, *, terminal, width=120):
    """What appears until the first pause."""
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=width, height=40)
    task = asyncio.create_task(follow(demo, console))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    return out.getvalue()


async def test_a_terminal_shows_every_viewer_in_its_state(demo):
    text = await shown(demo, terminal=True)
    assert "viewer-1" in text
    assert "done" in text
    assert "viewer-3 *" in text
    assert "starting" in text
    assert "comes in 3000 s" in text or "comes in 2999 s" in text
    assert "##########.......... 0:03" in text
    assert "1.2 s" in text
    assert "400 kB" in text
    assert "1 Mb/s" in text


async def test_eighty_columns_are_enough(demo):
    """Nothing is cut off, and rates of three digits have room."""
    demo.viewers[1].progress = PROGRESS | {
        "down_rate": 123_000.0,
        "up_rate": 124_000.0,
        "bytes_from_seed": 10_100_000,
        "bytes_from_origin": 10_100_000,
    }
    text = await shown(demo, terminal=True, width=80)
    assert "\u2026" not in text
    assert "##.. 0:03" in text
    assert "984 kb/s 992 kb/s" in text


async def test_elsewhere_there_is_a_line_now_and_then(demo, monkeypatch):
    monkeypatch.setattr("experiments.display._LINE_SECONDS", 0.0)
    text = await shown(demo, terminal=False)
    assert text.startswith("0:00  2 watching, 1 done, 1 to come; peers 800 kB, seed 100 kB")
    assert "\x1b" not in text


def test_the_results_name_every_viewer_and_the_totals(demo):
    out = io.StringIO()
    show_results(demo, FIGURES, Console(file=out, width=80))
    lines = out.getvalue().splitlines()
    assert all(len(line) <= 80 for line in lines[:5])
    (first,) = (line for line in lines if line.startswith("viewer-1"))
    assert "123 ms" in first
    assert "2 (1.5 s)" in first
    assert "50%" in first  # 375 kB of 6 s at 1 Mb/s
    assert sum(line.startswith("viewer-") for line in lines) == 4
    assert "offload 50.0% of at most 75.0%" in lines[-1]
    assert "1.50 copies of the film, 1.5 MB" in lines[-1]
