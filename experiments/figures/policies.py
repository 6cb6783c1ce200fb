"""Figures 5.3 to 5.7: pickers, hybrid's range, behaviours and choking."""

from itertools import pairwise
from typing import Final

from experiments.bound import Behaviour
from experiments.errors import MissingResultError
from experiments.figures.claims import above, lies_in, pairs, percent, reaches
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
from experiments.swarms.scenario import Choking

__all__ = ["POLICY_FIGURES"]

STREAMING, SEEDING, DOWNLOAD_ONLY = (
    str(b) for b in (Behaviour.STREAMING, Behaviour.SEEDING, Behaviour.DOWNLOAD_ONLY)
)
NEW: Final = ("in-order", "beta", "hybrid")
"""The source's own pickers."""
_RANGES: Final = (2, 4, 6, 8, 9, 10, 12, 15, 18, 20)
"""Minutes of an hour."""
_FEW_RANGES: Final = (2, 6, 10, 15, 20)


def _at(upload: str, *pickers: str) -> list[dict[str, str]]:
    return [{"picker": picker, "upload": upload} for picker in pickers]


def _pickers_cells(scale: str) -> tuple[FigureCell, ...]:
    return tuple(make_cell(scale, picker, upload) for upload in UPLOADS for picker in PICKERS)


def _spread(results: Results, upload: str) -> float:
    means = [results.mean(**place) for place in _at(upload, *PICKERS)]
    return max(means) - min(means)


def _excess(results: Results) -> float:
    """By how much the best of all cells passes upload / bit rate."""
    return max(
        results.mean(**place) - share
        for upload, share in UPLOADS.items()
        for place in _at(upload, *PICKERS)
    )


def _growth(results: Results) -> float:
    spreads = [_spread(results, upload) for upload in UPLOADS]
    return min(after - before for before, after in pairwise(spreads))


_PICKERS = Figure(
    name="5.3",
    title="Pickers and upload caps, streaming",
    x=("upload",),
    series="picker",
    cells=_pickers_cells,
    claims=(
        lies_in(
            "offload never passes upload / bit rate",
            _excess,
            -1.0,
            0.0,
            lambda excess: f"at most {100 * excess:+.1f} points from it",
        ),
        above(
            "pickers made for streaming beat rarest-first nearly always (7 of 9)",
            [
                pair
                for upload in UPLOADS
                for pair in pairs(_at(upload, *NEW), _at(upload, "rarest-first"))
            ],
            least=7,
        ),
        above(
            "in-order and hybrid lead at 2 Mb/s",
            pairs(_at("2 Mb/s", "in-order", "hybrid"), _at("2 Mb/s", "beta", "rarest-first")),
        ),
        above(
            "beta leads at 1 Mb/s",
            pairs(_at("1 Mb/s", "beta"), _at("1 Mb/s", "in-order", "hybrid", "rarest-first")),
        ),
        above(
            "at 1 Mb/s rarest-first is above in-order and hybrid",
            pairs(_at("1 Mb/s", "rarest-first"), _at("1 Mb/s", "in-order", "hybrid")),
        ),
        above(
            "at 1.5 and 2 Mb/s it is not",
            [
                pair
                for upload in ("1.5 Mb/s", "2 Mb/s")
                for pair in pairs(_at(upload, "in-order", "hybrid"), _at(upload, "rarest-first"))
            ],
        ),
        lies_in(
            "the spread between pickers grows with upload",
            _growth,
            1e-9,
            1.0,
            lambda growth: f"least growth from one cap to the next: {100 * growth:+.1f} points",
        ),
    ),
)


def _ranges_cells(scale: str) -> tuple[FigureCell, ...]:
    best = float(SCALES[scale].picker_options.get("in_order_seconds", 900.0))

    def hybrid(minutes: int) -> FigureCell:
        changes = {"picker_options": {"in_order_seconds": best * minutes / 15}}
        extra = {"range": str(minutes)}
        # A quarter of the hour is the range that hybrid has everywhere else.
        changed = None if minutes == 15 else changes
        return make_cell(scale, "hybrid", extra=extra, changes=changed)

    levels = tuple(make_cell(scale, picker) for picker in ("in-order", "beta"))
    return (*map(hybrid, _FEW_RANGES if scale == "quick" else _RANGES), *levels)


def _ranges(results: Results, least: int = 0) -> list[dict[str, str]]:
    """The places of hybrid with a range of so many minutes at least."""
    return [
        {"picker": "hybrid", "range": cell.axes["range"]}
        for cell in results.cells
        if int(cell.axes.get("range", -1)) >= least
    ]


def _peak(results: Results) -> Verdict:
    """Whether the best range is about a quarter of the hour."""
    places = _ranges(results)
    if not places:
        raise MissingResultError("there is no result of hybrid")
    best = max(places, key=lambda place: results.mean(**place))
    minutes = float(best["range"])
    lead = results.difference(best, {"picker": "hybrid", "range": "15"})
    words = f"best at {minutes:g} minutes, {100 * lead.mean:.1f} points above 15 minutes"
    if 12 <= minutes <= 18:
        return Verdict(True, minutes, words)
    return Verdict(False if lead.sign > 0 else None, minutes, words)


_HYBRID_RANGE = Figure(
    name="5.4",
    title="Hybrid's in-order range, streaming, 2 Mb/s",
    x=("range",),
    series="picker",
    lines=True,
    cells=_ranges_cells,
    note="The range is given in minutes of the source's hour; a shorter film has a shorter range.",
    claims=(
        above(
            "hybrid beats beta at every range",
            lambda results: pairs(_ranges(results), [{"picker": "beta"}]),
        ),
        above(
            "hybrid beats in-order from 9 minutes on",
            lambda results: pairs(_ranges(results, 9), [{"picker": "in-order"}]),
        ),
        Claim("the best range is about 15 minutes (12 to 18)", _peak),
    ),
)


def _behaviours_cells(scale: str, upload: str) -> tuple[FigureCell, ...]:
    return tuple(
        make_cell(scale, picker, upload, behaviour)
        for behaviour in (Behaviour.DOWNLOAD_ONLY, Behaviour.STREAMING, Behaviour.SEEDING)
        for picker in PICKERS
    )


def _does(behaviour: str, *pickers: str) -> list[dict[str, str]]:
    return [{"picker": picker, "behaviour": behaviour} for picker in pickers]


_FULL_UPLOAD = Figure(
    name="5.5",
    title="Behaviours at 2 Mb/s",
    x=("behaviour",),
    series="picker",
    cells=lambda scale: _behaviours_cells(scale, "2 Mb/s"),
    claims=(
        reaches("hybrid with seeding viewers saves up to 90 %", _does(SEEDING, "hybrid"), 0.9),
        reaches(
            "the three new pickers save 70 % at least with download-only and streaming viewers",
            _does(DOWNLOAD_ONLY, *NEW) + _does(STREAMING, *NEW),
            0.7,
            every=True,
        ),
        above(
            "seeding is the best behaviour with every picker",
            [
                (_does(SEEDING, picker)[0], _does(other, picker)[0])
                for picker in PICKERS
                for other in (STREAMING, DOWNLOAD_ONLY)
            ],
        ),
        above(
            "download-only is the worst behaviour, but for in-order",
            [
                (_does(STREAMING, picker)[0], _does(DOWNLOAD_ONLY, picker)[0])
                for picker in PICKERS
                if picker != "in-order"
            ],
        ),
    ),
)


def _streaming_at_half(results: Results) -> float:
    places = [{"behaviour": STREAMING, **place} for place in _at("1 Mb/s", *PICKERS)]
    return max(results.mean(**place) for place in places)


def _best_over(one: tuple[str, str], other: tuple[str, str], text: str) -> Claim:
    """The best picker at one (upload, behaviour) is above the best at another."""

    def test(results: Results) -> Verdict:
        def best(upload: str, behaviour: str, field: str = "offload") -> float:
            return max(
                results.mean(field, picker=picker, upload=upload, behaviour=behaviour)
                for picker in PICKERS
            )

        lead, most = best(*one) - best(*other), best(*one, "bound")
        words = f"by {100 * lead:+.1f} points"
        if most < best(*other):
            return Verdict(None, lead, f"{words}; no policy can pass {percent(most)} here")
        return Verdict(lead > 0, lead, words)

    return Claim(text, test)


_HALF_UPLOAD = Figure(
    name="5.6",
    title="Behaviours at 1 Mb/s",
    x=("upload", "behaviour"),
    series="picker",
    cells=lambda scale: (
        *_behaviours_cells(scale, "1 Mb/s"),
        *(make_cell(scale, picker, "1.5 Mb/s") for picker in PICKERS),
    ),
    claims=(
        lies_in(
            "streaming viewers save 45 % at best, of 50 %",
            _streaming_at_half,
            0.43,
            0.5,
            lambda best: f"best: {percent(best)}",
        ),
        reaches(
            "seeding viewers save up to 71 %",
            [{"behaviour": SEEDING, **place} for place in _at("1 Mb/s", *PICKERS)],
            0.71,
        ),
        _best_over(
            ("1 Mb/s", SEEDING),
            ("1.5 Mb/s", STREAMING),
            "seeding at 1 Mb/s saves more than streaming at 1.5 Mb/s",
        ),
    ),
)


def _choking_cells(scale: str) -> tuple[FigureCell, ...]:
    stock, seed = {"choking": "tit-for-tat"}, {"choking": "seed choking"}
    return (
        *(make_cell(scale, picker, extra=stock) for picker in PICKERS),
        *(
            make_cell(scale, picker, extra=seed, changes={"choking": Choking.SEED})
            for picker in PICKERS
        ),
    )


def _chokes(picker: str) -> tuple[dict[str, str], dict[str, str]]:
    """The two chokers with a picker."""
    return (
        {"picker": picker, "choking": "tit-for-tat"},
        {"picker": picker, "choking": "seed choking"},
    )


def _advantage(results: Results) -> float:
    """Least lead of tit-for-tat with in-order and hybrid, over its greatest with the others."""
    lead = {picker: results.difference(*_chokes(picker)).mean for picker in PICKERS}
    return min(lead["in-order"], lead["hybrid"]) - max(lead["beta"], lead["rarest-first"])


_CHOKING = Figure(
    name="5.7",
    title="Choking, streaming, 2 Mb/s",
    x=("picker",),
    series="choking",
    cells=_choking_cells,
    note="With real viewers the seed choker is the nearest that libtorrent has to it.",
    claims=(
        above(
            "tit-for-tat beats the seed choker with every picker",
            [_chokes(picker) for picker in PICKERS],
        ),
        lies_in(
            "and most with in-order and hybrid",
            _advantage,
            1e-9,
            1.0,
            lambda value: f"their lead is {100 * value:+.1f} points more than the others'",
        ),
    ),
)

POLICY_FIGURES: Final = (_PICKERS, _HYBRID_RANGE, _FULL_UPLOAD, _HALF_UPLOAD, _CHOKING)
