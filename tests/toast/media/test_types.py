"""Media types of films."""

import pytest

from toast.media.types import FILM_SUFFIXES, film_type


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.mp4", "video/mp4"),
        ("a.MKV", "video/x-matroska"),
        ("a.b.webm", "video/webm"),
        ("a.ts", "video/mp2t"),
        ("a", "video/mp4"),
        ("a.txt", "video/mp4"),
    ],
)
def test_by_the_ending_of_the_name(name, kind):
    """Whatever the machine's own tables say: to those .ts is often a translation."""
    assert film_type(name) == kind


def test_endings_are_as_they_are_looked_for():
    assert all(suffix.startswith(".") and suffix == suffix.lower() for suffix in FILM_SUFFIXES)
