"""How far runs are: in words, on a terminal and elsewhere."""

import io

from rich.console import Console

from experiments.figures.display import SweepDisplay, stand
from experiments.figures.jobs import Job, Outcome, carry_out
from experiments.swarms.engine import Progress
from experiments.swarms.presets import scaled
from experiments.swarms.text import describe
from tests.experiments.figures.fake import FakeEngine

SCENARIO = describe(scaled("quick").with_(viewers=2))
JOBS = [Job("1", "hybrid, seed 1", SCENARIO), Job("2", "hybrid, seed 2", SCENARIO)]


def follow(console, total, **options):
    """Show two jobs: one that succeeds, one that fails."""
    done = carry_out(FakeEngine(), SCENARIO, lambda _: None)
    with SweepDisplay(console, total, **options) as display:
        for job in JOBS:
            display.tell(job, None)
            display.tell(job, Progress(30.0, 90.0, 1, 1, 0.25))
        display.ended(Outcome(JOBS[0], done))
        display.ended(Outcome(JOBS[1], None, "no room on the disk"))
    return console.file.getvalue()


def test_how_a_run_stands():
    words = stand(Progress(30.0, 125.4, 7, 5, 0.431), 20)
    assert words == "1:35 left, 7 of 20 came, 5 watch, offload 43.1%"
    assert stand(Progress(3.0, 2.0, 7, 5, None), 20).startswith("0:00 left")
    assert stand(Progress(3.0, 2.0, 7, 5, None), 20).endswith("offload -")


def test_off_a_terminal_every_end_is_a_line():
    shown = follow(Console(file=io.StringIO(), width=200), 2)
    assert shown.splitlines() == [
        "1 of 2  hybrid, seed 1: offload 89.5% of 49.8%, 0 stalls",
        "2 of 2  hybrid, seed 2: failed: no room on the disk",
    ]


def test_off_a_terminal_a_single_run_tells_how_it_stands():
    shown = follow(Console(file=io.StringIO(), width=200), 1, lines=True)
    assert shown.splitlines()[0] == "1:00 left, 1 of 2 came, 1 watch, offload 25.0%"


def test_on_a_terminal_every_run_has_a_line():
    console = Console(file=io.StringIO(), width=120, force_terminal=True)
    shown = follow(console, 2)
    assert "hybrid, seed 2" in shown
    assert "1 of 2 came" in shown
