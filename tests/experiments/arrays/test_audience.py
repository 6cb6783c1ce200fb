"""Who plays what, and where it lies."""

from collections import Counter

import numpy as np
import pytest

from experiments.arrays.audience import Audience
from experiments.arrays.scenario import ArrayScenario, Load
from vodserver.allocation import ALLOCATIONS


def streams(count, seed=1, load=None, **changes):
    scenario = ArrayScenario(load=load or Load(), watch_seconds=20.0, **changes)
    return Audience(scenario, seed).streams(count)


def first_disks(found):
    return Counter(stream.extents[0][0] for stream in found)


def test_a_uniform_load_is_exactly_balanced_under_naive():
    assert set(first_disks(streams(80, allocation="naive")).values()) == {10}


def test_an_overload_is_one_of_the_first_disk_only():
    counts = first_disks(streams(88, allocation="naive", load=Load(overload=0.8)))
    assert counts[0] == 18
    assert all(counts[disk] == 10 for disk in range(1, 8))


def test_mirrors_are_overloaded_in_pairs():
    found = streams(96, allocation="raid1", load=Load(overload=0.8))
    pairs = Counter(stream.extents[0][0] // 2 for stream in found)
    assert pairs == {0: 36, 1: 20, 2: 20, 3: 20}


def test_more_streams_begin_with_the_same_ones():
    load = Load(zipf=1.0, mean_gap_seconds=1.0)
    audience = Audience(ArrayScenario(load=load, watch_seconds=20.0), 3)
    few, many = audience.streams(5), audience.streams(9)
    assert many[:5] == few
    assert few == streams(5, seed=3, load=load)


def test_popular_films_lie_together_in_the_worst_case():
    load = Load(zipf=1.0, clustered=True)
    counts = first_disks(streams(400, allocation="naive", load=load, films=64))
    assert counts[0] > 0.4 * 400
    assert [counts[disk] for disk in (0, 1, 2)] == sorted(
        (counts[disk] for disk in (0, 1, 2)), reverse=True
    )


@pytest.mark.parametrize(
    ("allocation", "copies"), [("naive", 1), ("rda", 2), ("rda-3", 3), ("rda-8", 8)]
)
def test_extents_lie_on_as_many_disks_as_there_are_copies(allocation, copies):
    for stream in streams(4, allocation=allocation):
        assert len(stream.extents) == 4
        assert all(len(set(disks)) == copies for disks in stream.extents)


def test_a_film_goes_round_after_as_long_as_one_says():
    scenario = ArrayScenario(allocation="raid0")
    (stream,) = Audience(scenario, 1, film_seconds=40.0).streams(1)
    assert len(stream.extents) == 8
    assert len(Audience(scenario, 1).streams(1)[0].extents) == 240


def test_the_chance_of_places_places_the_same_films_alike():
    scenario = ArrayScenario(load=Load(zipf=1.0), watch_seconds=20.0, films=5)
    audience = Audience(scenario, 3)
    audience.streams(9)
    chance, used = audience.chance_of_places, np.zeros(8, dtype=np.int64)
    for film in audience.films:
        placed = ALLOCATIONS.create("rda").place(4, used, chance)
        assert [tuple(row) for row in placed.tolist()] == list(film)
