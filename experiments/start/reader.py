"""A player as the network sees it: reads a film's front, index and first picture, timed.

Run as a program: reads one JSON object per line from standard input, answers each with another. The
same program reads from the VoD server and from Toast's gateway. Two ways are known among players:

- `open`: ask for everything from a byte on, read as long as what is wanted is near, else hang up
  and ask anew on another connection (FFmpeg, browsers);
- `bounded`: ask for exact ranges on one connection, the first for 64 KiB at a guess.
"""

import http.client
import json
import sys
import time
from dataclasses import asdict, dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from experiments.errors import LabError

__all__ = ["STRATEGIES", "Reading", "read_film"]

STRATEGIES: Final = ("open", "bounded")

_FIRST_BYTES: Final = 64 * 1024
_NEAR_BYTES: Final = 256 * 1024
_TIMEOUT_SECONDS: Final = 30.0
_PART_BYTES: Final = 256 * 1024


@dataclass(slots=True)
class Reading:
    """When what had come. Times of `time.monotonic`, which all processes of a machine share."""

    began: float
    connected: float = 0.0
    first_byte: float = 0.0
    steps: dict[str, float] = field(default_factory=dict)
    bytes: int = 0
    connections: int = 0


class _Film:
    """One film over HTTP. Of the present answer, bytes [first, at) have been read."""

    def __init__(self, url: str, reading: Reading) -> None:
        parts = urlsplit(url)
        self._address = parts.hostname or "", parts.port or 80
        self._path = parts.path
        self._reading = reading
        self._connection: http.client.HTTPConnection | None = None
        self._answer: http.client.HTTPResponse | None = None
        self._first = self._at = 0

    def read_open(self, start: int, end: int) -> None:
        """Read bytes [start, end), in the answer under way if they are near in it."""
        if self._answer is None or not self._first <= start <= self._at + _NEAR_BYTES:
            self.hang_up()
            self._ask(start, None)
        self._take(end)

    def read_bounded(self, start: int, end: int) -> None:
        """Read bytes [start, end) with exact requests, the very first of them a guess."""
        if self._answer is None:
            self._ask(0, _FIRST_BYTES)
            self._take(_FIRST_BYTES)
        if self._first <= start < self._at:
            start = min(self._at, end)
        if start < end:
            self._ask(start, end)
            self._take(end)

    def hang_up(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
        self._connection = self._answer = None

    def _ask(self, start: int, end: int | None) -> None:
        if self._connection is None:
            self._connection = http.client.HTTPConnection(*self._address, timeout=_TIMEOUT_SECONDS)
            self._connection.connect()
            self._reading.connections += 1
            self._reading.connected = self._reading.connected or time.monotonic()
        if self._answer is not None:
            self._answer.read()  # its end: what is asked for next comes on the same connection
        last = "" if end is None else end - 1
        self._connection.request("GET", self._path, headers={"Range": f"bytes={start}-{last}"})
        self._answer = self._connection.getresponse()
        if self._answer.status != 206:
            raise LabError(f"{self._path} answers {self._answer.status} to a range")
        self._reading.first_byte = self._reading.first_byte or time.monotonic()
        self._first = self._at = start

    def _take(self, end: int) -> None:
        assert self._answer is not None
        while self._at < end:
            part = self._answer.read1(min(end - self._at, _PART_BYTES))
            if not part:
                raise LabError(f"{self._path} ends at byte {self._at}, before {end}")
            self._at += len(part)
            self._reading.bytes += len(part)


def read_film(url: str, steps: list[tuple[str, int, int]], strategy: str) -> Reading:
    """Read a film's steps, one after the other, on cold connections.

    Args:
        url: where it is.
        steps: name, first byte and byte after the last of each; see `Step`.
        strategy: one of `STRATEGIES`.

    Raises:
        LabError: the film cannot be had there.
    """
    reading = Reading(time.monotonic())
    film = _Film(url, reading)
    read = film.read_open if strategy == "open" else film.read_bounded
    try:
        for name, start, end in steps:
            read(start, end)
            reading.steps[name] = time.monotonic()
    except (OSError, http.client.HTTPException) as error:
        raise LabError(f"{url} cannot be read: {error or type(error).__name__}") from error
    finally:
        film.hang_up()
    return reading


def main() -> None:
    """Answer requests until standard input ends."""
    for line in sys.stdin:
        request = json.loads(line)
        answer: dict[str, Any]
        try:
            reading = read_film(request["url"], request["steps"], request["strategy"])
            answer = asdict(reading)
        except LabError as error:
            answer = {"error": str(error)}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
