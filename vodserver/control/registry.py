"""The operations that a store can be asked for by name, and the checks of their arguments."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from vodserver.errors import ControlUsageError
from vodserver.store import Store

__all__ = ["OPERATIONS", "Function", "Operation", "Progress", "argument", "find", "operation"]

T = TypeVar("T", str, int, float, bool)

Progress = Callable[[dict[str, Any]], None]
"""Told how far an operation is: what can be written as JSON."""

Function = Callable[[Store, dict[str, Any], Progress], Awaitable[dict[str, Any]]]
"""Does it: store, arguments, progress -> result. Cancelling it leaves the store consistent."""


@dataclass(frozen=True, slots=True)
class Operation:
    """Something that a store can be asked for.

    Attributes:
        name: what it is asked for by, such as "disk add".
        function: does it.
        mutates: it changes where things lie; only one such runs at a time.
    """

    name: str
    function: Function
    mutates: bool


OPERATIONS: Final[dict[str, Operation]] = {}
"""Every operation by its name. A module that defines some must be imported by who serves them."""


def operation(name: str, *, mutates: bool = True) -> Callable[[Function], Function]:
    """Make an async function an operation: `@operation("disk add")`."""

    def register(function: Function) -> Function:
        OPERATIONS[name] = Operation(name, function, mutates)
        return function

    return register


def find(name: str) -> Operation:
    """The operation of this name.

    Raises:
        ControlUsageError: there is none.
    """
    try:
        return OPERATIONS[name]
    except KeyError:
        raise ControlUsageError(
            f"this server knows no operation {name[:40]!r}: "
            "use the vodserver of the same version as the server that runs"
        ) from None


_NEEDED: Final[Any] = object()


def argument(
    arguments: Mapping[str, Any], name: str, kind: type[T], default: T | None = _NEEDED
) -> T:
    """One argument of an operation, of the kind that it must have.

    Args:
        arguments: what came over the socket or from the command line.
        name: which.
        kind: str, int, float (an int will do) or bool.
        default: where it is not there or null; must be given if this is not.

    Raises:
        ControlUsageError: it is missing, or of another kind.
    """
    value = arguments.get(name)
    if value is None:
        if default is _NEEDED:
            raise ControlUsageError(f"the argument '{name}' is missing")
        return default  # type: ignore[return-value]  # None where the caller allows it
    if kind is float and type(value) is int:
        value = float(value)
    if type(value) is not kind:  # a bool is an int, and no number that anyone means
        raise ControlUsageError(f"the argument '{name}' is not of kind {kind.__name__}")
    return value
