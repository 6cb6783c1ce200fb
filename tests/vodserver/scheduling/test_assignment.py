"""Rows get columns at the least cost in all."""

import itertools
import random

import pytest

from vodserver.scheduling.assignment import assign


def least(rows):
    """What the best of all solutions costs."""
    choices = itertools.product(*[[column for column, _ in row] for row in rows])
    return min(cost_of(rows, each) for each in choices if len(set(each)) == len(rows))


def cost_of(rows, given):
    return sum(dict(row)[column] for row, column in zip(rows, given, strict=True))


def test_each_gets_what_costs_least_if_nobody_else_wants_it():
    assert assign([[(0, 5.0), (1, 2.0)], [(2, 1.0), (0, 4.0)]], 3) == [1, 2]


def test_who_came_first_makes_room_if_that_costs_less():
    rows = [[(0, 1.0), (1, 2.0)], [(0, 1.0), (2, 9.0)]]
    assert assign(rows, 3) == [1, 0]


@pytest.mark.parametrize("seed", range(60))
def test_no_solution_is_cheaper(seed):
    chance = random.Random(seed)
    places = chance.randint(1, 5)
    rows = []
    for row in range(chance.randint(1, 5)):
        some = chance.sample(range(places), chance.randint(0, places))
        costs = [(column, chance.choice([chance.random() * 9, 3.0])) for column in some]
        rows.append([*costs, (places + row, chance.random() * 20)])

    given = assign(rows, places + len(rows))

    assert len(set(given)) == len(rows)
    assert cost_of(rows, given) == pytest.approx(least(rows))


def test_of_nothing_nothing_is_made():
    assert assign([], 4) == []


def test_a_row_that_can_have_no_column_is_refused():
    with pytest.raises(ValueError, match="no column"):
        assign([[(0, 1.0)], [(0, 1.0)]], 1)
