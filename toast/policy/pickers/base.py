"""What a picker is, and how its ranking becomes a plan."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from toast.common.registry import Registry
from toast.policy.errors import PolicyError
from toast.policy.view import Plan, SwarmView

__all__ = [
    "Holding",
    "Picker",
    "by_due_time",
    "create_picker",
    "in_due_order",
    "least",
    "make_plan",
    "picker_names",
    "rank_best",
    "register",
    "soonest",
]

_FEW = 64

Holding = tuple[NDArray[np.bool_], int]
"""Of a neighbour that takes requests: the pieces it has, bool[P], and how many it may be asked for
beyond what is under way."""


class Picker(Protocol):
    """Ranks the pieces that peers should bring.

    A picker keeps nothing between calls: the same view and the same state of the generator give
    the same ranking.
    """

    @property
    def name(self) -> str:
        """The name it is registered under."""

    def rank(self, view: SwarmView, rng: np.random.Generator) -> NDArray[np.intp]:
        """Candidates of the view, intp[n], most wanted first. Leaving some out is allowed."""

    def drawn(self, view: SwarmView) -> NDArray[np.bool_]:
        """bool[P]: pieces whose place in the ranking is a draw of chance.

        Of these an earlier choice is kept: whoever draws anew at each event wants everything for
        a moment and nothing for long.
        """


_PICKERS: Registry[Picker] = Registry("picker", PolicyError)


def register(name: str, factory: Callable[..., Picker]) -> None:
    """Make a picker known under a name."""
    _PICKERS.register(name, factory)


def create_picker(name: str, **params: Any) -> Picker:
    """A picker by name.

    Raises:
        PolicyError: no such picker, or not its parameters.
    """
    return _PICKERS.create(name, **params)


def picker_names() -> tuple[str, ...]:
    """The names of all pickers, sorted."""
    return _PICKERS.names()


def by_due_time(view: SwarmView, pieces: NDArray[np.bool_]) -> NDArray[np.intp]:
    """The chosen pieces, earliest due first, ties by number: intp[n]."""
    return in_due_order(view, pieces.nonzero()[0])


def in_due_order(view: SwarmView, pieces: NDArray[np.intp]) -> NDArray[np.intp]:
    """Pieces whose numbers rise, intp[n], earliest due first, ties by number."""
    if pieces.size < 2:
        return pieces
    return pieces[view.slack[pieces].argsort(kind="stable")]


def soonest(view: SwarmView, pieces: NDArray[np.bool_], most: int) -> NDArray[np.intp]:
    """As `by_due_time`, but of all behind the first `most` some may be left out."""
    soon = view.soon(pieces)
    return soon if soon.size >= most else by_due_time(view, pieces)


def least(keys: NDArray[np.float64], most: int) -> NDArray[np.intp]:
    """Places of the `most` least of some keys in rising order, intp[n]; of few keys, all places."""
    if keys.size <= max(4 * most, _FEW):
        return keys.argsort()
    first = keys.argpartition(most)[:most]
    return first[keys[first].argsort()]


def rank_best(
    picker: Picker, view: SwarmView, rng: np.random.Generator, most: int
) -> NDArray[np.intp]:
    """The first `most` of a ranking, and perhaps more.

    A picker that can find them in less time than it takes to rank everything has a method
    `rank_best(view, rng, most)` besides.
    """
    best = getattr(picker, "rank_best", None)
    ranked: NDArray[np.intp] = picker.rank(view, rng) if best is None else best(view, rng, most)
    return ranked


def make_plan(
    picker: Picker,
    view: SwarmView,
    rng: np.random.Generator,
    *,
    top: int,
    open_: int = 0,
    previous: Plan | None = None,
    holdings: Sequence[Holding] = (),
) -> Plan:
    """Turn a ranking into a plan.

    First what is under way (finish what was begun), then the ranking; among pieces whose place is
    a draw of chance, those of the previous plan go first. A neighbour who has nothing of all that
    would idle: the best of what it has is left open besides.

    Args:
        picker: who ranks.
        view: what is known now.
        rng: the picker's chance.
        top: how many pieces to ask for; pieces under way stay, even if there are more.
        open_: how many more to leave open.
        previous: the plan that this one replaces.
        holdings: of the neighbours none of whom should idle.
    """
    under_way = by_due_time(view, view.candidates & view.in_flight)
    ranked = rank_best(picker, view, rng, top + open_ + under_way.size)
    if under_way.size:
        ranked = ranked[~view.in_flight[ranked]]
    if previous is not None and previous.top.size:
        kept = previous.top
        kept = kept[view.candidates[kept] & ~view.in_flight[kept]]
        if kept.size:
            ranked = _keeping(ranked, kept, picker.drawn(view))
    chosen = max(0, top - under_way.size)
    first = ranked[:chosen]
    if under_way.size:
        first = np.concatenate((under_way, first))
    plan = Plan(first, ranked[chosen : chosen + max(0, open_)])
    if holdings:
        before = plan.open[:0] if previous is None else previous.open
        others = _of_the_idle(picker, view, rng, plan, before, holdings)
        if others:
            plan.open = np.concatenate((plan.open, np.array(others, dtype=np.intp)))
    return plan


def _of_the_idle(  # noqa: PLR0917 - one plan, and all that it is made of
    picker: Picker,
    view: SwarmView,
    rng: np.random.Generator,
    plan: Plan,
    before: NDArray[np.intp],
    holdings: Sequence[Holding],
) -> list[int]:
    """The best of what those have who have nothing else to send, in the picker's order.

    Where rank goes by rarity or by chance, the first of a ranking may all be with two neighbours
    out of ten. A piece that is under way is mostly asked for already, to its last block.
    """
    in_flight = view.in_flight
    asked = [piece for piece in (*plan.top.tolist(), *plan.open.tolist()) if not in_flight[piece]]
    found: list[int] = []
    free: NDArray[np.bool_] | None = None
    idle = 0
    for has, count in holdings:
        if _has_any(has, asked) or _has_any(has, found):
            continue
        if free is None:
            free = view.candidates > in_flight  # the former without the latter
        theirs = free & has
        if not theirs.any():
            continue
        idle += 1
        ranked = rank_best(picker, view.among(theirs), rng, count)
        kept = before[theirs[before]]
        if kept.size:
            ranked = _keeping(ranked, kept, picker.drawn(view))
        found += ranked[:count].tolist()
    if idle < 2:
        return found
    # Together again in one order: a plan whose numbers rise is steered as such.
    chosen = np.zeros_like(in_flight)
    chosen[found] = True
    together: list[int] = rank_best(picker, view.among(chosen), rng, len(found)).tolist()
    return together


def _has_any(has: NDArray[np.bool_], pieces: list[int]) -> bool:
    for piece in pieces:  # noqa: SIM110 - mostly the first one: a generator costs more
        if has[piece]:
            return True
    return False


def _keeping(
    ranked: NDArray[np.intp],
    before: NDArray[np.intp],
    drawn: NDArray[np.bool_],
) -> NDArray[np.intp]:
    """The ranking with the drawn pieces of the plan before ahead of all other drawn ones.

    A ranking may hold the first ones only: what is kept of the plan before need not be among them.
    """
    kept = before[drawn[before]]
    if not kept.size:
        return ranked
    others = np.ones(drawn.size, dtype=np.bool_)
    others[kept] = False
    rest = ranked[others[ranked]]
    by_chance = drawn[rest]
    return np.concatenate((rest[~by_chance], kept, rest[by_chance]))
