"""What reads tell of where a viewer is."""

import numpy as np
import pytest

from toast.common.geometry import BLOCK_BYTES, Geometry
from toast.common.timemap import TimeMap
from toast.policy.audience import Audience, AudienceSettings

SECOND = 2 * BLOCK_BYTES  # one piece: a second of film
GEOMETRY = Geometry(film_bytes=100 * SECOND, piece_bytes=SECOND)
TIMEMAP = TimeMap.constant(GEOMETRY.film_bytes, 100.0)
INDEXED = TimeMap(
    GEOMETRY.film_bytes,
    100.0,
    TIMEMAP.cell_bytes,
    TIMEMAP.due,
    ((99 * SECOND, 100 * SECOND),),
    ((0, SECOND), (99 * SECOND, 100 * SECOND)),
    "mp4",
)


@pytest.fixture
def audience():
    return Audience(TIMEMAP, GEOMETRY, AudienceSettings(jump_seconds=5.0, lead_seconds=2.0))


def slack_at(position):
    slack = TIMEMAP.due_of_pieces(GEOMETRY) - position
    slack[TIMEMAP.until_of_pieces(GEOMETRY) <= position] = np.inf
    return slack


def test_who_reads_near_the_playhead_moves_only_the_frontier(audience):
    reader, seek_to = audience.open(0.0, 3 * SECOND, 0.0)
    assert (seek_to, reader.follows, audience.frontier) == (None, True, 0.0)
    audience.taken(1.0, reader, 30 * SECOND)
    assert audience.frontier == 30.0
    audience.taken(1.0, reader, 100 * SECOND)
    assert audience.frontier == 100.0


def test_a_read_within_what_was_taken_is_no_seek(audience):
    """Browsers ask for ranges one after the other, far ahead of what they show."""
    reader, _ = audience.open(0.0, 0, 0.0)
    audience.taken(1.0, reader, 60 * SECOND)
    audience.close(reader)
    assert audience.open(2.0, 60 * SECOND, 2.0)[1] is None
    assert audience.readers == 1


def test_a_read_elsewhere_is_a_seek_and_starts_a_new_frontier(audience):
    first, _ = audience.open(0.0, 0, 0.0)
    audience.taken(0.0, first, 20 * SECOND)
    second, seek_to = audience.open(1.0, 50 * SECOND, 1.0)
    assert (seek_to, audience.frontier) == (50.0, 50.0)
    assert (first.follows, second.follows) == (False, True)
    audience.taken(2.0, first, 22 * SECOND)
    assert audience.frontier == 50.0


def test_a_read_of_the_index_is_no_seek_and_no_progress():
    audience = Audience(INDEXED, GEOMETRY)
    reader, seek_to = audience.open(0.0, 99 * SECOND, 0.0)
    assert seek_to is None
    audience.taken(0.0, reader, 100 * SECOND)
    assert audience.frontier == 0.0


def test_while_a_first_picture_is_waited_for_nothing_is_wanted_ahead_of_it(audience):
    slack = audience.slack(0.0, 10.0, slack_at(10.0), starting=True)
    assert slack[15] == pytest.approx(5.0)


def test_a_player_wants_to_be_ahead_of_its_picture(audience):
    slack = audience.slack(0.0, 10.0, slack_at(10.0))
    assert slack[15] == pytest.approx(3.0)
    assert np.isinf(slack[5])


def test_each_player_gets_what_it_needs_wherever_the_playhead_is(audience):
    first, _ = audience.open(0.0, 0, 0.0)
    audience.taken(0.0, first, 12 * SECOND)
    audience.open(10.0, 70 * SECOND, 10.0)  # now the playhead stands for this one
    first.waiting = True
    slack = audience.slack(10.0, 70.0, slack_at(70.0))
    assert slack[12] == pytest.approx(12 - 10 - 2)
    assert slack[71] == pytest.approx(1 - 2)
    assert np.isinf(slack[11])  # it has that


def test_what_a_player_reads_just_behind_the_playhead_is_due(audience):
    """A picture at ten seconds begins with the key frame at eight."""
    reader, seek_to = audience.open(0.0, 8 * SECOND, 10.0)
    assert seek_to is None
    slack = audience.slack(0.0, 10.0, slack_at(10.0))
    assert slack[8] == pytest.approx(-2.0)
    assert slack[9] == pytest.approx(-1.0)
    assert np.isinf(slack[7])
    audience.taken(1.0, reader, 11 * SECOND)
    assert np.isinf(audience.slack(1.0, 10.0, slack_at(10.0))[9])


def test_who_takes_nothing_although_it_could_needs_nothing(audience):
    first, _ = audience.open(0.0, 0, 0.0)
    audience.taken(0.0, first, 12 * SECOND)
    audience.open(1.0, 70 * SECOND, 1.0)
    assert np.isinf(audience.slack(30.0, 70.0, slack_at(70.0))[12])


def test_a_greedy_reader_elsewhere_is_no_more_urgent_than_a_player(audience):
    """What is downloaded faster than it can be watched is not due earlier for that."""
    first, _ = audience.open(0.0, 0, 0.0)
    audience.taken(4.0, first, 40 * SECOND)
    audience.open(4.0, 80 * SECOND, 4.0)
    first.waiting = True
    assert audience.slack(5.0, 80.0, slack_at(80.0))[40] == pytest.approx(40 - 5 - 2)


def test_waiting_counts_for_the_viewing_that_the_playhead_stands_for(audience):
    reader, _ = audience.open(0.0, 0, 0.0)
    assert not audience.is_waiting
    reader.waiting = True
    assert audience.is_waiting
    audience.taken(0.0, reader, 5)
    assert not audience.is_waiting
    reader.waiting = True
    audience.sought(90.0)
    assert not audience.is_waiting


def test_a_player_that_waits_for_what_the_playhead_shows_is_behind_it(audience):
    """A picture begins at the key frame before it; who only fills its buffer is not awaited."""
    reader, seek_to = audience.open(0.0, 8 * SECOND, 10.0)
    assert seek_to is None
    assert audience.waits_behind(10.0) == [], "it has not said that it waits"
    reader.waiting = True
    assert audience.waits_behind(10.0) == [8 * SECOND]
    audience.taken(1.0, reader, 12 * SECOND)
    reader.waiting = True
    assert audience.waits_behind(10.0) == []


def test_a_player_that_waits_for_the_index_is_awaited_wherever_it_is():
    audience = Audience(INDEXED, GEOMETRY, AudienceSettings())
    reader, _ = audience.open(0.0, 99 * SECOND + 5, 10.0)
    reader.waiting = True
    assert audience.waits_behind(10.0) == [99 * SECOND + 5]
    audience.taken(0.0, reader, 100 * SECOND)
    reader.waiting = True
    assert audience.waits_behind(10.0) == [], "there is nothing behind the film's end"
