"""What came of real runs, as it is told on a terminal."""

import io

from rich.console import Console

from experiments.arrays.confirmed import show_confirmed

QUIET = {"refused": 0, "incidents": 0, "starved_mean_seconds": 0.0, "starved_max_seconds": 0.0}
BUSY = {**QUIET, "incidents": 7, "starved_mean_seconds": 0.123, "starved_max_seconds": 1.5}


def shown(**told):
    console = Console(record=True, width=80, file=io.StringIO())
    show_confirmed({"figure": "4.2", "title": "Even", "disturbed": 0, **told}, console)
    return " ".join(console.export_text().split())


def row(figures, simulated=QUIET, **more):
    return {"cell": "rda", "streams": 78, **figures, "simulated": simulated, **more}


def test_both_sides_of_a_limit_are_told_beside_the_prediction():
    text = shown(
        runs=[row(QUIET, sustained_simulated=82), row(BUSY, BUSY, sustained_simulated=82)],
        held_below=1,
        runs_below=1,
        starved_above=1,
        runs_above=1,
    )
    assert "bar limit streams incidents mean, s longest, s" in text
    assert "rda 82 78 7 (7) 0.12 (0.12) 1.50 (1.50)" in text
    assert "below: 1 of 1 hold; above: 1 of 1 starve" in text


def test_refusals_and_limits_are_told_where_there_are_some():
    assert "refused" not in shown(runs=[row(QUIET)])
    text = shown(runs=[row({**QUIET, "refused": 80})])
    assert "bar streams refused incidents" in text
    assert "rda 78 80 0 (0)" in text


def test_claims_are_told_in_words():
    claims = [
        {"claim": f"claim {n}", "reproduced": seen, "words": "0.5"}
        for n, seen in enumerate((True, False, None))
    ]
    text = shown(runs=[row(QUIET)], claims=claims)
    assert "reproduced claim 0: 0.5 not claim 1: 0.5 cannot tell claim 2: 0.5" in text


def test_a_machine_that_was_too_busy_is_told():
    assert "disturbed" not in shown(runs=[row(QUIET)])
    assert "3 runs were disturbed" in shown(runs=[row(QUIET)], disturbed=3)
