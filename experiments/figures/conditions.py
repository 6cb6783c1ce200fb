"""Figures 5.8 to 5.11 and the arrivals: small buffers, latency, traffic, and when viewers come."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np

from experiments.bound import Behaviour
from experiments.figures.claims import Pairs, above, apart, lies_in, pairs, percent, within_bound
from experiments.figures.figure import (
    PICKERS,
    UPLOADS,
    Claim,
    Figure,
    FigureCell,
    Verdict,
    make_cell,
)
from experiments.figures.results import Results
from experiments.swarms.presets import SCALES
from experiments.swarms.scenario import ArrivalKind, Arrivals, Link

__all__ = ["CONDITION_FIGURES"]

NEW: Final = ("in-order", "beta", "hybrid")
_BUFFERS: Final[Mapping[str, float]] = {"25 %": 0.25, "50 %": 0.5, "75 %": 0.75, "100 %": 1.0}
_BARELY: Final = 0.05
"""An offload that changes by less has barely changed."""


# -- 5.8 -------------------------------------------------------------------------------------------


def _buffers_cells(scale: str) -> tuple[FigureCell, ...]:
    return tuple(
        make_cell(
            scale,
            picker,
            extra={"buffer": label},
            changes={"buffer_fraction": fraction} if fraction < 1 else None,
        )
        for label, fraction in _BUFFERS.items()
        for picker in PICKERS
    )


def _keeps(picker: str, buffer: str) -> dict[str, str]:
    return {"picker": picker, "buffer": buffer}


def _sharpness(results: Results) -> float:
    """Least loss from 50 to 25 % of a new picker, over its loss from 100 to 50 %."""
    losses = []
    for picker in NEW:
        whole, half, quarter = (
            results.mean(**_keeps(picker, buffer)) for buffer in ("100 %", "50 %", "25 %")
        )
        losses.append((half - quarter) - max(0.0, whole - half))
    return min(losses)


def _rarest_change(results: Results) -> float:
    means = [results.mean(**_keeps("rarest-first", buffer)) for buffer in _BUFFERS]
    return max(means) - min(means)


def _hybrid_is_like(results: Results) -> Verdict:
    """Nearer to in-order with much room, and nearer to beta with little."""

    def nearer_to_in_order(buffer: str) -> float:
        hybrid, in_order, beta = (
            results.mean(**_keeps(picker, buffer)) for picker in ("hybrid", "in-order", "beta")
        )
        return abs(hybrid - beta) - abs(hybrid - in_order)

    large, small = (nearer_to_in_order(buffer) for buffer in ("75 %", "25 %"))
    words = (
        f"by {100 * large:+.1f} points nearer to in-order at 75 %,"
        f" by {-100 * small:+.1f} nearer to beta at 25 %"
    )
    return Verdict(large > 0 > small, min(large, -small), words)


_BUFFER = Figure(
    name="5.8",
    title="Limited buffers, streaming, 2 Mb/s",
    x=("picker",),
    series="buffer",
    cells=_buffers_cells,
    claims=(
        above(
            "the new pickers lose with a buffer of 25 %",
            [(_keeps(picker, "100 %"), _keeps(picker, "25 %")) for picker in NEW],
        ),
        lies_in(
            "they lose more from 50 to 25 % than from 100 to 50 %",
            _sharpness,
            1e-9,
            1.0,
            lambda value: f"by {100 * value:+.1f} points at least",
        ),
        Claim(
            "hybrid is like in-order with a large buffer, like beta with a small one",
            _hybrid_is_like,
        ),
        lies_in(
            f"rarest-first barely changes (less than {100 * _BARELY:.0f} points)",
            _rarest_change,
            0.0,
            _BARELY,
            lambda value: f"{100 * value:.1f} points between its best and its worst",
        ),
        above(
            "rarest-first is slightly better at 25 % than with more",
            pairs(
                [_keeps("rarest-first", "25 %")],
                [_keeps("rarest-first", buffer) for buffer in ("50 %", "75 %", "100 %")],
            ),
        ),
        above(
            "rarest-first is the best of all at 25 %",
            pairs([_keeps("rarest-first", "25 %")], [_keeps(picker, "25 %") for picker in NEW]),
        ),
        above(
            "with 50 % and more the new pickers pay",
            [
                (_keeps(picker, buffer), _keeps("rarest-first", buffer))
                for buffer in ("50 %", "75 %", "100 %")
                for picker in NEW
            ],
        ),
    ),
)


# -- 5.9 -------------------------------------------------------------------------------------------

_MS: Final = 1e-3
# One-way delays, and how many of ten machines have them; the operator's is one of those without.
_LATENCIES: Final[Mapping[str, Mapping[float, float]]] = {
    "0 ms": {},
    "10 ms": {5 * _MS: 1},
    "mixed A": {0.0: 4, 1 * _MS: 4, 2 * _MS: 1, 5 * _MS: 1},
    "mixed B": {0.0: 3, 4 * _MS: 2, 5 * _MS: 5},
}


def _latency_cells(scale: str) -> tuple[FigureCell, ...]:
    return tuple(
        make_cell(
            scale,
            picker,
            upload,
            Behaviour.SEEDING,
            extra={"latency": label},
            changes=_delays(UPLOADS[upload] * SCALES[scale].film.bit_rate_bps, delays),
        )
        for upload in ("1 Mb/s", "2 Mb/s")
        for label, delays in _LATENCIES.items()
        for picker in (("rarest-first", "hybrid") if scale == "quick" else PICKERS)
    )


def _delays(upload_bps: float, delays: Mapping[float, float]) -> dict[str, Any]:
    """Fields of a scenario in which viewers and the operator have such delays."""
    if not delays:
        return {}
    links = tuple(
        Link(upload_bps=upload_bps, latency_seconds=seconds, share=share)
        for seconds, share in delays.items()
    )
    return {"links": links, "server_latency_seconds": min(delays)}


def _against_none(*latencies: str) -> Callable[[Results], Pairs]:
    """Every cell with such a latency beside the one without."""

    def order(results: Results) -> Pairs:
        found = []
        for cell in results.cells:
            if cell.axes["latency"] in latencies:
                place = {axis: cell.axes[axis] for axis in ("picker", "upload", "latency")}
                found.append((place, {**place, "latency": "0 ms"}))
        return found

    return order


_LATENCY = Figure(
    name="5.9",
    title="Latency, seeding",
    x=("upload", "latency"),
    series="picker",
    cells=_latency_cells,
    note="Real viewers have an emulated network where there are delays, and loopback where none.",
    claims=(
        apart(
            "a round trip of 10 ms changes less than 2.1 points everywhere",
            _against_none("10 ms"),
            0.021,
        ),
        apart(
            "mixed delays change less than 2.8 points",
            _against_none("mixed A", "mixed B"),
            0.028,
        ),
    ),
)


# -- 5.10 and 5.11 ---------------------------------------------------------------------------------


def _traffic_cells(scale: str) -> tuple[FigureCell, ...]:
    return tuple(
        make_cell(scale, picker, upload, behaviour)
        for upload in ("1 Mb/s", "2 Mb/s")
        for behaviour in (Behaviour.STREAMING, Behaviour.SEEDING)
        for picker in PICKERS
    )


def _case(upload: str, behaviour: str, *pickers: str) -> list[dict[str, str]]:
    return [
        {"picker": picker, "upload": upload, "behaviour": behaviour}
        for picker in pickers or PICKERS
    ]


_AT_FULL: Final = [
    (_case("2 Mb/s", behaviour, picker)[0], _case("2 Mb/s", behaviour, "rarest-first")[0])
    for behaviour in ("streaming", "seeding")
    for picker in NEW
]


def _seeding_range(results: Results) -> Verdict:
    """The headline: the best picker with seeding viewers, at either upload cap."""
    verdicts = []
    for upload, level in (("1 Mb/s", 0.7), ("2 Mb/s", 0.9)):
        places = _case(upload, "seeding")
        value = max(results.mean(**place) for place in places)
        bound = max(results.mean("bound", **place) for place in places)
        verdicts.append(within_bound(value, level, bound, f"{percent(value)} at {upload}"))
    words = ", ".join(verdict.words for verdict in verdicts)
    seen = {verdict.reproduced for verdict in verdicts}
    reproduced = False if False in seen else None if None in seen else True
    return Verdict(reproduced, verdicts[0].number, words)


def _more_traffic(results: Results) -> float:
    """Traffic of hybrid over that of rarest-first, less 1, streaming at 1 Mb/s."""
    hybrid, rarest = (
        results.mean("total_bytes", **place)
        for place in _case("1 Mb/s", "streaming", "hybrid", "rarest-first")
    )
    return hybrid / rarest - 1


def _traffic_spread(results: Results) -> float:
    traffic = [
        results.mean("total_bytes", **place)
        for upload in ("1 Mb/s", "2 Mb/s")
        for behaviour in ("streaming", "seeding")
        for place in _case(upload, behaviour)
    ]
    return max(traffic) / min(traffic) - 1


_SAVINGS = Figure(
    name="5.10",
    title="What the server saves",
    x=("upload", "behaviour"),
    series="picker",
    cells=_traffic_cells,
    claims=(
        Claim("with seeding viewers the server sends 70 to 90 % less", _seeding_range),
        above("rarest-first saves least at 2 Mb/s", _AT_FULL),
        apart(
            "hybrid and rarest-first save alike at 1 Mb/s, streaming (within 3 points)",
            pairs(
                _case("1 Mb/s", "streaming", "hybrid"), _case("1 Mb/s", "streaming", "rarest-first")
            ),
            0.03,
        ),
    ),
)
_TRAFFIC = Figure(
    name="5.11",
    title="Total traffic of everyone",
    x=("upload", "behaviour"),
    series="picker",
    field="total_bytes",
    cells=_traffic_cells,
    note="Bytes sent by everyone; the source counts them where they are received, too.",
    claims=(
        lies_in(
            "pickers, caps and behaviours make small differences (less than 15 %)",
            _traffic_spread,
            0.0,
            0.15,
            lambda value: f"the most is {percent(value)} above the least",
        ),
        above(
            "rarest-first makes most traffic at 2 Mb/s",
            [(rarest, new) for new, rarest in _AT_FULL],
            field="total_bytes",
        ),
        above(
            "in-order makes least traffic at 2 Mb/s",
            [
                pair
                for behaviour in ("streaming", "seeding")
                for pair in pairs(
                    _case("2 Mb/s", behaviour, "rarest-first", "beta", "hybrid"),
                    _case("2 Mb/s", behaviour, "in-order"),
                )
            ],
            field="total_bytes",
        ),
        lies_in(
            "hybrid makes 5 % more than rarest-first at 1 Mb/s, streaming (2 to 8 %)",
            _more_traffic,
            0.02,
            0.08,
            lambda value: f"{100 * value:+.1f} %",
        ),
        above(
            "seeding viewers make less traffic than streaming ones",
            [
                (_case(upload, "streaming", picker)[0], _case(upload, "seeding", picker)[0])
                for upload in ("1 Mb/s", "2 Mb/s")
                for picker in PICKERS
            ],
            field="total_bytes",
        ),
    ),
)


# -- arrivals --------------------------------------------------------------------------------------


def _arrivals_cells(scale: str) -> tuple[FigureCell, ...]:
    base = SCALES[scale]
    # The source says no more than 90 viewers, a smaller film, and 2 minutes between them. Half the
    # length leaves 15 of them watching at once.
    film = replace(base.film, duration_seconds=base.film.duration_seconds / 2)
    spacing = film.duration_seconds / 15
    options = {
        name: value / 2
        for name, value in (base.picker_options or {"in_order_seconds": 900}).items()
    }
    return tuple(
        make_cell(
            scale,
            picker,
            extra={"arrivals": str(kind)},
            changes={
                "film": film,
                "viewers": min(90, base.viewers),
                "arrivals": Arrivals(kind=kind, spacing_seconds=spacing),
                "run_seconds": None,
                "picker_options": options if picker == "hybrid" else {},
            },
        )
        for kind in (ArrivalKind.UNIFORM, ArrivalKind.POISSON, ArrivalKind.ALL_AT_ONCE)
        for picker in PICKERS
    )


def _change(kind: str, results: Results) -> float:
    """Offload with such arrivals over that with uniform ones, less 1: the mean of the pickers."""
    return float(
        np.mean(
            [
                results.mean(picker=picker, arrivals=kind)
                / results.mean(picker=picker, arrivals="uniform")
                - 1
                for picker in PICKERS
            ]
        )
    )


_ARRIVALS = Figure(
    name="arrivals",
    title="Arrivals, a film of half the length, streaming, 2 Mb/s",
    x=("arrivals",),
    series="picker",
    cells=_arrivals_cells,
    claims=(
        lies_in(
            "all at once is 21 % worse than uniform on average (11 to 31 %)",
            lambda results: -_change("all-at-once", results),
            0.11,
            0.31,
            lambda value: f"{percent(value)} worse",
        ),
        lies_in(
            "Poisson is within 2 % of uniform on average",
            lambda results: abs(_change("poisson", results)),
            0.0,
            0.02,
            lambda value: f"{percent(value)} apart",
        ),
    ),
)

CONDITION_FIGURES: Final = (_BUFFER, _LATENCY, _SAVINGS, _TRAFFIC, _ARRIVALS)
