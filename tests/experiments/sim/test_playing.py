"""The simulator's playhead is the viewer's: both are told the same, and must say the same."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.sim.cut import Cut, lowest
from experiments.sim.playing import Playing
from toast.common.geometry import Geometry
from toast.common.timemap import TimeMap
from toast.policy.playhead import Playhead, State

PIECES = 12
GEOMETRY = Geometry(PIECES * 32_768 - 100, 32_768)
CONSTANT = TimeMap.constant(GEOMETRY.film_bytes, 12.0)
_CELLS = CONSTANT.due.size
UNEVEN = TimeMap(
    GEOMETRY.film_bytes,
    12.0,
    CONSTANT.cell_bytes,
    np.minimum(np.abs(np.sin(np.arange(_CELLS))) * 2 + np.arange(_CELLS) * 0.4, 12.0),
    (),
    ((0, 40_000), (GEOMETRY.film_bytes - 10, GEOMETRY.film_bytes)),
    "mp4",
)


@pytest.mark.parametrize("timemap", [CONSTANT, UNEVEN])
@given(data=st.data())
def test_it_starts_halts_seeks_and_ends_as_the_viewers_does(timemap, data):
    seeks = data.draw(st.dictionaries(st.floats(0.1, 30), st.floats(0, 11.9), max_size=3))
    arrivals = data.draw(st.lists(st.floats(0, 25), min_size=PIECES, max_size=PIECES).map(np.array))
    cut = Cut(timemap, GEOMETRY)
    have = np.zeros(PIECES, dtype=np.bool_)
    playing, playhead = Playing(cut, 0.0), Playhead(timemap, GEOMETRY, 0.0)
    times = sorted({0.0, *arrivals.tolist(), *seeks, 60.0, 100.0})
    look = math.inf
    out = np.empty(PIECES)
    for time in times:
        while look < time:
            look = playing.follow(look, have.data)
        have[arrivals <= time] = True
        if time in seeks and not playing.ended:
            playing.follow(time, have.data)
            playhead.tick(time, have)
            if not playing.ended:
                playing.seek(time, seeks[time])
                playhead.seek(time, seeks[time])
        look = playing.follow(time, have.data)
        playhead.tick(time, have)

        assert playing.position(time) == pytest.approx(playhead.position)
        assert playing.awaiting == (playhead.state is State.STARTING)
        np.testing.assert_allclose(playing.slack(time, out), playhead.slack(time), atol=1e-6)

    assert playing.ended
    assert playhead.state is State.ENDED
    assert playing.start_seconds == playhead.start_seconds
    assert playing.seek_seconds == pytest.approx(playhead.seek_seconds)
    assert playing.stalls == playhead.stalls
    assert playing.stalled_at == pytest.approx(playhead.stalled_at)
    assert playing.stall_seconds == pytest.approx(playhead.stall_seconds(100.0))


def test_what_is_thrown_away_ahead_of_the_playhead_stops_it():
    cut = Cut(CONSTANT, GEOMETRY)
    have = np.ones(PIECES, dtype=np.bool_)
    playing = Playing(cut, 0.0)
    playing.follow(0.0, have.data)
    playing.stop_position(5.0, have.data)

    have[8] = False
    playing.lost(8)

    assert playing.stop_position(5.0, have.data) == cut.due_list[8]


@given(st.integers(0, 2**20), st.integers(0, 25))
def test_the_lowest_blocks_are_some_of_them_and_none_is_lower(blocks, count):
    taken = lowest(blocks, count)

    assert taken & ~blocks == 0
    assert taken.bit_count() == min(count, blocks.bit_count())
    if taken != blocks:
        assert taken < (blocks ^ taken) & -(blocks ^ taken)


@given(st.integers(0, PIECES - 1), st.integers(0, 3))
def test_blocks_as_bits_have_the_size_that_the_geometry_says(piece, blocks):
    cut = Cut(CONSTANT, GEOMETRY)
    flags = cut.flags(piece, blocks)

    assert [bool(blocks >> n & 1) for n in range(2)] == flags.tolist()
    assert cut.size(piece, blocks) == sum(
        GEOMETRY.block_size(piece, n) for n in range(2) if flags[n]
    )
