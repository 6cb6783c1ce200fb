"""What comes as JSON from whoever holds the token: looked at before it is believed. Pure."""

from collections.abc import Mapping
from typing import Any

from toast.daemon.errors import RequestError
from toast.viewer import Behaviour

__all__ = ["check_behaviour", "check_seconds", "read_changes"]

_MOST_PRIORITY = 1000


def read_changes(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Changes of a film, as fields of its record.

    Args:
        changes: `paused`, `behaviour`, `priority`, `position_seconds`, or some of them.

    Raises:
        RequestError: an unknown name, or a value that makes no sense.
    """
    fields: dict[str, Any] = {}
    for name, value in changes.items():
        match name:
            case "paused":
                if not isinstance(value, bool):
                    raise RequestError("paused must be true or false")
                fields |= {"paused": value} if value else {"paused": value, "error": None}
            case "behaviour":
                check_behaviour(value)
                fields["behaviour"] = value
            case "priority":
                if not _is_int(value) or abs(value) > _MOST_PRIORITY:
                    raise RequestError(f"priority must be -{_MOST_PRIORITY} to {_MOST_PRIORITY}")
                fields["priority"] = value
            case "position_seconds":
                fields["position_seconds"] = check_seconds(name, value)
            case _:
                raise RequestError(f"a film has no '{name[:40]}' that can be changed")
    return fields


def check_seconds(name: str, value: Any) -> float:
    """A time in a film, from JSON.

    Raises:
        RequestError: it is none.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e7:
        raise RequestError(f"{name} must be a number of seconds")
    return float(value)


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def check_behaviour(value: Any) -> None:
    """See that it is one of `Behaviour`.

    Raises:
        RequestError: it is none.
    """
    if not isinstance(value, str) or value not in set(Behaviour):
        raise RequestError(f"behaviour must be one of {', '.join(Behaviour)}")
