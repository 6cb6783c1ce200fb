"""A figure of our own: whom viewers connect to, also while some of them leave or jump."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from experiments.figures.claims import Pairs, above, lies_in, percent
from experiments.figures.figure import Figure, FigureCell, make_cell
from experiments.figures.results import Results
from experiments.swarms.presets import SCALES
from experiments.swarms.scenario import Arrivals

__all__ = ["NEIGHBOURS"]

_POLICIES: Final = ("ahead", "random", "everyone")
_UPLOADS: Final = ("2 Mb/s", "1 Mb/s")
_CROWDS: Final[Mapping[str, Mapping[str, float]]] = {
    "all watch to the end": {},
    "20 % leave": {"leaving_share": 0.2},
    "20 % jump": {"seeking_share": 0.2},
    "20 % leave, 20 % jump": {"leaving_share": 0.2, "seeking_share": 0.2},
}


def _scenario(scale: str) -> dict[str, Any]:
    """At the small scale that of a prototype which a chain of viewers took from 0.73 to 0.91."""
    if scale != "quick":
        return {}
    base = SCALES[scale].film
    return {
        "viewers": 40,
        "film": replace(base, duration_seconds=90.0, piece_bytes=256 * 1024),
        "arrivals": Arrivals(spacing_seconds=4.5),
        "picker_options": {"in_order_seconds": 22.5},
        "run_seconds": None,
    }


def _cells(scale: str) -> tuple[FigureCell, ...]:
    return tuple(
        make_cell(
            scale,
            "hybrid",
            upload,
            extra={"neighbours": neighbours, "crowd": crowd},
            changes={**_scenario(scale), "neighbours": neighbours, **shares},
        )
        for upload in _UPLOADS
        for neighbours in _POLICIES
        for crowd, shares in _CROWDS.items()
    )


def _at(neighbours: str, upload: str, crowd: str) -> dict[str, str]:
    return {"neighbours": neighbours, "upload": upload, "crowd": crowd}


def _ahead_of(other: str) -> Pairs:
    return [
        (_at("ahead", upload, crowd), _at(other, upload, crowd))
        for upload in _UPLOADS
        for crowd in _CROWDS
    ]


def _best(results: Results) -> float:
    return results.mean(**_at("ahead", "2 Mb/s", "all watch to the end"))


NEIGHBOURS: Final = Figure(
    name="neighbours",
    title="Neighbours, hybrid, streaming",
    x=("neighbours", "upload"),
    series="crowd",
    cells=_cells,
    claims=(
        lies_in(
            "ahead reaches 90 % at 2 Mb/s where all watch to the end", _best, 0.9, 1.0, percent
        ),
        above("ahead is above random neighbours in every cell", _ahead_of("random")),
        above("ahead is above everyone in every cell", _ahead_of("everyone")),
        above(
            "ahead is above random for the first ten viewers in every cell",
            _ahead_of("random"),
            field="offload_first_ten",
        ),
    ),
    note="The claims are our own: the source has but one way to choose neighbours.",
)
"""Not one of the source's."""
