"""A line for each announce and each refusal, made and written apart from the answers. Pure.

To write a line out takes ten times as long as to hand it on, so another process does that
(`tracker.log_writer`).

A line is: seconds since the epoch, who, over what, what it wanted, which film, and what it has:

    1763797000.125 198.51.100.7:6881 udp started 0a1b...(40 digits) incomplete
    1763797000.126 198.51.100.9 http refused too many requests from this address

While an answer is made, only a few values are put aside. So that many requests cannot fill the
memory, no more are kept than `most` between two writes.
"""

import ipaddress
from collections.abc import Iterable
from typing import Final, TypeAlias

from tracker.messages import Event

__all__ = ["EVENT_WORDS", "AccessLog", "Line", "format_lines"]

Line: TypeAlias = tuple[float, int, int, str, str, bytes | None, bool]
"""When, family and key (`tracker.swarm`), over what, which event (`EVENT_WORDS`) or why not, film
(None: it was refused), whole or not. Of nothing but what `marshal` can write."""

EVENT_WORDS: Final = {event: event.value.decode() or "announce" for event in Event}
"""What stands in a line."""

_MOST_NAMES: Final = 50_000


class AccessLog:
    """What is to be written next.

    Args:
        most: lines kept.

    Attributes:
        lines: in the order in which they happened.
        dropped: for want of room, since the last `take`.
    """

    def __init__(self, most: int) -> None:
        self.lines: list[Line] = []
        self.dropped = 0
        self._most = most

    def add(self, line: Line) -> None:
        """A request was answered or refused."""
        if len(self.lines) < self._most:
            self.lines.append(line)
        else:
            self.dropped += 1

    def take(self) -> tuple[list[Line], int]:
        """All lines since the last time, and how many there was no room for."""
        taken = self.lines, self.dropped
        self.lines, self.dropped = [], 0
        return taken


def format_lines(lines: Iterable[Line], since_epoch: float, names: dict[int, str]) -> str:
    """The text of lines.

    Args:
        lines: what happened.
        since_epoch: what must be added to their times.
        names: addresses that were written out before, filled here and bounded.
    """
    if len(names) > _MOST_NAMES:
        names.clear()
    parts: list[str] = []
    for now, family, key, via, what, film, complete in lines:
        number = key >> 16
        name = names.get(number)
        if name is None:
            name = names[number] = _name(family, number)
        when = f"{now + since_epoch:.3f}"
        if film is None:
            parts.append(f"{when} {name} {via} refused {_one_line(what)}\n")
        else:
            has = "complete" if complete else "incomplete"
            parts.append(f"{when} {name}:{key & 0xFFFF} {via} {what} {film.hex()} {has}\n")
    return "".join(parts)


def _name(family: int, number: int) -> str:
    if family % 2:
        return f"[{ipaddress.IPv6Address(number)}]"
    return str(ipaddress.IPv4Address(number))


def _one_line(text: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in text)
