"""Past the source: schedulers, mixed disks, three copies, read-ahead, admission. Pure."""

from typing import Final

from experiments.arrays.disk import SATA_1, DiskModel, Fault
from experiments.arrays.scenario import ArrayScenario, Load
from experiments.arrays.work import Measure, Work
from experiments.figures.claims import above, lies_in
from experiments.figures.figure import Claim, Figure, FigureCell
from experiments.figures.results import Results

__all__ = ["OWN_FIGURES"]

_SCHEDULERS: Final = {
    "shortest-queue": ("rda", "shortest-queue"),
    "expected-delay": ("rda", "expected-delay"),
    "lazy-plain": ("rda", "lazy-plain"),
    "lazy": ("rda", "lazy"),
    "matched": ("rda", "matched"),
    "lazy, 3 copies": ("rda-3", "lazy"),
    "one queue": ("rda-8", "lazy"),
}
_FAST: Final = DiskModel(access_seconds=0.0085, rate=2 * SATA_1.rate)
_ARRAYS: Final[dict[str, tuple[tuple[DiskModel, ...], tuple[Fault, ...]]]] = {
    "equal": ((SATA_1,) * 8, ()),
    "one half": ((SATA_1,) * 8, (Fault(disk=0, share=1.3),)),
    "two half": ((SATA_1,) * 8, (Fault(disk=0, share=1.3), Fault(disk=3, share=1.3))),
    "mixed": ((SATA_1, _FAST) * 4, ()),
}
"""Disks and what is wrong with them. A disk that reads 1.3 useless bytes for every useful one
takes twice as long for a read of an extent, its seek included."""
_LOAD: Final = 0.9
_READS: Final = 20_000
_READ_SECONDS: Final = ("0.25", "0.5", "1", "2", "5")


def _queueing(_: str) -> tuple[FigureCell, ...]:
    cells = []
    for array, (disks, faults) in _ARRAYS.items():
        for name, (allocation, scheduler) in _SCHEDULERS.items():
            scenario = ArrayScenario(
                disks=disks,
                faults=faults,
                allocation=allocation,
                scheduler=scheduler,
                watch_seconds=5.0,
                hold_seconds=30.0,
            )
            sick = {fault.disk: fault.share for fault in faults}
            per_second = sum(
                1 / (disk.access_seconds + scenario.unit_bytes * (1 + sick.get(n, 0.0)) / disk.rate)
                for n, disk in enumerate(disks)
            )
            load = Load(mean_gap_seconds=1 / (_LOAD * per_second))
            work = Work(scenario=scenario.with_(load=load), measure=Measure.RUN, streams=_READS)
            axes = {"scheduler": name, "array": array}
            cells.append(
                FigureCell(f"{array}-{name}".replace(", ", "-").replace(" ", "-"), work, axes)
            )
    return tuple(cells)


def _ratio(scheduler: str, array: str, most: float) -> Claim:
    def value(results: Results) -> float:
        field = "response_p99_seconds"
        ours = results.mean(field, scheduler=scheduler, array=array)
        return ours / results.mean(field, scheduler="shortest-queue", array=array)

    return lies_in(
        f"{array}: p99 of {scheduler} <= {most:g} x shortest-queue's (ours)",
        value,
        0.0,
        most,
        lambda ratio: f"{ratio:.3f}",
    )


def _prefetch(_: str) -> tuple[FigureCell, ...]:
    return tuple(
        FigureCell(
            f"read-{seconds}s-{megabits}",
            Work(
                scenario=ArrayScenario(
                    scheduler="lazy",
                    stream_rate=megabits * 1e6 / 8,
                    read_seconds=float(seconds),
                    hold_seconds=60.0,
                )
            ),
            {"read": f"{seconds} s", "rate": f"{megabits} Mb/s"},
        )
        for megabits in (6, 25)
        for seconds in _READ_SECONDS
    )


def _admission(_: str) -> tuple[FigureCell, ...]:
    base = ArrayScenario(scheduler="lazy", watch_seconds=300.0, hold_seconds=100.0)
    load = Load(mean_gap_seconds=300.0 / (1.5 * base.model_streams))
    return tuple(
        FigureCell(
            f"admission-{word}-{allocation}",
            Work(
                scenario=base.with_(load=load, admission=word == "on", allocation=allocation),
                measure=Measure.RUN,
                streams=1600,
            ),
            {"admission": word, "placement": allocation},
        )
        for allocation in ("rda", "raid1", "naive")
        for word in ("off", "on")
    )


def _none_starves(results: Results) -> float:
    return sum(
        cell.estimate("incidents").mean for cell in results.cells if cell.axes["admission"] == "on"
    )


OWN_FIGURES: Final = (
    Figure(
        name="schedulers",
        title="Random reads at a load of 0.9",
        x=("array",),
        series="scheduler",
        cells=_queueing,
        claims=(
            _ratio("lazy", "equal", 0.85),
            _ratio("lazy", "one half", 0.75),
            _ratio("lazy", "two half", 0.75),
            _ratio("matched", "equal", 0.85),
            _ratio("matched", "one half", 0.75),
            _ratio("one queue", "equal", 0.85),
            _ratio("expected-delay", "equal", 1.0),
        ),
        field="response_p99_seconds",
        note="Reads of 3.75 MB by Poisson arrivals; mixed: four disks of the source and four of "
        "twice the speed; one queue: lazy, with a copy on every disk, the bound of them all.",
    ),
    Figure(
        name="prefetch",
        title="How much one read brings",
        x=("read",),
        series="rate",
        cells=_prefetch,
        claims=(
            above(
                "reading on to the extent's end serves more than 1 s at a time (ours)",
                [
                    ({"read": "5 s", "rate": rate}, {"read": "1 s", "rate": rate})
                    for rate in ("6 Mb/s", "25 Mb/s")
                ],
                field="streams",
            ),
        ),
        field="streams",
        level="model_streams",
    ),
    Figure(
        name="admission",
        title="Streams offered at 1.5 times what the array can do",
        x=("placement",),
        series="admission",
        cells=_admission,
        claims=(
            lies_in(
                "with admission none starves (ours)",
                _none_starves,
                0.0,
                0.0,
                lambda count: f"{count:g} incidents",
            ),
        ),
        field="incidents",
    ),
)
