"""A grid of one's own: some fields of a scenario in all combinations. Pure."""

from collections.abc import Sequence
from itertools import product

from experiments.errors import ScenarioError
from experiments.figures.figure import FigureCell
from experiments.swarms.changes import with_changes
from experiments.swarms.scenario import Scenario

__all__ = ["grid_cells"]

_LONGEST_NAME = 120


def grid_cells(scenario: Scenario, varied: Sequence[str]) -> tuple[FigureCell, ...]:
    """A cell for every combination of values.

    Args:
        scenario: what all have in common.
        varied: fields and their values, such as `picker=hybrid,beta`.

    Raises:
        ScenarioError: there is no such field, it cannot have such a value, or two cells are named
            alike.
    """
    axes = []
    for entry in varied:
        field, equals, text = entry.partition("=")
        if not equals or not text.strip():
            raise ScenarioError(f"'{entry}' varies nothing: write FIELD=VALUE,VALUE,...")
        axes.append([(field.strip(), value) for value in _split(text)])
    cells = []
    for values in product(*axes):
        changed = with_changes(scenario, [f"{field}={value}" for field, value in values])
        words = [f"{field.rpartition('.')[2]}={value}" for field, value in values]
        name = "".join(c if c.isalnum() or c in "._-=" else "-" for c in ",".join(words))
        name = name.replace("=", "-")[:_LONGEST_NAME]
        cells.append(FigureCell(name, changed.with_(name=name), dict(values)))
    if len({cell.name for cell in cells}) < len(cells):
        raise ScenarioError("two cells have the same values: every value must be given once")
    return tuple(cells)


def _split(text: str) -> list[str]:
    """The parts between commas that stand in no bracket and no quotes."""
    parts, depth, quote = [""], 0, ""
    for c in text:
        if quote:
            quote = "" if c == quote else quote
        elif c in "\"'":
            quote = c
        depth += (not quote) * ((c in "[{") - (c in "]}"))
        if c == "," and depth == 0 and not quote:
            parts.append("")
        else:
            parts[-1] += c
    return [part.strip() for part in parts]
