"""What swarms ask of the server's disks: the time of a piece request. Pure."""

from typing import Final

from experiments.arrays.hotspot_figures import placement
from experiments.arrays.pieces import PieceWork
from experiments.figures.claims import above, lies_in
from experiments.figures.figure import Figure, FigureCell
from experiments.figures.results import Results

__all__ = ["PIECE_FIGURES"]

_NAMES: Final = ("naive", "raid1", "rda", "rda, lazy")
_MEMORY: Final = {"no memory": (0, ("1", "2", "4")), "3 GiB": (3 << 30, ("16", "64"))}
"""Bytes of it, and how many swarms there are."""


def _cells(_: str) -> tuple[FigureCell, ...]:
    return tuple(
        FigureCell(
            f"pieces-{name.replace(', ', '-')}-{memory.replace(' ', '-').lower()}-{swarms}",
            PieceWork(
                array=placement(name).with_(cache_bytes=size, hold_seconds=20.0),
                swarms=int(swarms),
            ),
            {"placement": name, "memory": memory, "swarms": swarms},
        )
        for memory, (size, numbers) in _MEMORY.items()
        for swarms in numbers
        for name in _NAMES
    )


def _worst(results: Results) -> float:
    return max(
        cell.estimate("response_p99_seconds").mean
        for cell in results.cells
        if cell.axes["placement"] == "rda, lazy" and cell.axes["memory"] == "3 GiB"
    )


PIECE_FIGURES: Final = (
    Figure(
        name="pieces",
        title="Piece requests of swarms",
        x=("memory", "swarms"),
        series="placement",
        cells=_cells,
        claims=(
            above(
                "rda with lazy answers sooner than naive and raid1, 99th percentile (ours)",
                [
                    (
                        {"placement": name, "memory": "no memory", "swarms": swarms},
                        {"placement": "rda, lazy", "memory": "no memory", "swarms": swarms},
                    )
                    for name in ("naive", "raid1")
                    for swarms in ("1", "2", "4")
                ],
                field="response_p99_seconds",
            ),
            lies_in(
                "rda with lazy, memory empty at first: 99 of 100 within 5 s (ours)",
                _worst,
                0.0,
                5.0,
                lambda seconds: f"{seconds:.3f} s",
            ),
        ),
        field="response_p99_seconds",
        note="Swarms of the source's at the compressed scale, 100 viewers at once that upload half "
        "of the film's rate; each has its own film, and is at its own point of the run. A "
        "minute of requests; memory is empty when it begins.",
    ),
)
