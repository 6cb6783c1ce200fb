"""Figures 4.5 to 4.7, one sick disk; and our own, by the load that it has to bear. Pure."""

from functools import partial
from itertools import pairwise
from typing import Final

from experiments.arrays.disk import Fault, FaultKind
from experiments.arrays.hotspot_figures import PLACEMENTS, placement
from experiments.arrays.work import Measure, Work
from experiments.figures.claims import above, lies_in
from experiments.figures.figure import Claim, Figure, FigureCell
from experiments.figures.results import Results

__all__ = ["SICK_FIGURES"]

_SHARES: Final = ("20 %", "40 %", "60 %", "80 %", "100 %")
_LEVELS: Final = ("0.62", "0.80", "0.90")
_OURS: Final = ("raid1", "rda", "rda, lazy")
_PASSING: Final = {
    words: Fault(disk=0, kind=kind, share=share, begin_seconds=10.0, end_seconds=25.0)
    for words, kind, share in (
        ("a quarter of its speed", FaultKind.STUTTER, 3.0),
        ("every other read fails", FaultKind.ERROR, 0.5),
        ("it is not there", FaultKind.DEATH, 1.0),
    )
}
"""What is wrong with a disk for 15 s."""


def _cells(_: str) -> tuple[FigureCell, ...]:
    return tuple(
        FigureCell(
            f"{name.replace(', ', '-')}-{share.replace(' %', 'pct')}",
            Work(
                scenario=placement(name).with_(
                    faults=(Fault(disk=0, share=float(share[:-2]) / 100),)
                ),
                measure=Measure.AT_SUSTAINED,
            ),
            {"placement": name, "useless": share},
        )
        for share in _SHARES
        for name in PLACEMENTS
    )


def _levels(_: str) -> tuple[FigureCell, ...]:
    return tuple(
        FigureCell(
            f"half-{name.replace(', ', '-')}-{level}",
            Work(
                scenario=placement(name).with_(faults=(Fault(disk=0, share=1.0),)),
                measure=Measure.RUN,
                share=float(level),
            ),
            {"placement": name, "load": level},
        )
        for level in _LEVELS
        for name in _OURS
    )


def _passing(_: str) -> tuple[FigureCell, ...]:
    return tuple(
        FigureCell(
            f"passing-{fault.kind}-{name.replace(', ', '-')}",
            Work(scenario=placement(name).with_(faults=(fault,)), measure=Measure.RUN, share=0.8),
            {"placement": name, "fault": words},
        )
        for words, fault in _PASSING.items()
        for name in _OURS
    )


def _of_lazy(results: Results) -> float:
    cells = [cell for cell in results.cells if cell.axes["placement"] == "rda, lazy"]
    return sum(cell.estimate("incidents").mean for cell in cells)


def _order(field: str, text: str, *names: str, shares: tuple[str, ...] = _SHARES) -> Claim:
    """Each is above the one before it."""
    pairs = [
        ({"placement": more, "useless": share}, {"placement": less, "useless": share})
        for less, more in pairwise(names)
        for share in shares
    ]
    return above(text, pairs, field=field)


def _below(
    field: str, text: str, name: str, others: tuple[str, ...], levels: tuple[str, ...]
) -> Claim:
    pairs = [
        ({"placement": other, "load": level}, {"placement": name, "load": level})
        for other in others
        for level in levels
    ]
    return above(text, pairs, field=field)


_sick = partial(
    Figure,
    x=("useless",),
    series="placement",
    cells=_cells,
    note="Each placement at as many streams as it sustains with all disks well (figure 4.2).",
)
_half = partial(Figure, x=("load",), series="placement", cells=_levels)

SICK_FIGURES: Final = (
    _sick(
        name="4.5",
        title="One fail-stutter disk: incidents",
        field="incidents",
        claims=(
            _order("incidents", "raid1 below rda", "raid1", "rda"),
            _order("incidents", "rda below naive", "rda", "naive"),
            _order("incidents", "naive below raid0", "naive", "raid0"),
            _order("incidents", "raid0 below random", "raid0", "random"),
        ),
    ),
    _sick(
        name="4.6",
        title="One fail-stutter disk: mean starvation",
        field="starved_mean_seconds",
        claims=(
            *(
                _order("starved_mean_seconds", f"rda shorter than {name}", "rda", name)
                for name in ("raid1", "raid0", "naive", "random")
            ),
            _order("starved_mean_seconds", "naive longer than raid1", "raid1", "naive"),
            _order("starved_mean_seconds", "random longer than raid0", "raid0", "random"),
        ),
    ),
    _sick(
        name="4.7",
        title="One fail-stutter disk: longest starvation",
        field="starved_max_seconds",
        claims=(
            *(
                _order("starved_max_seconds", f"rda shorter than {name}", "rda", name)
                for name in ("raid1", "raid0", "naive", "random")
            ),
            _order("starved_max_seconds", "naive shorter than raid0", "naive", "raid0"),
        ),
    ),
    _half(
        name="sick",
        title="One disk at half speed, by the load",
        field="incidents",
        claims=(
            *(
                _below(
                    field,
                    f"rda with lazy: {words} below raid1's, from 0.8 on (ours)",
                    "rda, lazy",
                    ("raid1",),
                    ("0.80", "0.90"),
                )
                for field, words in (
                    ("incidents", "incidents"),
                    ("starved_mean_seconds", "mean"),
                    ("starved_max_seconds", "longest"),
                )
            ),
            *(
                _below(
                    field,
                    f"rda with lazy: {words} below shortest queue's at 0.9 (ours)",
                    "rda, lazy",
                    ("rda",),
                    ("0.90",),
                )
                for field, words in (
                    ("incidents", "incidents"),
                    ("starved_mean_seconds", "mean"),
                    ("starved_max_seconds", "longest"),
                )
            ),
        ),
        note="Load: streams as a share of the closed form's for eight well disks; 0.62 is what "
        "the source ran at (334 of 539). With the sick disk the array can do 0.946.",
    ),
    Figure(
        name="passing",
        title="One disk that is sick for 15 s, at a load of 0.8",
        x=("fault",),
        series="placement",
        cells=_passing,
        field="incidents",
        claims=(
            lies_in(
                "rda with lazy: none starves (ours)",
                _of_lazy,
                0.0,
                0.0,
                lambda count: f"{count:g} incidents",
            ),
            above(
                "raid1 starves where a disk is not there, rda with lazy does not (ours)",
                [
                    (
                        {"placement": "raid1", "fault": "it is not there"},
                        {"placement": "rda, lazy", "fault": "it is not there"},
                    )
                ],
                field="incidents",
            ),
        ),
        note="From the tenth second of the run to its 25th.",
    ),
)
