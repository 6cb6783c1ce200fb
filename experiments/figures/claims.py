"""The kinds of claims that figures make, as functions of results.

A level is held to the mean over the seeds. An order is held to the difference of two cells, seed by
seed: where its 95 % interval holds 0, these results cannot tell.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from experiments.errors import MissingResultError
from experiments.figures.figure import Claim, Verdict
from experiments.figures.results import Results

__all__ = [
    "NEAR",
    "Pairs",
    "above",
    "apart",
    "lies_in",
    "pairs",
    "percent",
    "reaches",
    "within_bound",
]

NEAR: Final = 0.02
"""What counts as the same offload as the source's: repeats differ by as much."""

Place = Mapping[str, str]
Pairs = Sequence[tuple[Place, Place]]
Order = Pairs | Callable[[Results], Pairs]
"""Pairs of places; or which they are, where that depends on what was run."""


def percent(value: float) -> str:
    """A share, as people read it."""
    return f"{100 * value:.1f} %"


def above(text: str, order: Order, *, least: int | None = None, field: str = "offload") -> Claim:
    """The first place of every pair is above the second; or of `least` of them at the least."""

    def test(results: Results) -> Verdict:
        pairs_ = _pairs(order, results)
        leads = [results.difference(one, other, field) for one, other in pairs_]
        needed = len(leads) if least is None else least
        clear = sum(lead.sign > 0 for lead in leads)
        open_ = sum(lead.sign == 0 for lead in leads)
        smallest = min(leads, key=lambda lead: lead.mean)
        one, other = pairs_[leads.index(smallest)]
        words = (
            f"{clear} of {len(leads)}, {open_} within chance; least: {_name(one, other)} "
            f"by {_amount(smallest.mean, smallest.half_width, field)}"
        )
        if clear >= needed:
            return Verdict(True, smallest.mean, words)
        return Verdict(None if clear + open_ >= needed else False, smallest.mean, words)

    return Claim(text, test)


def reaches(text: str, places: Sequence[Place], level: float, *, every: bool = False) -> Claim:
    """The best of the places, or every one, has an offload of at least this (less `NEAR`)."""

    def test(results: Results) -> Verdict:
        found = [(results.mean(**place), place) for place in places]
        choose = min if every else max
        value, place = choose(found, key=lambda entry: entry[0])
        words = f"{'least' if every else 'best'}: {_name(place)} {percent(value)}"
        bounds = [results.mean("bound", **each) for each in places]
        return within_bound(value, level, (min if every else max)(bounds), words)

    return Claim(text, test)


def within_bound(value: float, level: float, bound: float, words: str) -> Verdict:
    """Whether an offload reaches a level (less `NEAR`); open where the bound is below it."""
    if bound < level - NEAR:
        return Verdict(None, value, f"{words}; no policy can pass {percent(bound)} here")
    return Verdict(value >= level - NEAR, value, words)


def apart(text: str, order: Order, most: float) -> Claim:
    """The offloads of each pair are at most so far apart."""

    def test(results: Results) -> Verdict:
        gaps = [(abs(results.difference(*pair).mean), pair) for pair in _pairs(order, results)]
        gap, pair = max(gaps, key=lambda entry: entry[0])
        words = f"at most {100 * gap:.2f} points: {_name(*pair)}"
        return Verdict(gap <= most, gap, words)

    return Claim(text, test)


def lies_in(
    text: str,
    value: Callable[[Results], float],
    low: float,
    high: float,
    words: Callable[[float], str] = percent,
) -> Claim:
    """A number lies in a range."""

    def test(results: Results) -> Verdict:
        number = value(results)
        return Verdict(low <= number <= high, number, words(number))

    return Claim(text, test)


def pairs(ones: Sequence[Place], others: Sequence[Place]) -> Pairs:
    """Every one with every other."""
    return [(one, other) for one in ones for other in others]


def _pairs(order: Order, results: Results) -> Pairs:
    """The pairs to be compared.

    Raises:
        MissingResultError: there are none.
    """
    found = order(results) if callable(order) else order
    if not found:
        raise MissingResultError("there is no result")
    return found


def _name(one: Place, other: Place | None = None) -> str:
    """The places in words; what both have in common once."""
    if other is None:
        return " ".join(one.values())
    left = [value for axis, value in one.items() if other.get(axis) != value]
    right = [value for axis, value in other.items() if one.get(axis) != value]
    common = [value for axis, value in one.items() if other.get(axis) == value]
    words = f"{' '.join(left)} over {' '.join(right)}"
    return f"{words} ({' '.join(common)})" if common else words


def _amount(mean: float, half_width: float, field: str) -> str:
    if field == "offload":
        interval = f" ± {100 * half_width:.1f}" if half_width else ""
        return f"{100 * mean:+.1f}{interval} points"
    scale, unit = (1e9, " GB") if field == "total_bytes" else (1.0, "")
    interval = f" ± {half_width / scale:.3g}" if half_width else ""
    return f"{mean / scale:+.3g}{interval}{unit}"
