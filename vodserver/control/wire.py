"""The lines on the control socket: one JSON object each.

Request    {"operation": NAME, "arguments": {...}}
Answers    any number of {"progress": {...}}, then one of
           {"result": {...}} and {"error": {"message": TEXT, "exit_code": N}}

One request a connection. A client that says anything more, or hangs up, cancels its operation.
"""

import json
from typing import Any, Final, NoReturn

from toast.common.errors import ToastError
from vodserver.errors import ControlError, ControlUsageError

__all__ = [
    "MAX_ANSWER_BYTES",
    "MAX_REQUEST_BYTES",
    "decode_answer",
    "decode_request",
    "encode",
    "encode_error",
    "encode_request",
]

MAX_REQUEST_BYTES: Final = 64 * 1024
"""Of one request, with its end of line: paths and names, never contents."""

MAX_ANSWER_BYTES: Final = 16 * 1024 * 1024
"""Of one answer, with its end of line: reports of large stores."""


def encode(kind: str, value: Any) -> bytes:
    """One line of a kind: progress, result or error.

    Raises:
        ValueError: it cannot be written as JSON.
        TypeError: likewise.
    """
    return json.dumps({kind: value}, allow_nan=False, separators=(",", ":")).encode() + b"\n"


def encode_error(error: ToastError) -> bytes:
    """The line that ends an operation which failed."""
    message = " ".join(str(error).split())
    return encode("error", {"message": message, "exit_code": error.exit_code})


def encode_request(name: str, arguments: dict[str, Any]) -> bytes:
    """A request.

    Raises:
        ControlUsageError: it is too long.
    """
    line = (
        json.dumps({"operation": name, "arguments": arguments}, separators=(",", ":")).encode()
        + b"\n"
    )
    if len(line) > MAX_REQUEST_BYTES:
        raise ControlUsageError(f"the request is longer than {MAX_REQUEST_BYTES} bytes")
    return line


def decode_request(line: bytes) -> tuple[str, dict[str, Any]]:
    """The operation and its arguments.

    Raises:
        ControlUsageError: it is no request.
    """
    value = _object(line)
    if value is not None:
        name, arguments = value.get("operation"), value.get("arguments", {})
        if isinstance(name, str) and isinstance(arguments, dict):
            return name, arguments
    raise ControlUsageError('this is no request: write {"operation": NAME, "arguments": {...}}')


def decode_answer(line: bytes) -> tuple[str, dict[str, Any]]:
    """The kind of an answer and what it says.

    Raises:
        ControlError: it is none.
    """
    value = _object(line)
    if value is not None and len(value) == 1:
        ((kind, content),) = value.items()
        if kind in {"progress", "result", "error"} and isinstance(content, dict):
            return kind, content
    raise ControlError("the server gave an answer that is none: is it of the same version?")


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(line, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)  # NaN and the infinities are no JSON
