"""What people read of runs and figures: pictures of the tables."""

import io

from rich.console import Console

from experiments.figures.agreement import Agreement, Compared
from experiments.figures.catalog import FIGURES
from experiments.figures.figure import Claim, Verdict
from experiments.figures.results import Estimate, Results
from experiments.figures.tables import COLUMNS, show_agreement, show_cells, show_claims, show_run
from tests.experiments.figures.fake import FakeEngine


def picture(show, *what, width=130):
    console = Console(file=io.StringIO(), width=width)
    show(*what, console)
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines())


def test_a_run(task):
    result = FakeEngine().run(task().cell.scenario)
    assert picture(show_run, result) == (
        "offload   89.5% of at most 49.8%, efficiency 179.9%\n"
        "operator  2.36 MB, 0.21 copies of the film (HTTP 2.36 MB, seed 0 B)\n"
        "peers     20.1 MB, waste 1.0 %, regret 2 kB\n"
        "traffic   22.5 MB sent by everyone\n"
        "viewers   2; 0 stalled, 0 times, 0.0 s in all\n"
        "start     p50 250 ms, p95 250 ms\n"
        "upload    89.5 % used; caps respected\n"
        "run       0.5 s, processor 0.4 s, memory 50 MB\n"
        "note      made up"
    )


def test_cells(results_of):
    cells = Results(results_of("5.7").cells[:2])
    head = picture(show_cells, cells).splitlines()[0]
    assert " ".join(head.split()) == " ".join(COLUMNS)
    narrow = picture(show_cells, cells, width=80).splitlines()
    assert narrow[0].split() == ["cell", "offload", "bound", "efficiency", "stalls", "seeds"]
    assert "…" not in narrow[1]
    line = picture(show_cells, cells).splitlines()[1]
    assert line.startswith("rarest-first-2mbps-streaming  69.")
    assert " ± " in line
    assert line.endswith(" 3")


def test_a_long_name_takes_another_line_and_cuts_no_number_off():
    name = "picker-rarest-first-upload_bps-1.5e6-behaviour-download-only"
    cell = Compared(name, "compressed", Estimate(0.715, 0.0, 10), Estimate(0.711, 0.0, 1))
    lines = picture(show_agreement, Agreement([cell], []), width=60).splitlines()
    assert lines[:4] == [
        "cell                               simulated    real  points",
        "compressed                            71.5 %  71.1 %    +0.4",
        "picker-rarest-first-upload_bps-1.",
        "5e6-behaviour-download-only",
    ]


def test_claims():
    claims = FIGURES["5.4"].claims
    judged = [
        (claims[0], Verdict(True, 0.1, "by 10 points")),
        (claims[1], Verdict(False, -0.1, "by -10 points")),
        (Claim("something long " * 8, claims[2].test), Verdict(None, None, "no result")),
    ]
    long = "something long something long something long something long"
    assert picture(show_claims, judged, width=90).splitlines() == [
        f"{'the source says':62}  {'seen':11}  number",
        f"{'hybrid beats beta at every range':62}  {'reproduced':11}  by 10 points",
        f"{'hybrid beats in-order from 9 minutes on':62}  {'not':11}  by -10 points",
        f"{long:62}  cannot tell  no result",
        long,
    ]
