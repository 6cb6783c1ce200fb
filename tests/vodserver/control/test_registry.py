"""Arguments that come from anywhere."""

import pytest

from vodserver.control.registry import argument
from vodserver.errors import ControlUsageError


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [("a", str, "a"), (3, int, 3), (3, float, 3.0), (0.5, float, 0.5), (True, bool, True)],
)
def test_an_argument_of_its_kind(value, kind, expected):
    found = argument({"it": value}, "it", kind)

    assert found == expected
    assert type(found) is kind


@pytest.mark.parametrize(
    ("value", "kind"),
    [(True, int), (True, float), (1, bool), ("3", int), (3.0, int), ([], str), ({}, str)],
)
def test_an_argument_of_another_kind(value, kind):
    with pytest.raises(ControlUsageError, match="'it' is not of kind"):
        argument({"it": value}, "it", kind)


def test_a_missing_argument():
    with pytest.raises(ControlUsageError, match="'it' is missing"):
        argument({}, "it", int)


@pytest.mark.parametrize("arguments", [{}, {"it": None}])
def test_a_default(arguments):
    assert argument(arguments, "it", int, 7) == 7
    assert argument(arguments, "it", str, None) is None
