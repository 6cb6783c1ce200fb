"""What came of a figure's real runs, on a terminal."""

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table

__all__ = ["show_confirmed"]

_HEADINGS = ("bar", "sustained", "streams", "refused", "incidents", "mean, s", "longest, s")
_SHORT = ("incidents", "starved_mean_seconds", "starved_max_seconds")


def show_confirmed(told: Mapping[str, Any], console: Console) -> None:
    """Show every run with what the simulator says of it in brackets, and what was claimed."""
    console.rule(f"{told['figure']} for real: {told['title']}")
    table = Table(box=None, pad_edge=False)
    for nth, heading in enumerate(_HEADINGS):
        table.add_column(heading, justify="right" if nth else "left", no_wrap=True)
    for row in told["runs"]:
        limit = row.get("sustained_simulated", "")
        pairs = [f"{row[name]:g} ({row['simulated'][name]:g})" for name in _SHORT]
        refused = f"{row['refused']} ({row['simulated']['refused']})"
        table.add_row(row["cell"], str(limit), str(row["streams"]), refused, *pairs)
    console.print(table)
    console.print("(in brackets: simulated)", highlight=False)
    if told["disturbed"]:
        console.print(f"{told['disturbed']} runs were disturbed: the machine was too busy")
    if "held_below" in told:
        console.print(
            f"below: {told['held_below']} of {told['runs_below']} hold; "
            f"above: {told['starved_above']} of {told['runs_above']} starve",
            highlight=False,
        )
    for claim in told.get("claims", ()):
        verdict = {True: "yes", False: "no", None: "cannot tell"}[claim["reproduced"]]
        console.print(f"{verdict:11} {claim['claim']}: {claim['words']}", highlight=False)
