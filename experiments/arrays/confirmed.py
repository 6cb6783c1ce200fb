"""What came of a figure's real runs, on a terminal."""

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table

__all__ = ["show_confirmed"]

_SHORT = {
    "incidents": ("incidents", "d"),
    "mean, s": ("starved_mean_seconds", ".2f"),
    "longest, s": ("starved_max_seconds", ".2f"),
}


def show_confirmed(told: Mapping[str, Any], console: Console) -> None:
    """Show every run with what the simulator says of it in brackets, and what was claimed."""
    console.rule(f"{told['figure']} for real: {told['title']}")
    first = {"sustained_simulated": "limit", "streams": "streams", "refused": "refused"}
    first = {name: text for name, text in first.items() if any(r.get(name) for r in told["runs"])}
    table = Table(box=None, pad_edge=False)
    for nth, heading in enumerate(("bar", *first.values(), *_SHORT)):
        table.add_column(heading, justify="right" if nth else "left", no_wrap=True)
    for row in told["runs"]:
        numbers = [str(row[name]) for name in first]
        pairs = [
            f"{row[name]:{form}} ({row['simulated'][name]:{form}})"
            for name, form in _SHORT.values()
        ]
        table.add_row(row["cell"], *numbers, *pairs)
    console.print(table)
    console.print("(limit, and in brackets: simulated)", highlight=False)
    if told["disturbed"]:
        console.print(f"{told['disturbed']} runs were disturbed: the machine was too busy")
    if "held_below" in told:
        console.print(
            f"below: {told['held_below']} of {told['runs_below']} hold; "
            f"above: {told['starved_above']} of {told['runs_above']} starve",
            highlight=False,
        )
    for claim in told.get("claims", ()):
        verdict = {True: "reproduced", False: "not", None: "cannot tell"}[claim["reproduced"]]
        console.print(f"{verdict:11} {claim['claim']}: {claim['words']}", highlight=False)
