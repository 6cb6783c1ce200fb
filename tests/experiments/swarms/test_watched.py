"""What was shown of a film, in bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.swarms.watched import shown_bytes
from toast.common.timemap import TimeMap

FILM = TimeMap.constant(1_000_000, 100.0)


def test_the_whole_film_is_all_of_it():
    assert shown_bytes(FILM, [(0.0, 100.0)]) == 1_000_000
    assert shown_bytes(FILM, [(50.0, 60.0), (0.0, 100.0)]) == 1_000_000


def test_parts_count_once_however_often_they_are_seen():
    half = shown_bytes(FILM, [(0.0, 50.0)])
    assert half == pytest.approx(500_000, abs=FILM.cell_bytes)
    assert shown_bytes(FILM, [(0.0, 50.0), (10.0, 20.0)]) == half
    assert shown_bytes(FILM, []) == 0


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(0, 100)), max_size=4))
def test_it_is_never_more_than_the_film(watched):
    assert 0 <= shown_bytes(FILM, watched) <= 1_000_000
