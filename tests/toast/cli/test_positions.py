"""Where films were left."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toast.cli.positions import Positions

ONE, OTHER = "a" * 40, "b" * 40


def test_a_film_is_found_where_it_was_left(tmp_path):
    Positions(tmp_path).put(ONE, 61.5, 600.0)
    Positions(tmp_path).put(OTHER, 7.0, None)
    assert Positions(tmp_path).get(ONE) == 61.5
    assert Positions(tmp_path).get(OTHER) == 7.0
    assert [path.name for path in tmp_path.iterdir()] == [".toast-positions.json"]


@pytest.mark.parametrize(("seconds", "duration"), [(4.9, 600.0), (590.0, 600.0), (0.0, None)])
def test_its_beginning_and_its_end_are_forgotten(tmp_path, seconds, duration):
    positions = Positions(tmp_path)
    positions.put(ONE, 61.5, 600.0)
    positions.put(ONE, seconds, duration)
    assert positions.get(ONE) == 0.0


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"\xff", b"[" * 200_000, b'{"x": "y"}', b'{"%s": -1}' % ONE.encode()],
)
def test_a_file_that_is_none_costs_the_positions_only(tmp_path, content):
    (tmp_path / ".toast-positions.json").write_bytes(content)
    positions = Positions(tmp_path)
    assert positions.get(ONE) == 0.0
    positions.put(ONE, 61.5, 600.0)
    assert positions.get(ONE) == 61.5


@settings(deadline=None, max_examples=30)
@given(st.dictionaries(st.text(max_size=5), st.floats() | st.text(max_size=5), max_size=5))
def test_whatever_numbers_it_holds(tmp_path_factory, numbers):
    folder = tmp_path_factory.mktemp("positions")
    (folder / ".toast-positions.json").write_text(json.dumps(numbers))
    assert all(0 <= Positions(folder).get(name) < float("inf") for name in numbers)


def test_a_folder_that_cannot_be_written_is_no_matter(tmp_path):
    Positions(tmp_path / "nowhere").put(ONE, 61.5, 600.0)
    (tmp_path / ".toast-positions.json").mkdir()
    Positions(tmp_path).put(ONE, 61.5, 600.0)
    assert [path.name for path in tmp_path.iterdir()] == [".toast-positions.json"]


def test_the_last_thousand_are_kept(tmp_path):
    positions = Positions(tmp_path)
    content = {f"{number:040x}": 100.0 for number in range(1000)}
    (tmp_path / ".toast-positions.json").write_text(json.dumps(content))
    positions.put(ONE, 61.5, 600.0)
    assert positions.get(ONE) == 61.5
    assert positions.get(f"{0:040x}") == 0.0
    assert positions.get(f"{1:040x}") == 100.0
