import contextlib
import zlib
from dataclasses import replace

import bencode2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toast.common.errors import UsageError
from toast.common.geometry import Geometry
from toast.common.timemap import MAX_CELLS, TimeMap, cell_bytes_for

KIB16 = 16 * 1024


def make(due, *, duration=10.0, index=(), startup=(), cell=KIB16, film=None, source="mp4"):
    film = len(due) * cell if film is None else film
    return TimeMap(film, duration, cell, np.array(due, float), index, startup, source)


@st.composite
def time_maps(draw):
    cells = draw(st.integers(1, 40))
    short = draw(st.integers(0, KIB16 - 1))
    film = cells * KIB16 - short
    due = draw(st.lists(st.integers(0, 60_000), min_size=cells, max_size=cells))
    starts = draw(st.lists(st.integers(0, film - 1), max_size=3))
    ranges = tuple((s, draw(st.integers(s + 1, film))) for s in starts)
    startup = ranges[: draw(st.integers(0, 3))]
    keys = np.array(sorted(draw(st.lists(st.integers(0, 60_000), max_size=9)))) / 1000
    begins = [draw(st.integers(0, cells - 1)) for _ in keys]
    due_s, key_cells = np.array(due) / 1000, np.array(begins, dtype=np.int64)
    return TimeMap(film, 60.0, KIB16, due_s, ranges, startup, "matroska", keys, key_cells)


class TestConstruction:
    def test_a_cell_is_the_least_power_of_two_that_keeps_the_map_small(self):
        assert cell_bytes_for(1) == KIB16
        assert cell_bytes_for(MAX_CELLS * KIB16) == KIB16
        assert cell_bytes_for(MAX_CELLS * KIB16 + 1) == 2 * KIB16
        assert cell_bytes_for(858_000_000) == 64 * 1024

    @pytest.mark.parametrize(
        ("changes", "said"),
        [
            ({"due": []}, "0 bytes"),
            ({"due": [0, 1], "film": KIB16}, "2 cells given where 1"),
            ({"due": [0, 11]}, "outside the film's duration"),
            ({"due": [0, -1]}, "outside the film's duration"),
            ({"due": [0, float("nan")]}, "outside the film's duration"),
            ({"due": [0], "duration": 0}, "0 seconds"),
            ({"due": [0], "duration": float("inf")}, "inf seconds"),
            ({"due": [0], "cell": 20_000}, "no power of two"),
            ({"due": [0], "cell": 8192}, "no power of two"),
            ({"due": [0], "index": ((0, KIB16 + 1),)}, "outside the film"),
            ({"due": [0], "startup": ((5, 5),)}, "outside the film"),
            ({"due": [0], "index": ((0, 1),) * 65}, "more than 64"),
        ],
    )
    def test_parts_that_do_not_fit_are_refused_with_one_line(self, changes, said):
        with pytest.raises(UsageError, match=said):
            make(**changes)

    def test_the_map_cannot_be_changed_from_outside(self):
        due = np.zeros(2)
        timemap = TimeMap(2 * KIB16, 1.0, KIB16, due, (), (), "mp4")
        due[1] = 1.0

        assert timemap.due[1] == 0
        with pytest.raises(ValueError, match="read-only"):
            timemap.due[0] = 1

    def test_maps_compare_by_value(self):
        assert make([0, 1]) == make([0, 1])
        assert hash(make([0, 1])) == hash(make([0, 1]))
        assert make([0, 1]) != make([0, 2])
        assert make([0, 1]) != make([0, 1], source="webm")
        assert make([0, 1]) != "a map"


class TestConstant:
    def test_bytes_and_time_are_proportional(self):
        timemap = TimeMap.constant(100 * KIB16, 50.0)

        assert timemap.bit_rate == 100 * KIB16 / 50
        assert timemap.time_of(10 * KIB16) == 5.0
        assert timemap.byte_of(5.0) == 10 * KIB16
        assert timemap.byte_of(5.25) == 10.5 * KIB16
        assert timemap.source == "constant"
        assert timemap.startup == ((0, KIB16),)

    def test_an_empty_film_is_refused(self):
        with pytest.raises(UsageError, match="0 bytes"):
            TimeMap.constant(0, 5.0)

    @given(st.integers(1, 1 << 40), st.floats(0.01, 1e5))
    def test_every_size_gives_a_lawful_map(self, film, duration):
        timemap = TimeMap.constant(film, duration)

        assert timemap.due.size <= MAX_CELLS
        assert timemap.byte_of(0) == 0
        assert timemap.byte_of(duration) == film


class TestDueOfPieces:
    def test_a_piece_is_due_when_the_first_of_its_cells_is(self):
        timemap = make([0, 5, 1, 6, 2, 7, 3])

        due = timemap.due_of_pieces(Geometry(timemap.film_bytes, 2 * KIB16))

        assert due.tolist() == [0, 1, 2, 3]

    def test_pieces_smaller_than_cells_take_the_time_of_their_cell(self):
        timemap = make([1, 2], cell=2 * KIB16)

        assert timemap.due_of_pieces(Geometry(4 * KIB16, KIB16)).tolist() == [1, 1, 2, 2]

    def test_pieces_that_straddle_cells(self):
        timemap = make([4, 3, 2], cell=2 * KIB16)

        assert timemap.due_of_pieces(Geometry(6 * KIB16, 3 * KIB16)).tolist() == [3, 2]

    def test_index_and_startup_are_due_at_once_wherever_they_are(self):
        end = 4 * KIB16
        timemap = make([1, 2, 3, 4], index=((end - 10, end),), startup=((0, 1), (end - 10, end)))

        assert timemap.due_of_pieces(Geometry(end, KIB16)).tolist() == [0, 2, 3, 0]

    def test_another_film_is_refused(self):
        with pytest.raises(UsageError, match="but this one has"):
            make([0]).due_of_pieces(Geometry(KIB16 + 1, KIB16))

    @given(time_maps(), st.integers(1, 9))
    def test_no_byte_is_needed_before_its_piece_is_due(self, timemap, blocks):
        geometry = Geometry(timemap.film_bytes, blocks * KIB16)
        due = timemap.due_of_pieces(geometry)

        assert due.shape == (geometry.pieces,)
        for offset in range(0, timemap.film_bytes, KIB16 // 2):
            assert due[geometry.piece_of(offset)] <= timemap.time_of(offset)


class TestUntilOfPieces:
    def test_a_piece_is_needed_until_a_later_one_begins(self):
        timemap = make([0, 2, 4, 6], duration=8.0)

        until = timemap.until_of_pieces(Geometry(timemap.film_bytes, 2 * KIB16))

        assert until[0] == 4
        assert until[1] == pytest.approx(8)
        assert until[1] > 8

    def test_cells_that_are_due_together_are_needed_together(self):
        """A Matroska index names key frames only: a whole group of pictures has one due time."""
        timemap = make([0, 0, 0, 5, 5, 9])

        until = timemap.until_of_pieces(Geometry(timemap.film_bytes, KIB16))

        assert until[:5].tolist() == [5, 5, 5, 9, 9]

    def test_two_readers_far_apart_both_have_their_needs(self):
        timemap = make([0, 4, 8, 0, 4, 8])

        until = timemap.until_of_pieces(Geometry(timemap.film_bytes, KIB16))

        assert until[:2].tolist() == until[3:5].tolist() == [4, 8]

    def test_the_index_is_needed_for_ever(self):
        end = 3 * KIB16
        timemap = make([0, 5, 0], index=((end - 9, end),))

        assert timemap.until_of_pieces(Geometry(end, KIB16))[-1] == np.inf

    @given(time_maps())
    def test_each_cell_is_needed_until_the_next_one_that_is_due_later(self, timemap):
        """By the definition, cell by cell: nothing of the index is among them here."""
        plain = replace(timemap, index=())
        due = plain.due.tolist()
        expected = [
            next((later for later in due[cell:] if later > mine), None)
            for cell, mine in enumerate(due)
        ]

        until = plain.until_of_pieces(Geometry(plain.film_bytes, KIB16)).tolist()

        end = np.nextafter(plain.duration, np.inf)
        assert until == [end if each is None else each for each in expected]

    @given(time_maps(), st.integers(1, 9))
    def test_need_ends_after_it_begins(self, timemap, blocks):
        geometry = Geometry(timemap.film_bytes, blocks * KIB16)

        assert (timemap.until_of_pieces(geometry) > timemap.due_of_pieces(geometry)).all()


class TestByteOf:
    def test_two_readers_far_apart_are_followed_by_the_one_in_front(self):
        """Video in the first half of the file, its sound in the second: the video leads."""
        timemap = make([0, 2, 4, 6, 0, 2, 4, 6])

        assert timemap.byte_of(4.0) == 2 * KIB16

    def test_an_index_at_the_end_of_the_file_does_not_attract_the_playhead(self):
        timemap = make([0, 5, 0])

        assert timemap.byte_of(1.0) < KIB16

    @given(time_maps(), st.floats(0, 59.99))
    def test_it_never_runs_ahead_of_time(self, timemap, time):
        offset = timemap.byte_of(time)

        assert 0 <= offset <= timemap.film_bytes
        assert offset == 0 or timemap.time_of(offset) <= time

    @given(time_maps(), st.floats(-5, 70), st.floats(-5, 70))
    def test_it_grows_with_time(self, timemap, one, other):
        low, high = sorted((one, other))

        assert timemap.byte_of(low) <= timemap.byte_of(high)


def with_keys(due, keys, cells):
    return replace(make(due), keys=np.array(keys), key_cells=np.array(cells, dtype=np.int64))


class TestKeyFrames:
    def test_a_picture_begins_with_the_key_frame_that_is_shown_last_before_it(self):
        timemap = with_keys([0, 1, 2.4, 4.9], [0.0, 2.5, 5.0], [0, 2, 3])

        shown = [timemap.key_before(at)[0] for at in (0.0, 2.4, 2.5, 4.9, 99.0)]
        assert shown == [0, 0, 2.5, 2.5, 5]

    def test_it_is_read_from_the_cell_in_which_it_begins(self):
        """It is decoded before it is shown, and begins behind the picture before it."""
        timemap = with_keys([0, 1, 2.4, 4.9], [0.0, 2.5, 5.0], [0, 1, 2])

        assert timemap.key_before(3.0) == (2.5, 2.4)
        assert timemap.key_before(9.0) == (5.0, 4.9)

    def test_a_cell_that_is_needed_longer_is_needed_to_the_key_frame(self):
        assert with_keys([0, 1, 9], [2.5], [1]).key_before(3.0) == (2.5, 2.5)

    def test_none_may_be_known(self):
        assert make([0, 1]).key_before(3.3) is None
        assert with_keys([0, 1], [4.0], [0]).key_before(3.3) is None

    def test_they_stay_where_they_are_in_something_larger(self):
        timemap = with_keys([0, 1], [0.0, 2.5], [0, 1]).within(KIB16 + 100, 10 * KIB16)

        assert timemap.keys.tolist() == [0.0, 2.5]
        assert timemap.key_cells.tolist() == [1, 2]

    def test_maps_of_old_tell_only_when_they_are_decoded(self):
        """A key frame is taken to begin behind the last picture of the cell before its own."""
        value = with_keys([0, 1, 2.5, 4], [0.0, 2.5, 3.0], [0, 1, 2]).to_bencodable()
        del value[b"key cells"]

        old = TimeMap.from_bencodable(value)
        assert old.keys.tolist() == [0.0, 2.5, 3.0]
        assert old.key_cells.tolist() == [0, 1, 2]
        assert old.key_before(2.9) == (2.5, 2.5)

    @pytest.mark.parametrize("cells", [[0], [0, 2], [-1, 0]])
    def test_each_begins_somewhere_in_the_film(self, cells):
        with pytest.raises(UsageError, match="begin nowhere"):
            with_keys([0, 1], [0.0, 2.5], cells)


class TestEncoding:
    @given(time_maps())
    def test_a_map_survives_the_torrent(self, timemap):
        carried = bencode2.bdecode(bencode2.bencode(timemap.to_bencodable()))

        assert TimeMap.from_bencodable(carried) == timemap

    def test_text_keys_are_read_as_well(self):
        value = {k.decode(): v for k, v in make([0, 1]).to_bencodable().items()}

        assert TimeMap.from_bencodable(value) == make([0, 1])

    def test_times_are_rounded_to_the_early_side(self):
        carried = TimeMap.from_bencodable(make([0, 1.2349], duration=9.9991).to_bencodable())

        assert carried.due.tolist() == [0, 1.234]
        assert carried.duration == 10.0

    def test_an_hour_long_film_takes_little_room_in_its_torrent(self):
        packed = bencode2.bencode(TimeMap.constant(858_000_000, 3600).to_bencodable())

        assert len(packed) < 20_000

    @pytest.mark.parametrize(
        "change",
        [
            {b"version": 2},
            {b"film bytes": 0},
            {b"film bytes": 1 << 60},
            {b"film bytes": True},
            {b"cell": 1},
            {b"cell": -KIB16},
            {b"duration ms": "10"},
            {b"keys": b"no zlib", b"key count": 1},
            {b"keys": zlib.compress(bytes(8)), b"key count": 1},
            {b"keys": zlib.compress(bytes(4)), b"key count": MAX_CELLS + 1},
            {b"keys": zlib.compress(bytes(4))},
            {b"keys": zlib.compress(bytes(4)), b"key count": 1, b"key cells": b"no zlib"},
            {
                b"keys": zlib.compress(bytes(4)),
                b"key count": 1,
                b"key cells": zlib.compress(b"\x02\x00\x00\x00"),
            },
            {b"keys": zlib.compress(b"\xff\xff\xff\x7f"), b"key count": 1},
            {b"keys": zlib.compress(b"\x09\0\0\0\xff\xff\xff\xff"), b"key count": 2},
            {b"due": 5},
            {b"due": b"no zlib"},
            {b"due": zlib.compress(b"")},
            {b"due": zlib.compress(bytes(100_000_000))},
            {b"due": zlib.compress(np.array([0, -1], "<i4").tobytes())},
            {b"due": zlib.compress(np.array([0, 2**31 - 1], "<i4").tobytes())},
            {b"index": None},
            {b"index": [[1]]},
            {b"index": [[0, "9"]]},
            {b"index": [[-4, 9]]},
            {b"index": [[0, 1]] * 65},
            {b"startup": [[0, 10 * KIB16]]},
            {b"source": b"\x1b[31mred"},
            {b"source": b"x" * 1000},
            {b"source": 7},
        ],
    )
    def test_a_hostile_map_is_refused_with_one_line(self, change):
        value = make([0, 1]).to_bencodable() | change

        with pytest.raises(UsageError) as caught:
            TimeMap.from_bencodable(value)
        assert "\n" not in str(caught.value)

    def test_a_map_of_the_future_asks_for_an_update(self):
        with pytest.raises(UsageError, match="please update"):
            TimeMap.from_bencodable(make([0]).to_bencodable() | {b"version": 2})

    @pytest.mark.parametrize("value", [None, 5, b"x", [], {}, {1: 2}, {"\ud800": 1}])
    def test_what_is_no_map_at_all_is_refused(self, value):
        with pytest.raises(UsageError):
            TimeMap.from_bencodable(value)

    @given(
        st.recursive(
            st.integers() | st.binary(max_size=40),
            lambda inner: (
                st.lists(inner, max_size=4)
                | st.dictionaries(
                    st.sampled_from([b"version", b"film bytes", b"cell", b"due", b"duration ms"]),
                    inner,
                )
            ),
            max_leaves=12,
        )
    )
    def test_no_value_breaks_the_reader(self, value):
        with contextlib.suppress(UsageError):
            TimeMap.from_bencodable(value)
