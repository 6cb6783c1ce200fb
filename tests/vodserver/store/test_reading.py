"""What is wanted of an extent is read in whole checksum spans."""

from hypothesis import given
from hypothesis import strategies as st

from vodserver.store.reading import ArraySettings, Wanted
from vodserver.store.sums import SUM_SPAN

_SIZES = st.integers(1, 5 * SUM_SPAN)


@given(size=_SIZES, ends=st.tuples(_SIZES, _SIZES))
def test_what_is_read_is_the_least_that_can_be_verified(size, ends):
    begin, stop = sorted(min(end, size) for end in ends)
    wanted = Wanted(("t", 0), size, b"", begin, stop)

    assert 0 <= wanted.low <= begin <= stop <= wanted.high <= size
    assert wanted.low % SUM_SPAN == 0
    assert wanted.high % SUM_SPAN == 0 or wanted.high == size
    assert begin - wanted.low < SUM_SPAN
    assert wanted.high - stop < SUM_SPAN


def test_a_read_is_given_up_long_after_it_was_tried_elsewhere():
    settings = ArraySettings()
    assert settings.stall_seconds < settings.read_timeout_seconds / 4
