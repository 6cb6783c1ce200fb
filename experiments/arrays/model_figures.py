"""Figures 3.2 to 3.4, the prototype beside the model; and more of the same. Pure."""

from typing import Final

from experiments.arrays.disk import SATA_1, SATA_300, DiskModel
from experiments.arrays.scenario import ArrayScenario
from experiments.arrays.work import Work
from experiments.figures.claims import lies_in
from experiments.figures.figure import Claim, Figure, FigureCell, Verdict
from experiments.figures.results import Results

__all__ = ["MODEL_FIGURES", "discrepancy"]

_GIGABITS: Final = 1.9e9 / 8
"""What two gigabit links carry of TCP payload (the thesis, section 3.3)."""
_RATES: Final = (6, 12, 18, 25)
_BUS: Final = {4: 431e6 / 8, 6: 458e6 / 8}
"""r_d of each of so many SATA-1 disks that share a bus (section 3.2), bytes per second."""
_LOW: Final = "1 Mb/s"


def _cell(
    array: str,
    disk: DiskModel,
    disks: int,
    megabits: int,
    *,
    allocation: str = "naive",
    link: float | None = _GIGABITS,
) -> FigureCell:
    scenario = ArrayScenario(
        disks=(disk,) * disks,
        allocation=allocation,
        scheduler="lazy",
        stream_rate=megabits * 1e6 / 8,
        link_rate=link,
        hold_seconds=200.0,
    )
    axes = {
        "array": array,
        "disks": f"{disks} disk{'s' * (disks > 1)}",
        "rate": f"{megabits} Mb/s",
        "allocation": allocation,
    }
    return FigureCell(f"{array}-{disks}-{megabits}-{allocation}", Work(scenario=scenario), axes)


def _sata_1(disks: int, megabits: int) -> FigureCell:
    disk = DiskModel(access_seconds=SATA_1.access_seconds, rate=_BUS.get(disks, SATA_1.rate))
    return _cell("SATA-1", disk, disks, megabits)


def _sata_300(disks: int, megabits: int) -> FigureCell:
    return _cell("SATA-300", SATA_300, disks, megabits)


def discrepancy(results: Results) -> float:
    """Mean difference between what was measured and the model, as a share of the model."""
    gaps = [
        abs(cell.estimate("streams").mean / int(cell.estimate("model_streams").mean) - 1)
        for cell in results.cells
    ]
    return sum(gaps) / len(gaps)


def _near(text: str, most: float) -> Claim:
    return lies_in(text, discrepancy, 0.0, most, lambda gap: f"{100 * gap:.1f} % on the mean")


def _at(results: Results, disks: str, rate: str) -> float:
    return results.mean("streams", disks=disks, rate=rate)


def _within(allocation: str, share: float | None) -> Claim:
    """Every cell of a placement is so near to floor(model), or within a stream per disk of it."""
    near = f"{share:.0%}" if share is not None else "a stream per disk"

    def test(results: Results) -> Verdict:
        worst, words = 0.0, ""
        for cell in results.cells:
            if cell.axes["allocation"] != allocation:
                continue
            model = int(cell.estimate("model_streams").mean)
            short = model - cell.estimate("streams").mean
            disks = int(cell.axes["disks"].split()[0])
            part = short / (share * model if share is not None else disks)
            if part >= worst or not words:
                worst, words = part, f"{cell.name}: {short:+.1f} below {model}"
        return Verdict(worst <= 1.0, worst, f"worst {words}")

    return Claim(f"{allocation} within {near} of floor(model) (ours)", test)


_LINK_NOTE: Final = "The link carries 1.9 Gb/s of films; the model is capped by it, too."

MODEL_FIGURES: Final = (
    Figure(
        name="3.2",
        title="SATA-1: model and measured",
        x=("disks", "rate"),
        series="allocation",
        cells=lambda _: tuple(_sata_1(d, rate) for d in (1, 2, 4, 6) for rate in _RATES),
        claims=(_near("the prototype is within 11 % of the model on the mean", 0.11),),
        field="streams",
        level="model_streams",
        note=_LINK_NOTE,
    ),
    Figure(
        name="3.3",
        title="SATA-300: model and measured",
        x=("disks", "rate"),
        series="allocation",
        cells=lambda _: tuple(_sata_300(d, rate) for d in (1, 2, 4, 6, 8) for rate in _RATES),
        claims=(
            _near("the prototype is within 11 % of the model on the mean", 0.11),
            lies_in(
                "8 disks: 290 streams of 6 Mb/s (the link: 316)",
                lambda results: _at(results, "8 disks", "6 Mb/s"),
                290,
                317,
                lambda streams: f"{streams:.0f}",
            ),
            lies_in(
                "8 disks: 74 streams of 25 Mb/s (the link: 76)",
                lambda results: _at(results, "8 disks", "25 Mb/s"),
                74,
                77,
                lambda streams: f"{streams:.0f}",
            ),
        ),
        field="streams",
        level="model_streams",
        note=_LINK_NOTE,
    ),
    Figure(
        name="3.4",
        title="1 Mb/s: model and measured",
        x=("array", "disks"),
        series="rate",
        cells=lambda _: (
            *(_sata_1(disks, 1) for disks in (1, 2, 4, 6)),
            *(_sata_300(disks, 1) for disks in (1, 2, 4, 6, 8)),
        ),
        claims=(
            _near("within 15 % on 1-2 (SATA-1) or 1-4 (SATA-300) disks; beyond, CPU-bound", 0.15),
        ),
        field="streams",
        level="model_streams",
        note="The simulator knows no processor, which was the limit of the source's prototype.",
    ),
    Figure(
        name="model",
        title="Placements against the model, no link",
        x=("disks", "rate"),
        series="allocation",
        cells=lambda _: tuple(
            _cell("SATA-1", SATA_1, disks, rate, allocation=allocation, link=None)
            for disks in (1, 2, 4, 8)
            for rate in _RATES
            for allocation in ("naive", "raid1", "rda")
            if disks > 1 or allocation == "naive"
        ),
        claims=(_within("naive", 0.05), _within("raid1", 0.05), _within("rda", None)),
        field="streams",
        level="model_streams",
        note="Not in the source: rda with lazy scheduling.",
    ),
)
