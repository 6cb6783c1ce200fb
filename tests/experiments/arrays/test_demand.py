"""Which films are asked for where servers are compared."""

import pytest

from experiments.arrays.demand import DEMANDS, asked, busiest, places


@pytest.mark.parametrize("name", DEMANDS)
def test_the_first_streams_are_the_same_however_many_there_are(name):
    assert asked(DEMANDS[name], 4, 300, 1)[:50] == asked(DEMANDS[name], 4, 50, 1)


@pytest.mark.parametrize("name", DEMANDS)
def test_places_leave_nothing_out_and_keep_the_disk(name):
    films = asked(DEMANDS[name], 4, 100, 1)
    found = places(films, 4)
    assert [place % 4 for place in found] == [film % 4 for film in films]
    assert len(set(found)) == len(set(films))
    assert len(set(zip(films, found, strict=True))) == len(set(films))
    for disk in range(4):
        mine = sorted({place for place in found if place % 4 == disk})
        assert mine == list(range(disk, disk + 4 * len(mine), 4))


def test_an_even_load_is_even():
    films = asked(DEMANDS["uniform"], 4, 80, 1)
    assert sorted(films) == list(range(80))
    assert busiest(films, 4) == 20


def test_an_overloaded_disk_has_so_much_more():
    films = asked(DEMANDS["one disk +80 %"], 4, 96, 1)
    assert busiest(films, 4) == 36
    assert len(set(films)) == 96


def test_popular_films_are_asked_for_more_often():
    films = asked(DEMANDS["Zipf 1.0"], 4, 4000, 1)
    assert films.count(0) > 1.5 * films.count(1) > 1.5 * films.count(10)
    assert asked(DEMANDS["Zipf 1.0"], 4, 50, 1) != asked(DEMANDS["Zipf 1.0"], 4, 50, 2)
