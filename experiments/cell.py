"""One thing that must be shown: a command, and what must be true of its figures. Pure."""

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from experiments.errors import LabError

__all__ = ["Cell", "Check"]

_HOLDS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "=": operator.eq,
    ">=": operator.ge,
    "<=": operator.le,
}


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that must be true of a cell's figures.

    Attributes:
        field: name of the figure.
        how: "=", ">=" or "<=".
        limit: what it is compared with.
    """

    field: str
    how: str
    limit: float | bool

    def __post_init__(self) -> None:
        if self.how not in _HOLDS:
            raise LabError(f"figures cannot be compared by '{self.how}'")

    def failure(self, figures: Mapping[str, Any]) -> str | None:
        """What is wrong, in words, or None. A figure that is not there, or null, is wrong."""
        value = figures.get(self.field)
        if value is None:
            return f"{self.field} is not known"
        # True equals 1 in Python, and a count of one is no yes.
        same_kind = isinstance(value, bool) == isinstance(self.limit, bool)
        if not isinstance(value, int | float) or not same_kind:
            return f"{self.field} is {value!r}"
        if not _HOLDS[self.how](value, self.limit):
            return f"{self.field} is {_plain(value)}, not {self}"
        return None

    def __str__(self) -> str:
        limit = _plain(self.limit)
        return limit if self.how == "=" else f"{self.how} {limit}"


@dataclass(frozen=True, slots=True)
class Cell:
    """One thing to be shown.

    Attributes:
        name: a word for it; also its file's name.
        shows: what, in a few words.
        command: a program of ours, or pytest, and its arguments.
        checks: what must be true of its figures, besides an exit code of 0.
        limit_seconds: longest time that it may take.
    """

    name: str
    shows: str
    command: tuple[str, ...]
    checks: tuple[Check, ...]
    limit_seconds: float = 600.0


def _plain(value: float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value:g}"
