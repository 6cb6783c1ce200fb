"""The playhead is where the players are."""

import math

import numpy as np
import pytest

from toast.common.geometry import BLOCK_BYTES, Geometry
from toast.common.timemap import TimeMap
from toast.policy.audience import Audience, AudienceSettings
from toast.policy.errors import PolicyError
from toast.policy.playhead import Playhead, State
from toast.viewer.attendance import Attendance, Pace

SECOND = 2 * BLOCK_BYTES
GEOMETRY = Geometry(film_bytes=100 * SECOND, piece_bytes=SECOND)
TIMEMAP = TimeMap.constant(GEOMETRY.film_bytes, 100.0)
EVERYTHING = np.ones(100, dtype=np.bool_)


class Hall:
    """A film that is all here, and who watches it."""

    def __init__(self, pace=Pace.READERS):
        self.changes = 0
        self.playhead = Playhead(TIMEMAP, GEOMETRY)
        audience = Audience(TIMEMAP, GEOMETRY, AudienceSettings(jump_seconds=5.0))
        self.attendance = Attendance(self.playhead, audience, pace, self.changed)
        self.step(0.0)

    def changed(self):
        self.changes += 1

    def step(self, now):
        self.playhead.tick(now, EVERYTHING)
        return self.attendance.follow(now)

    def open(self, now, second):
        return self.attendance.open(now, second * SECOND)

    def take(self, now, reader, second):
        self.attendance.taken(now, reader, second * SECOND)


def test_nobody_watches_and_nothing_moves():
    hall = Hall()
    hall.step(50.0)
    assert hall.playhead.position == pytest.approx(0.0, abs=0.1)
    assert hall.playhead.state is State.PAUSED
    assert hall.playhead.stalls == 0


def test_the_clock_needs_nobody():
    hall = Hall(Pace.CLOCK)
    assert hall.step(50.0) == math.inf
    assert hall.playhead.position == 50.0


def test_it_plays_as_far_as_its_player_has_taken_the_film():
    hall = Hall()
    reader = hall.open(0.0, 0)
    hall.take(0.0, reader, 10)
    assert hall.step(1.0) == pytest.approx(9.0)
    hall.step(10.0)
    assert hall.playhead.state is State.PAUSED
    hall.step(30.0)
    assert hall.playhead.position == pytest.approx(10.0, abs=0.1)
    hall.take(31.0, reader, 20)
    assert hall.playhead.state is State.PLAYING
    hall.step(35.0)
    assert hall.playhead.position == pytest.approx(14.0, abs=0.1)


def test_a_player_that_waits_for_us_is_not_paused():
    hall = Hall()
    reader = hall.open(0.0, 0)
    hall.take(0.0, reader, 3)
    hall.attendance.waits(reader)
    changes = hall.changes
    hall.attendance.waits(reader)
    assert hall.changes == changes
    hall.step(3.0)
    assert hall.playhead.state is State.PLAYING


def test_a_read_elsewhere_seeks_and_plays_on_from_there():
    hall = Hall()
    reader = hall.open(0.0, 0)
    hall.take(0.0, reader, 1)
    hall.step(5.0)
    hall.attendance.close(reader)
    reader = hall.open(6.0, 60)
    hall.take(6.0, reader, 70)
    hall.step(8.0)
    assert hall.playhead.position == pytest.approx(62.0)
    assert hall.playhead.state is State.PLAYING


def test_a_player_that_tells_is_believed():
    hall = Hall()
    reader = hall.open(0.0, 0)
    hall.take(0.0, reader, 90)
    hall.step(2.0)
    hall.attendance.report_position(2.0, 1.0, paused=False, rate=1.0)
    assert hall.playhead.position == pytest.approx(1.0)
    assert hall.playhead.seek_seconds == []
    hall.attendance.report_position(3.0, 1.5, paused=True, rate=1.0)
    hall.step(4.0)
    assert hall.playhead.position == pytest.approx(1.5)
    hall.attendance.report_position(5.0, 1.5, paused=False, rate=2.0)
    hall.step(6.0)
    assert hall.playhead.position == pytest.approx(3.5)
    hall.attendance.report_position(6.0, 40.0, paused=False, rate=2.0)
    hall.step(6.0)
    assert hall.playhead.position == pytest.approx(40.0)
    assert len(hall.playhead.seek_seconds) == 1


def resumed_at(second, *, here):
    """A film taken up again after it was killed: only these seconds of it are here."""
    hall = Hall()
    hall.playhead = Playhead(TIMEMAP, GEOMETRY)
    hall.attendance.playhead = hall.playhead
    hall.playhead.seek(0.0, second)
    have = np.zeros(100, dtype=np.bool_)
    have[list(here)] = True
    hall.playhead.tick(0.0, have)
    assert hall.playhead.state is State.PLAYING
    return hall, have


def test_a_player_that_plays_on_from_its_buffer_while_we_were_started_again_has_not_stalled():
    """It was at 40 when that was last written down, and is at 44 now."""
    hall, have = resumed_at(40.0, here=(40, 41))
    hall.open(0.5, 46)
    hall.attendance.report_position(0.5, 44.0, paused=False, rate=1.0)
    assert (hall.playhead.state, hall.playhead.position) == (State.STARTING, 44.0)
    hall.attendance.report_position(0.9, 44.4, paused=False, rate=1.0)
    have[44:] = True
    hall.playhead.tick(1.0, have)
    assert hall.playhead.state is State.PLAYING
    hall.attendance.report_position(1.5, 45.0, paused=False, rate=1.0)
    assert hall.playhead.position == pytest.approx(45.0, abs=0.3)
    assert hall.playhead.stalls == 0
    assert hall.playhead.stall_seconds(1.5) == 0.0


def test_a_player_that_was_followed_and_comes_to_what_is_missing_has_stalled():
    hall, _ = resumed_at(40.0, here=(40, 41))
    hall.open(0.2, 40)
    hall.attendance.report_position(0.2, 40.2, paused=False, rate=1.0)
    hall.attendance.report_position(1.0, 42.0, paused=False, rate=1.0)
    assert hall.playhead.state is State.STALLED
    assert hall.playhead.stalls == 1


def test_who_falls_silent_is_followed_by_what_it_reads_again():
    hall = Hall()
    reader = hall.open(0.0, 0)
    hall.take(0.0, reader, 8)
    hall.attendance.report_position(1.0, 1.0, paused=False, rate=1.0)
    assert hall.step(5.0) == math.inf
    hall.step(30.0)
    hall.step(60.0)
    assert hall.playhead.state is State.PAUSED


def test_no_number_is_no_position():
    hall = Hall()
    with pytest.raises(PolicyError):
        hall.attendance.report_position(1.0, math.nan, paused=False, rate=1.0)
    with pytest.raises(PolicyError):
        hall.attendance.report_position(1.0, 1.0, paused=False, rate=0.0)


def test_a_picture_is_awaited_that_a_player_reads_for_behind_the_playhead():
    """All blocks from its byte on, as far as a key frame may reach; nothing before it."""
    hall = Hall(Pace.CLOCK)
    hall.step(10.0)
    assert not hall.attendance.is_picture_awaited
    reader = hall.attendance.open(10.0, 8 * SECOND + BLOCK_BYTES + 7)
    hall.attendance.waits(reader)
    assert hall.attendance.is_picture_awaited
    awaited = [hall.attendance.awaited_blocks(piece).tolist() for piece in (7, 8, 9, 12, 13)]
    assert awaited == [[False, False], [False, True], [True, True], [True, True], [False, False]]
    hall.attendance.taken(10.1, reader, 11 * SECOND)
    assert not hall.attendance.is_picture_awaited
