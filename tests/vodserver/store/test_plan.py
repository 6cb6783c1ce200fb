"""Films are cut well, known again, and their plans survive being kept."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vodserver.store.plan import Cut, FilmIdentity, IngestPlan, cut_of


@pytest.mark.parametrize(
    ("film_bytes", "duration", "cut"),
    [
        # 2 Mb/s: a second is 250 kB, hence 128 KiB pieces; 5 s are 1.25 MB, hence 10 pieces
        (15_000_000, 60.0, Cut(128 * 1024, 10 * 128 * 1024)),
        # 6 Mb/s for two hours: a 512 KiB piece; 3.75 MB rounded up to 8 of them
        (5_400_000_000, 7200.0, Cut(512 * 1024, 8 * 512 * 1024)),
        # slower than a piece a second: the smallest piece there is
        (60_000, 60.0, Cut(16 * 1024, 16 * 1024)),
        (1, 0.04, Cut(16 * 1024, 16 * 1024)),
        # so long that the .torrent would grow: pieces longer than a second
        (1_000_000_000, 100_000.0, Cut(64 * 1024, 64 * 1024)),
        # faster than any disk array should give a film: both caps
        (10**12, 1000.0, Cut(4 * 1024 * 1024, 64 * 1024 * 1024)),
    ],
)
def test_the_cut_follows_the_bit_rate(film_bytes, duration, cut):
    assert cut_of(film_bytes, duration) == cut


def test_pieces_of_another_size_make_extents_of_whole_pieces():
    assert cut_of(15_000_000, 60.0, 256 * 1024) == Cut(256 * 1024, 5 * 256 * 1024)


@given(st.integers(1, 10**13), st.floats(0.01, 10**6))
def test_every_cut_is_lawful(film_bytes, duration):
    cut = cut_of(film_bytes, duration)
    pieces = -(-film_bytes // cut.piece_bytes)

    assert cut.piece_bytes.bit_count() == 1
    assert 16 * 1024 <= cut.piece_bytes <= 4 * 1024 * 1024
    assert cut.extent_bytes % cut.piece_bytes == 0
    assert cut.piece_bytes <= cut.extent_bytes <= 64 * 1024 * 1024
    assert pieces <= 16_384 or cut.piece_bytes == 4 * 1024 * 1024
    longer_than_a_second = cut.piece_bytes > film_bytes / duration
    if longer_than_a_second and cut.piece_bytes > 16 * 1024:  # only to have fewer pieces
        assert -(-film_bytes // (cut.piece_bytes // 2)) > 16_384


def identity(path):
    with path.open("rb") as film:
        found = FilmIdentity.of(film)
        assert film.tell() == 0
    return found


def test_a_film_is_known_again_by_what_it_is_and_not_by_where(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(os.urandom(3 * 1024 * 1024))
    first = identity(path)

    assert identity(path.rename(tmp_path / "b")) == first


@pytest.mark.parametrize("offset", [0, 1024 * 1024 - 1, 2 * 1024 * 1024, 3 * 1024 * 1024 - 1])
def test_another_head_or_tail_is_another_film_even_of_the_same_size_and_time(tmp_path, offset):
    path = tmp_path / "a"
    path.write_bytes(bytes(3 * 1024 * 1024))
    first, facts = identity(path), path.stat()
    with path.open("r+b") as film:
        film.seek(offset)
        film.write(b"x")
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))

    assert identity(path) != first


def test_a_film_that_was_touched_is_another(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"short")
    first = identity(path)
    os.utime(path, ns=(1, 1))

    assert identity(path) != first


plans = st.builds(
    IngestPlan,
    st.text(),
    st.builds(FilmIdentity, st.integers(0), st.integers(), st.text(), st.text()),
    st.builds(Cut, st.integers(1), st.integers(1)),
    st.lists(st.lists(st.integers(0, 99), max_size=3).map(tuple), max_size=5).map(tuple),
)


@given(plans)
def test_a_plan_comes_back_as_it_was_kept(plan):
    assert IngestPlan.from_json(plan.to_json()) == plan


@pytest.mark.parametrize(
    "text", ["", "x", "[]", "3", "{}", '{"path": "", "film": {"size": 1}}', "[" * 100_000]
)
def test_what_is_no_plan_is_none(text):
    assert IngestPlan.from_json(text) is None
