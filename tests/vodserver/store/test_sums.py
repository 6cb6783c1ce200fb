"""Checksums of extents."""

import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from vodserver.store.sums import SUM_BYTES, SUM_SPAN, matches, sums_of

_data = st.builds(
    lambda size, seed: bytes((n * seed) & 0xFF for n in range(97)) * (size // 97 + 1),
    st.integers(0, 3 * SUM_SPAN),
    st.integers(1, 255),
)


def test_there_is_one_sum_of_xxh3_per_span():
    data = b"a" * SUM_SPAN + b"b" * 10

    assert sums_of(data) == xxhash.xxh3_64_digest(b"a" * SUM_SPAN) + xxhash.xxh3_64_digest(
        b"b" * 10
    )
    assert sums_of(b"") == b""


@given(_data, st.data())
def test_every_aligned_part_matches_and_no_changed_one_does(data, draw):
    sums = sums_of(data)
    spans = len(sums) // SUM_BYTES
    first = draw.draw(st.integers(0, max(0, spans - 1)))
    last = draw.draw(st.integers(first, spans))
    part = data[first * SUM_SPAN : last * SUM_SPAN]

    assert matches(part, first * SUM_SPAN, sums)

    if part:
        at = draw.draw(st.integers(0, len(part) - 1))
        changed = bytearray(part)
        changed[at] ^= draw.draw(st.integers(1, 255))
        assert not matches(bytes(changed), first * SUM_SPAN, sums)


@pytest.mark.parametrize("cut", [1, 100])
def test_a_shorter_last_span_does_not_match(cut):
    data = b"film" * 20_000

    assert not matches(data[:-cut], 0, sums_of(data))


def test_more_than_there_are_sums_for_does_not_match():
    data = b"x" * SUM_SPAN

    assert not matches(data + b"y", 0, sums_of(data))
