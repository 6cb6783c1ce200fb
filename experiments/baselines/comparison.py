"""Ours beside the baselines: four cells, each with every client, as a figure and a table. Pure."""

from typing import Any, Final

from experiments.bound import Behaviour
from experiments.figures.claims import above, lies_in
from experiments.figures.figure import Figure, FigureCell, make_cell
from experiments.figures.results import CellResults, Results
from experiments.swarms.scenario import Client

__all__ = ["CELLS", "COLUMNS", "COMPARISON", "comparison_rows"]

CELLS: Final = tuple(
    (behaviour, upload)
    for behaviour in (Behaviour.STREAMING, Behaviour.SEEDING)
    for upload in ("2 Mb/s", "1 Mb/s")
)
"""When viewers leave, and their upload cap: as fast as the film, and half as fast."""

COLUMNS: Final = (
    "behaviour",
    "upload",
    "client",
    "offload",
    "bound",
    "stalls",
    "stalled",
    "start p50",
    "start p95",
    "waste",
    "seeds",
)


def comparison_rows(results: Results) -> list[tuple[str, ...]]:
    """The table under `COLUMNS`, a row for each cell and client: means over its seeds."""
    return [_row(cell) for cell in results.cells]


def _row(cell: CellResults) -> tuple[str, ...]:
    def mean(field: str, form: str, factor: float = 1.0) -> str:
        values = cell.values(field).values()
        return form.format(factor * sum(values) / len(values)) if values else "-"

    return (
        cell.axes["behaviour"],
        cell.axes["upload"],
        cell.axes["client"],
        mean("offload", "{:.1f} %", 100),
        mean("bound", "{:.1f} %", 100),
        mean("stalls", "{:.4g}"),
        mean("stall_seconds", "{:.2f} s"),
        mean("start_seconds_p50", "{:.2f} s"),
        mean("start_seconds_p95", "{:.2f} s"),
        mean("waste", "{:.1f} %", 100),
        str(len(cell.runs)),
    )


def _cells(scale: str) -> tuple[FigureCell, ...]:
    """The same film, arrivals, caps and operator for every client of a cell."""
    return tuple(
        _cell(scale, behaviour, upload, client) for behaviour, upload in CELLS for client in Client
    )


def _cell(scale: str, behaviour: Behaviour, upload: str, client: Client) -> FigureCell:
    ours = make_cell(scale, "hybrid", upload, behaviour)
    axes = {"behaviour": str(behaviour), "upload": upload, "client": str(client)}
    if client is Client.TOAST:
        return FigureCell(ours.name, ours.scenario, axes)
    name = ours.name.replace("hybrid", str(client))
    return FigureCell(name, ours.scenario.with_(name=name, client=client), axes)


def _place(behaviour: Behaviour, upload: str, client: Client) -> dict[str, str]:
    return {"behaviour": str(behaviour), "upload": upload, "client": str(client)}


def _stalls_of_ours(results: Results) -> float:
    return sum(results.mean("stalls", **_place(*cell, Client.TOAST)) for cell in CELLS)


_OTHERS: Final[tuple[Any, ...]] = tuple(client for client in Client if client is not Client.TOAST)

COMPARISON: Final = Figure(
    name="baselines",
    title="ours beside what a person would use instead",
    x=("behaviour", "upload"),
    series="client",
    cells=_cells,
    claims=(
        above(
            "ours is ahead of every baseline in every cell",
            [
                (_place(*cell, Client.TOAST), _place(*cell, other))
                for cell in CELLS
                for other in _OTHERS
            ],
        ),
        lies_in(
            "ours never stalls in any of them",
            _stalls_of_ours,
            0,
            0,
            lambda stalls: f"{stalls:g} stalls",
        ),
    ),
    note="With real viewers alone: the simulator knows ours only.",
)
"""Ours is hybrid, as the source's best was."""
