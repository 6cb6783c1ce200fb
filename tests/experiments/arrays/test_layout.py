"""Where films lie on the disks of a plain file server."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.arrays.layout import Layout, Part
from experiments.errors import ScenarioError


def test_a_film_per_disk():
    layout = Layout(disks=4, film_bytes=1000)
    assert layout.parts(0, 0, 1000) == [Part(0, 0, 1000)]
    assert layout.parts(3, 100, 50) == [Part(3, 100, 50)]
    assert layout.parts(9, 100, 50) == [Part(1, 2100, 50)]


def test_stripes_go_round_the_disks_from_where_the_film_begins():
    layout = Layout(disks=3, film_bytes=1000, unit=100)
    assert layout.film_room == 400
    assert layout.parts(0, 0, 100) == [Part(0, 0, 100)]
    assert layout.parts(0, 150, 100) == [Part(1, 50, 50), Part(2, 0, 50)]
    assert layout.parts(0, 310, 10) == [Part(0, 110, 10)]
    assert layout.parts(1, 0, 100) == [Part(1, 400, 100)]


def test_stripes_of_a_disk_are_one_read():
    layout = Layout(disks=2, film_bytes=1000, unit=100)
    assert layout.parts(0, 50, 500) == [Part(0, 50, 250), Part(1, 0, 250)]


@pytest.mark.parametrize("wrong", [{"disks": 0}, {"film_bytes": 0}, {"unit": 0}])
def test_what_cannot_be_is_refused(wrong):
    with pytest.raises(ScenarioError, match="1 or more"):
        Layout(**({"disks": 2, "film_bytes": 10} | wrong))


@given(
    disks=st.integers(1, 6),
    unit=st.none() | st.integers(1, 40),
    film_bytes=st.integers(1, 200),
    films=st.integers(1, 5),
)
def test_no_two_bytes_have_the_same_place(disks, unit, film_bytes, films):
    layout = Layout(disks=disks, film_bytes=film_bytes, unit=unit)
    places = set()
    for film in range(films):
        for offset in range(film_bytes):
            (part,) = layout.parts(film, offset, 1)
            places.add((part.disk, part.position))
    assert len(places) == films * film_bytes


@given(
    disks=st.integers(1, 6),
    unit=st.none() | st.integers(1, 40),
    film=st.integers(0, 9),
    data=st.data(),
)
def test_a_read_takes_from_each_disk_what_its_bytes_take_one_by_one(disks, unit, film, data):
    layout = Layout(disks=disks, film_bytes=200, unit=unit)
    offset = data.draw(st.integers(0, 199))
    size = data.draw(st.integers(1, 200 - offset))
    parts = layout.parts(film, offset, size)
    assert len({part.disk for part in parts}) == len(parts)
    together = {(p.disk, p.position + n) for p in parts for n in range(p.size)}
    single = {
        (part.disk, part.position)
        for at in range(offset, offset + size)
        for part in layout.parts(film, at, 1)
    }
    assert together == single
    assert sum(part.size for part in parts) == size
