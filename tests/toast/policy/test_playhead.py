import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toast.common.errors import UsageError
from toast.common.geometry import Geometry
from toast.common.timemap import TimeMap
from toast.policy.errors import PolicyError
from toast.policy.playhead import Playhead, State

KIB16 = 16 * 1024


def film_of(due, *, duration=None, index=(), startup=((0, 1),)):
    """One cell per piece: `due` are the due times of the pieces."""
    size = len(due) * KIB16
    timemap = TimeMap(
        size, duration or float(len(due)), KIB16, np.array(due, float), index, startup, "mp4"
    )
    return timemap, Geometry(size, KIB16)


def playhead(pieces=10, opened_at=100.0, **kwargs):
    """A film of one piece per second."""
    return Playhead(*film_of(range(pieces), **kwargs), opened_at)


def have(picture, pieces=10):
    return np.array([c == "*" for c in picture.ljust(pieces)])


def test_where_it_will_be_is_known_between_two_looks():
    head = playhead()
    assert head.position_at(105.0) == 0.0
    head.tick(100.0, have("***"))
    assert head.position_at(101.25) == pytest.approx(1.25)
    assert head.position_at(109.0) == 3.0  # what is missing is not passed
    assert head.position == 0.0


class TestStart:
    def test_it_waits_for_what_the_first_picture_needs(self):
        end = 10 * KIB16
        head = playhead(index=((end - 5, end),), startup=((0, KIB16 + 1), (end - 5, end)))
        head.tick(100.2, have("*"))
        assert head.state is State.STARTING
        head.tick(100.5, have("**"))
        assert head.state is State.STARTING
        head.tick(100.75, have("**       *"))

        assert head.state is State.PLAYING
        assert head.start_seconds == pytest.approx(0.75)
        assert head.stalls == 0

    def test_what_is_due_at_zero_belongs_to_the_start_and_makes_no_stall(self):
        """Sound that begins with the first picture may lie in another piece."""
        head = Playhead(*film_of([0, 0, 1, 2]), opened_at=0.0)
        head.tick(0.1, have("*", 4))
        assert head.state is State.STARTING
        head.tick(0.3, have("**", 4))

        assert head.start_seconds == pytest.approx(0.3)
        assert head.stalls == 0

    def test_what_the_first_picture_needs_is_needed_now(self):
        end = 10 * KIB16
        head = playhead(index=((end - 5, end),), startup=((0, KIB16 + 1), (end - 5, end)))

        slack = head.slack(100.0)
        assert slack[[0, 1, 9]].max() <= 0
        assert slack[2] == 2.0

    def test_a_pause_before_the_start_waits_for_the_picture_first(self):
        head = playhead()
        head.pause(100.1)
        assert head.state is State.STARTING
        head.tick(100.2, have("*"))
        assert head.state is State.PAUSED
        head.resume(101.0)

        assert head.state is State.PLAYING
        assert head.start_seconds == pytest.approx(0.2)

    def test_film_and_cut_must_belong_together(self):
        timemap, _ = film_of([0, 1])
        with pytest.raises(UsageError, match="but this one has"):
            Playhead(timemap, Geometry(5 * KIB16, KIB16))


class TestPlaying:
    def test_it_runs_with_the_clock(self):
        head = playhead()
        head.tick(100.0, have("**********"))
        head.tick(103.5, have("**********"))

        assert head.position == pytest.approx(3.5)
        assert head.state is State.PLAYING

    def test_it_halts_at_the_first_missing_piece_and_not_before(self):
        head = playhead()
        head.tick(100.0, have("***"))
        head.tick(105.0, have("***"))

        assert head.position == 3.0
        assert head.state is State.STALLED
        assert head.stalls == 1
        assert head.stall_seconds(105.0) == pytest.approx(2.0)
        assert head.stall_seconds(106.0) == pytest.approx(3.0)

    def test_it_goes_on_when_the_piece_comes(self):
        head = playhead()
        head.tick(100.0, have("***"))
        head.tick(104.5, have("*********"))
        assert (head.position, head.state) == (3.0, State.PLAYING)
        head.tick(106.0, have("*********"))

        assert head.position == pytest.approx(4.5)
        assert head.stalls == 1
        assert head.stall_seconds(106.0) == pytest.approx(1.5)

    def test_a_piece_that_comes_in_the_nick_of_time_makes_no_stall(self):
        head = playhead()
        head.tick(100.0, have("***"))
        head.tick(103.0, have("*****"))

        assert (head.stalls, head.stall_seconds(103.0), head.position) == (0, 0.0, 3.0)

    def test_a_missing_piece_behind_another_missing_one_is_a_second_stall(self):
        head = playhead()
        head.tick(100.0, have("* *"))
        head.tick(102.0, have("***"))
        head.tick(105.0, have("****"))
        head.tick(106.0, have("****"))

        assert head.stalls == 3
        assert head.stalled_at == [101.0, 104.0, 106.0]
        assert head.stall_seconds(106.0) == pytest.approx(1.0 + 1.0 + 0.0)

    def test_a_piece_that_is_lost_while_it_plays_halts_the_film_there(self):
        head = playhead()
        head.tick(100.0, have("**********"))
        head.tick(102.5, have("** *******"))

        assert (head.state, head.position) == (State.STALLED, 2.5)

    def test_a_piece_that_is_lost_behind_the_playhead_is_not_missed(self):
        head = playhead()
        head.tick(100.0, have("**********"))
        head.tick(102.5, have("  ********"))

        assert head.state is State.PLAYING

    def test_badly_interleaved_films_need_two_places_at_once(self):
        head = Playhead(*film_of([0, 2, 4, 0, 2, 4], duration=6.0), opened_at=0.0)
        head.tick(0.0, have("** *", 6))
        head.tick(5.0, have("** *", 6))

        assert head.position == 2.0
        assert head.state is State.STALLED

    def test_it_ends_at_the_end(self):
        head = playhead()
        head.tick(100.0, have("**********"))
        head.tick(115.0, have("**********"))

        assert (head.state, head.position) == (State.ENDED, 10.0)
        assert head.stalls == 0

    def test_a_clock_that_goes_back_is_not_believed(self):
        head = playhead()
        head.tick(102.0, have("**********"))
        head.tick(101.0, have("**********"))

        assert head.position == 0
        assert head.state is State.PLAYING

    def test_the_caller_may_go_on_using_its_array(self):
        pieces = have("**********")
        head = playhead()
        head.tick(100.0, pieces)
        pieces[:] = False
        head.tick(104.0, have("**********"))

        assert head.position == pytest.approx(4.0)


class TestCommands:
    def test_a_pause_stops_the_film_and_not_the_count_of_anything(self):
        head = playhead()
        head.tick(100.0, have("**********"))
        head.pause(101.0)
        head.tick(150.0, have("**********"))
        assert (head.position, head.state) == (1.0, State.PAUSED)
        head.resume(150.0)
        head.tick(152.0, have("**********"))

        assert head.position == pytest.approx(3.0)
        assert head.stall_seconds(152.0) == 0

    def test_pausing_a_stall_ends_its_count_and_resuming_goes_on_with_the_same_stall(self):
        head = playhead()
        head.tick(100.0, have("***"))
        head.pause(104.0)
        assert head.state is State.PAUSED
        assert head.stall_seconds(110.0) == pytest.approx(1.0)
        head.resume(110.0)
        assert head.state is State.STALLED
        head.tick(112.0, have("****"))

        assert head.stalls == 1
        assert head.stall_seconds(112.0) == pytest.approx(3.0)

    def test_speed(self):
        head = playhead()
        head.tick(100.0, have("******"))
        head.set_rate(101.0, 2.0)
        assert head.rate == 2.0
        head.tick(102.0, have("******"))
        assert head.position == pytest.approx(3.0)
        assert head.slack(102.0)[6] == pytest.approx(1.5)
        head.tick(110.0, have("******"))

        assert head.position == 6.0
        assert head.stall_seconds(110.0) == pytest.approx(6.5)

    @pytest.mark.parametrize("rate", [0, -1, math.inf, math.nan])
    def test_impossible_speeds_are_refused(self, rate):
        head = playhead()
        with pytest.raises(PolicyError, match="cannot play at a rate"):
            head.set_rate(100.0, rate)
        assert head.rate == 1.0

    def test_a_seek_is_a_new_start_and_its_wait_is_no_stall(self):
        head = playhead()
        head.tick(100.0, have("**"))
        head.seek(101.0, 5.5)
        assert (head.state, head.position) == (State.STARTING, 5.5)
        head.tick(101.4, have("**   * "))
        head.tick(101.6, have("**   **"))

        assert head.seek_seconds == [pytest.approx(0.4)]
        assert head.stalls == 0
        assert head.position == pytest.approx(5.7)

    def test_a_seek_to_what_is_here_takes_no_time(self):
        head = playhead()
        head.tick(100.0, have("**********"))
        head.seek(101.0, 7.0)

        assert head.state is State.PLAYING
        assert head.seek_seconds == [0.0]

    def test_a_seek_ends_a_stall(self):
        head = playhead()
        head.tick(100.0, have("*    *****"))
        head.seek(103.0, 6.0)
        head.tick(105.0, have("*    *****"))

        assert (head.stalls, head.stall_seconds(105.0)) == (1, pytest.approx(2.0))
        assert head.position == pytest.approx(8.0)

    def test_after_a_seek_what_lies_before_is_not_needed(self):
        head = playhead()
        head.tick(100.0, have("*"))
        head.seek(100.5, 5.0)

        slack = head.slack(100.5)
        assert np.isinf(slack[:5]).all()
        assert slack[5:].tolist() == [0, 1, 2, 3, 4]

    def test_a_piece_in_whose_middle_the_seek_lands_is_needed(self):
        head = playhead()
        head.seek(100.0, 5.9)
        head.tick(100.1, have("      ****"))

        assert head.state is State.STARTING
        assert head.slack(100.1)[5] <= 0

    def test_a_seek_before_the_start_does_not_wait_for_the_first_picture(self):
        head = playhead()
        head.seek(100.5, 4.0)
        head.tick(101.0, have("    *"))

        assert head.start_seconds == pytest.approx(1.0)
        assert head.seek_seconds == []

    def test_the_index_is_needed_after_a_seek_too(self):
        end = 10 * KIB16
        head = playhead(index=((end - 5, end),), startup=((0, 1), (end - 5, end)))
        head.seek(100.0, 4.0)
        head.tick(100.5, have("    *"))
        assert head.state is State.STARTING
        head.tick(100.6, have("    *    *"))

        assert head.state is State.PLAYING

    def test_a_seek_while_paused_stays_paused(self):
        head = playhead()
        head.tick(100.0, have("**********"))
        head.pause(101.0)
        head.seek(102.0, 8.0)

        assert (head.state, head.position) == (State.PAUSED, 8.0)

    def test_a_seek_back_from_the_end_plays_again(self):
        head = playhead()
        head.tick(100.0, have("**********"))
        head.tick(200.0, have("**********"))
        head.seek(200.0, 1.0)
        head.tick(201.0, have("**********"))

        assert (head.state, head.position) == (State.PLAYING, pytest.approx(2.0))

    def test_seeks_are_clamped_to_the_film(self):
        head = playhead()
        head.tick(100.0, have("**********"))
        head.seek(101.0, -5)
        assert head.position == 0
        head.seek(101.0, 99)

        assert (head.position, head.state) == (10.0, State.ENDED)
        with pytest.raises(PolicyError, match="cannot seek"):
            head.seek(101.0, math.nan)


class TestSlack:
    def test_it_is_the_time_until_due_and_infinite_behind(self):
        head = playhead()
        head.tick(100.0, have("**********"))
        head.tick(102.5, have("**********"))

        slack = head.slack(102.5)
        assert np.isinf(slack[:2]).all()
        assert slack[2:].tolist() == pytest.approx([-0.5, 0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5])

    def test_it_may_be_asked_between_ticks(self):
        head = playhead()
        head.tick(100.0, have("**********"))

        assert head.slack(101.0)[5] == pytest.approx(4.0)
        assert head.position == 0

    @pytest.mark.parametrize("halt", ["pause", "stall"])
    def test_while_nothing_moves_it_stands_still(self, halt):
        head = playhead()
        head.tick(100.0, have("**"))
        if halt == "pause":
            head.pause(102.0)
        else:
            head.tick(104.0, have("**"))

        assert head.slack(110.0)[5] == pytest.approx(3.0)


class TestNextEvent:
    def test_it_is_the_time_until_something_is_missing(self):
        head = playhead()
        pieces = have("*****")
        head.tick(100.0, pieces)

        assert head.next_event(100.0, pieces) == pytest.approx(5.0)
        assert head.next_event(102.0, pieces) == pytest.approx(3.0)
        head.set_rate(102.0, 2.0)
        assert head.next_event(102.0, pieces) == pytest.approx(1.5)

    def test_or_until_the_end(self):
        head = playhead()
        head.tick(100.0, have("**********"))

        assert head.next_event(104.0, have("**********")) == pytest.approx(6.0)

    def test_nothing_comes_of_itself_while_nothing_moves(self):
        head = playhead()
        assert head.next_event(100.0, have("")) == math.inf
        head.tick(100.0, have("*"))
        head.tick(103.0, have("*"))
        assert head.next_event(103.0, have("*")) == math.inf
        head.seek(103.0, 0)
        head.pause(103.0)
        assert head.next_event(103.0, have("*")) == math.inf

    def test_a_timer_set_by_it_finds_the_halt(self):
        head = playhead()
        pieces = have("***")
        head.tick(100.0, pieces)
        head.tick(100.0 + head.next_event(100.0, pieces), pieces)

        assert head.state is State.STALLED
        assert head.position == 3.0
        assert head.stall_seconds(103.0) == pytest.approx(0.0)


@st.composite
def viewings(draw):
    count = draw(st.integers(1, 12))
    due = draw(st.lists(st.integers(0, 40).map(lambda n: n / 4), min_size=count, max_size=count))
    deed = st.one_of(
        st.tuples(st.just("tick"), st.lists(st.integers(0, count - 1), max_size=4)),
        st.tuples(st.just("lose"), st.integers(0, count - 1)),
        st.tuples(st.just("pause"), st.none()),
        st.tuples(st.just("resume"), st.none()),
        st.tuples(st.just("seek"), st.floats(0, 10)),
        st.tuples(st.just("rate"), st.sampled_from([0.5, 1.0, 2.0])),
    )
    deeds = draw(st.lists(st.tuples(st.floats(0, 3), deed), max_size=30))
    return due, deeds


@pytest.mark.slow
@settings(derandomize=True, deadline=None, max_examples=200)
@given(viewings())
def test_no_viewing_passes_a_missing_piece_and_all_time_is_accounted_for(viewing):
    """Time is waiting to start, playing, stalling, pausing, waiting after a seek or ended."""
    due, deeds = viewing
    timemap, geometry = film_of(due, duration=10.5)
    head = Playhead(timemap, geometry, opened_at=0.0)
    until = timemap.until_of_pieces(geometry)
    due = timemap.due_of_pieces(geometry)
    here = np.zeros(geometry.pieces, dtype=bool)
    now = 0.0
    for wait, (deed, detail) in deeds:
        before = (head.position, head.stalls, head.stall_seconds(now), head.state)
        now += wait
        known = here.copy()
        if deed == "tick":
            here[detail] = True
            head.tick(now, here)
        elif deed == "lose":
            here[detail] = False
            head.tick(now, here)
        elif deed in ("pause", "resume"):
            getattr(head, deed)(now)
        elif deed == "seek":
            head.seek(now, detail)
        else:
            head.set_rate(now, detail)

        assert 0 <= head.position <= timemap.duration
        assert head.stalls >= before[1]
        assert head.stall_seconds(now) >= before[2] - 1e-9
        assert head.stall_seconds(now) <= now + 1e-9
        if deed != "seek":
            passed = (
                ~known & (due >= before[0]) & (due < head.position - 1e-9) & (until > before[0])
            )
            assert not passed.any(), "it ran over a piece that was not there"
            moved = head.position - before[0]
            assert -1e-9 <= moved <= wait * 2.0 + 1e-9
            stalled = head.stall_seconds(now) - before[2]
            assert moved / 2.0 + stalled <= wait + 1e-9, "playing and stalling exclude each other"
            if before[3] is State.PLAYING is head.state and head.rate == 1.0 and deed != "rate":
                assert moved + stalled == pytest.approx(wait, abs=1e-9)
        if head.state is State.PLAYING and deed in ("tick", "lose"):
            missing = ~here & (due <= head.position) & (until > head.position)
            assert not missing.any(), "it plays what is not there"
        assert (head.state is State.STARTING) or head.start_seconds is not None
        assert not np.isnan(head.slack(now)).any()
        assert head.next_event(now, here) >= 0


def test_from_a_key_frame_also_the_cell_in_which_it_begins_is_awaited():
    """The key frame of second 2.1 is decoded at 2, and begins in the cell before that one."""
    block = 16 * 1024
    film = Geometry(film_bytes=4 * block, piece_bytes=4 * block)
    due, keys, cells = np.array([0.0, 1.0, 2.0, 3.0]), np.array([0.0, 2.1]), np.array([0, 1])
    timemap = TimeMap(film.film_bytes, 4.0, block, due, (), ((0, 1),), "mp4", keys, cells)
    playhead = Playhead(timemap, film)
    playhead.seek(0.0, 2.5)
    assert playhead.awaited_blocks(0).tolist() == [False, False, True, False]
    playhead.seek(0.0, 2.5, from_key=True)
    assert playhead.position == 2.1
    assert playhead.awaited_blocks(0).tolist() == [False, True, True, False]
    playhead.seek(0.0, 2.05, from_key=True)
    assert playhead.position == 0.0, "the next key frame is decoded by then, but not shown"
    assert playhead.awaited_blocks(0).tolist() == [True, False, False, False]
    playhead.seek(0.0, 2.1)
    assert playhead.awaited_blocks(0).tolist() == [False, False, True, False]


def test_what_is_lacking_at_a_time_is_known_wherever_the_playhead_is():
    block = 16 * 1024
    film = Geometry(film_bytes=4 * block, piece_bytes=block)
    timemap = TimeMap(film.film_bytes, 4.0, block, np.arange(4.0), (), ((0, 1),), "mp4")
    playhead = Playhead(timemap, film)
    playhead.tick(0.0, np.array([True, True, False, True]))
    assert [playhead.lacks(time) for time in (0.5, 1.9, 2.0, 2.9, 3.0)] == [
        False,
        False,
        True,
        True,
        False,
    ]
