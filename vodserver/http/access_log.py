"""The access log: who asked for what and what was sent, written by a thread of its own.

The event loop only puts a line's facts into a queue, and never waits: if the disk that the log is
on is slow or full, entries are dropped and counted, and films go on. What strangers send is
escaped, so that nothing they ask for can look like a line of its own.
"""

import contextlib
import json
import logging
import queue
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, TextIO

from vodserver.errors import ServeUsageError

__all__ = ["FORMATS", "AccessEntry", "AccessLog", "combined_line", "json_line"]

_MAX_CHARS: Final = 512  # of any one thing that a client sent
_MOST_WAITING: Final = 10_000
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class AccessEntry:
    """One request and its answer.

    Attributes:
        at: when it was answered, unix seconds.
        peer: the client's IP address.
        method: as sent.
        target: path and query, as sent.
        version: such as "HTTP/1.1".
        status: of the answer.
        sent_bytes: of its body.
        seconds: that it took.
        referer: as sent, or empty.
        agent: as sent, or empty.
    """

    at: float
    peer: str
    method: str
    target: str
    version: str
    status: int
    sent_bytes: int
    seconds: float
    referer: str = ""
    agent: str = ""


def combined_line(entry: AccessEntry) -> str:
    """The combined log format, as web servers write it and log readers read it."""
    moment = time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime(entry.at))
    request = f"{_quoted(entry.method)} {_quoted(entry.target)} {_quoted(entry.version)}"
    return (
        f"{_quoted(entry.peer) or '-'} - - [{moment}] "
        f'"{request}" {entry.status} {entry.sent_bytes} '
        f'"{_quoted(entry.referer) or "-"}" "{_quoted(entry.agent) or "-"}"'
    )


def json_line(entry: AccessEntry) -> str:
    """One JSON object."""
    fields = {
        name: value[:_MAX_CHARS] if isinstance(value, str) else value
        for name, value in asdict(entry).items()
    }
    fields["at"] = round(entry.at, 3)
    fields["seconds"] = round(entry.seconds, 6)
    return json.dumps(fields)  # ASCII only: control characters of any alphabet are escaped


FORMATS: Final[dict[str, Callable[[AccessEntry], str]]] = {
    "combined": combined_line,
    "json": json_line,
}
"""How an entry may be written."""


def _quoted(text: str) -> str:
    """Printable ASCII as it is, and all else, quotes and backslashes too, as \\xHH or \\uHHHH."""
    return "".join(
        c if " " <= c <= "~" and c not in '"\\' else _escape(ord(c)) for c in text[:_MAX_CHARS]
    )


def _escape(code: int) -> str:
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


class AccessLog:
    """Writes entries to a file, or to standard output.

    Args:
        path: where to; "-" is standard output. Made if it is not there, appended to if it is.
        style: "combined" or "json".
        most_waiting: entries that may wait for the thread; further ones are dropped.

    Raises:
        ServeUsageError: it cannot be written to, or there is no such format.
    """

    def __init__(
        self, path: str, style: str = "combined", *, most_waiting: int = _MOST_WAITING
    ) -> None:
        if style not in FORMATS:
            raise ServeUsageError(
                f"there is no access log format '{style}': choose one of {', '.join(FORMATS)}"
            )
        self._line = FORMATS[style]
        self._path = path
        self._most = most_waiting
        self._entries: queue.SimpleQueue[AccessEntry | None] = queue.SimpleQueue()
        self._dropped = 0
        self._reopen = threading.Event()
        self._failing = False
        try:
            self._file = self._open()
        except OSError as error:
            raise ServeUsageError(
                f"cannot write the access log {path}: {error.strerror}"
            ) from error
        self._thread = threading.Thread(target=self._work, name="access log", daemon=True)
        self._thread.start()

    @property
    def dropped(self) -> int:
        """Entries that were not written: too many waited, or the file could not be written."""
        return self._dropped

    def note(self, entry: AccessEntry) -> None:
        """Have an entry written; never waits."""
        if self._entries.qsize() >= self._most:
            self._dropped += 1
        else:
            self._entries.put(entry)

    def reopen(self) -> None:
        """Go on in a new file of the same name: the old one was renamed (SIGHUP)."""
        self._reopen.set()

    def close(self, *, seconds: float = 2.0) -> None:
        """Write what waits, as far as that goes in so many seconds, and end."""
        self._entries.put(None)
        self._thread.join(seconds)

    def _open(self) -> TextIO:
        if self._path == "-":
            return sys.stdout
        return Path(self._path).open("a", encoding="ascii", errors="backslashreplace")

    def _work(self) -> None:
        ended = False
        while not ended:
            batch = [self._entries.get()]
            # As many as wait go out together: one flush for all of them.
            with contextlib.suppress(queue.Empty):
                while len(batch) < 1000:
                    batch.append(self._entries.get_nowait())
            entries = [entry for entry in batch if entry is not None]
            ended = len(entries) < len(batch)
            self._write(entries)
        if self._path != "-":
            with contextlib.suppress(OSError):
                self._file.close()

    def _write(self, entries: list[AccessEntry]) -> None:
        try:
            if self._reopen.is_set() and self._path != "-":
                self._reopen.clear()
                fresh = self._open()
                with contextlib.suppress(OSError):
                    self._file.close()
                self._file = fresh
            self._file.write("".join(f"{self._line(entry)}\n" for entry in entries))
            self._file.flush()
            self._failing = False
        except (OSError, ValueError) as error:
            self._dropped += len(entries)
            if not self._failing:  # once: this is no place for a line per request
                self._failing = True
                _log.warning("the access log %s cannot be written: %s", self._path, error)
