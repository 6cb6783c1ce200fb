import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from toast.media.cells import Packets, make_timemap, merge_ranges, need_times

KIB16 = 16 * 1024


def make(rows, *, cells=6, duration=10.0, index=(), first=()):
    return make_timemap(
        cells * KIB16, duration, Packets.of(rows), index=index, first=first, source="mp4"
    )


def test_pictures_that_are_stored_out_of_order_are_needed_when_the_next_one_is_shown():
    """I0 P3 B1 B2 in decoding order: P3 must be there before B1 can be decoded."""
    assert need_times([0, 3, 1, 2, 6, 4, 5]).tolist() == [0, 1, 1, 2, 4, 4, 5]


def test_a_cell_is_due_with_its_earliest_packet():
    rows = [(0, 100, 3.0), (100, 200, 1.0), (200, 300, 2.0)]

    assert make(rows, cells=1).due.tolist() == [1.0]


def test_a_long_packet_counts_for_every_cell_that_it_touches():
    timemap = make([(10, 3 * KIB16 + 1, 2.0), (3 * KIB16 + 1, 6 * KIB16, 4.0)])

    assert timemap.due.tolist() == [2, 2, 2, 2, 4, 4]


def test_cells_that_nobody_needs_come_along_with_the_next():
    timemap = make([(0, 10, 0.0), (3 * KIB16, 4 * KIB16, 5.0)])

    assert timemap.due[:4].tolist() == [0, 5, 5, 5]
    assert timemap.due[5] < 10.0
    assert timemap.due[5] > 9.99


def test_the_index_is_due_at_once_and_part_of_startup():
    end = 6 * KIB16
    rows = [(KIB16 * i, KIB16 * (i + 1), float(i)) for i in range(6)]
    timemap = make(rows, index=[(end - 5, end)], first=[(0, 9)])

    assert timemap.due.tolist() == [0, 1, 2, 3, 4, 0]
    assert timemap.index == ((end - 5, end),)
    assert timemap.startup == ((0, 9), (end - 5, end))


def test_times_outside_the_film_are_clamped():
    """Decoding begins before the first picture is shown; some files promise too short a length."""
    timemap = make([(0, KIB16, -0.04), (KIB16, 6 * KIB16, 99.0)])

    assert timemap.due[0] == 0
    assert 9.9 < timemap.due[1] < 10.0


def test_ranges_are_merged():
    assert merge_ranges([(5, 9), (0, 2), (2, 3), (8, 12), (4, 4)]) == ((0, 3), (5, 12))
    assert merge_ranges([]) == ()


spans = st.lists(
    st.tuples(st.integers(0, 6 * KIB16 - 1), st.integers(1, 3 * KIB16), st.floats(0, 9)),
    min_size=1,
    max_size=20,
)


@settings(derandomize=True, deadline=None)
@given(spans)
def test_no_packet_is_later_than_its_cells(rows):
    rows = [(start, min(start + size, 6 * KIB16), due) for start, size, due in rows]
    timemap = make(rows)

    for start, end, due in rows:
        assert max(timemap.time_of(b) for b in {start, (start + end) // 2, end - 1}) <= due
    touched = {c for s, e, _ in rows for c in range(s // KIB16, (e - 1) // KIB16 + 1)}
    for cell in touched:
        least = min(d for s, e, d in rows if s // KIB16 <= cell <= (e - 1) // KIB16)
        assert timemap.due[cell] == least


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), max_size=8))
def test_merged_ranges_hold_the_same_bytes(ranges):
    def inside(some):
        return {b for start, end in some for b in range(start, end)}

    merged = merge_ranges(ranges)
    assert inside(merged) == inside(ranges)
    assert all(a[1] < b[0] for a, b in itertools.pairwise(merged))


def test_packets_from_rows():
    packets = Packets.of([(1, 2, 0.5)])

    assert (packets.start.dtype, packets.due.dtype) == (np.int64, np.float64)
    assert (packets.start[0], packets.end[0], packets.due[0]) == (1, 2, 0.5)
