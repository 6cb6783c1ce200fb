"""Figures 4.2 to 4.4: placements under even and uneven loads. Pure."""

from typing import Final

from experiments.arrays.scenario import ArrayScenario, Load
from experiments.arrays.work import Work
from experiments.figures.claims import above, lies_in
from experiments.figures.figure import Claim, Figure, FigureCell
from experiments.figures.results import Results

__all__ = ["HOTSPOT_FIGURES", "PLACEMENTS", "placement"]

PLACEMENTS: Final = {
    "naive": ("naive", "shortest-queue"),
    "raid1": ("raid1", "shortest-queue"),
    "rda": ("rda", "shortest-queue"),
    "random": ("random", "shortest-queue"),
    "raid0": ("raid0", "shortest-queue"),
    "rda, lazy": ("rda", "lazy"),
}
"""Allocation and scheduler by the name of a bar; the last is ours."""

_HOLD_SECONDS: Final = 200.0
_CACHE_BYTES: Final = 3 << 30
"""Of the source's 4 GB of memory."""
_ZIPF: Final = ("0.5", "1.0")
_OVERLOADS: Final = ("0 %", "20 %", "40 %", "60 %", "80 %")


def placement(name: str) -> ArrayScenario:
    """The source's array under a placement, by the name of its bar."""
    allocation, scheduler = PLACEMENTS[name]
    return ArrayScenario(allocation=allocation, scheduler=scheduler, hold_seconds=_HOLD_SECONDS)


def _slug(*words: str) -> str:
    return "-".join(
        word.replace(", ", "-").replace(" %", "pct").replace(" ", "-") for word in words
    )


def _uniform(_: str) -> tuple[FigureCell, ...]:
    return tuple(
        FigureCell(
            _slug(name), Work(scenario=placement(name)), {"placement": name, "load": "uniform"}
        )
        for name in PLACEMENTS
    )


def _zipf(_: str) -> tuple[FigureCell, ...]:
    cells = []
    for zipf in _ZIPF:
        for bar in ("naive, worst", *PLACEMENTS):
            name = bar.partition(", worst")[0]
            load = Load(zipf=float(zipf), clustered=bar == "naive, worst", mean_gap_seconds=1.0)
            scenario = placement(name).with_(
                load=load, cache_bytes=_CACHE_BYTES, films=1600, hold_seconds=100.0
            )
            axes = {"placement": bar, "zipf": zipf}
            cells.append(FigureCell(_slug(bar, zipf), Work(scenario=scenario), axes))
    return tuple(cells)


def _overload(_: str) -> tuple[FigureCell, ...]:
    return tuple(
        FigureCell(
            _slug(name, overload),
            Work(
                scenario=placement(name).with_(load=Load(overload=float(overload[:-2]) / 100)),
            ),
            {"placement": name, "overload": overload},
        )
        for overload in _OVERLOADS
        for name in ("naive", "raid1", "rda", "rda, lazy")
    )


def _ratio(text: str, one: dict[str, str], other: dict[str, str], low: float, high: float) -> Claim:
    """One cell's streams are so many times another's."""

    def value(results: Results) -> float:
        return results.mean("streams", **one) / results.mean("streams", **other)

    return lies_in(text, value, low, high, lambda ratio: f"{ratio:.3f}")


def _orders(text: str, *pairs: tuple[dict[str, str], dict[str, str]]) -> Claim:
    return above(text, list(pairs), field="streams")


def _of(name: str, **axes: str) -> dict[str, str]:
    return {"placement": name, **axes}


def _zipf_ratio(text: str, one: str, other: str, low: float, high: float) -> Claim:
    """As `_ratio`; the text begins with the parameter."""
    zipf = text.partition(":")[0]
    return _ratio(text, _of(one, zipf=zipf), _of(other, zipf=zipf), low, high)


HOTSPOT_FIGURES: Final = (
    Figure(
        name="4.2",
        title="Uniform load, exactly balanced",
        x=("load",),
        series="placement",
        cells=_uniform,
        claims=(
            _ratio(
                "raid1 = naive within 1.2 % (332-336)", _of("raid1"), _of("naive"), 0.988, 1.012
            ),
            _ratio("rda = naive within 1.2 % (332-336)", _of("rda"), _of("naive"), 0.988, 1.012),
            _orders(
                "random below naive, raid1 and rda (288)",
                *((_of(name), _of("random")) for name in ("naive", "raid1", "rda")),
            ),
            _ratio("random at 0.86 of rda (288 / 334)", _of("random"), _of("rda"), 0.81, 0.91),
            _orders("raid0 below random (256)", (_of("random"), _of("raid0"))),
        ),
        field="streams",
        level="model_streams",
        note="All streams begin within 5 s.",
    ),
    Figure(
        name="4.3",
        title="Zipf, Poisson arrivals of 1 per second",
        x=("zipf",),
        series="placement",
        cells=_zipf,
        claims=(
            _zipf_ratio("0.5: rda leads naive, expected by 14 %", "rda", "naive", 1.09, 1.19),
            _zipf_ratio("0.5: raid1 leads naive, expected by 14 %", "raid1", "naive", 1.09, 1.19),
            _zipf_ratio(
                "0.5: naive, worst loses nearly 50 % of rda", "naive, worst", "rda", 0.4, 0.6
            ),
            _zipf_ratio(
                "1.0: rda is more than twice naive, worst", "rda", "naive, worst", 2.0, 99.0
            ),
            _zipf_ratio("1.0: rda +5 % on naive, expected", "rda", "naive", 1.02, 1.10),
            *(
                _zipf_ratio(f"1.0: rda +15-20 % on {name}", "rda", name, 1.12, 1.23)
                for name in ("raid1", "random", "raid0")
            ),
            _orders(
                "1.0: all but naive, worst above 0.5 (memory)",
                *(
                    (_of(name, zipf="1.0"), _of(name, zipf="0.5"))
                    for name in ("naive", "raid1", "rda", "random", "raid0")
                ),
            ),
        ),
        field="streams",
        level="model_streams",
        note="3 GiB of memory, 1600 films; the model knows no memory.",
    ),
    Figure(
        name="4.4",
        title="One disk or pair overloaded",
        x=("overload",),
        series="placement",
        cells=_overload,
        claims=(
            _ratio(
                "naive loses nearly 40 % at 82.5 %",
                _of("naive", overload="80 %"),
                _of("naive", overload="0 %"),
                0.55,
                0.65,
            ),
            _ratio(
                "raid1 loses 30 % at 75 %",
                _of("raid1", overload="80 %"),
                _of("raid1", overload="0 %"),
                0.65,
                0.75,
            ),
            _ratio(
                "rda has no hot disk",
                _of("rda", overload="80 %"),
                _of("rda", overload="0 %"),
                0.98,
                1.02,
            ),
            _ratio(
                "rda with lazy at 80 % >= 0.98 of the even load (ours)",
                _of("rda, lazy", overload="80 %"),
                _of("rda, lazy", overload="0 %"),
                0.98,
                1.02,
            ),
        ),
        field="streams",
        level="model_streams",
    ),
)
