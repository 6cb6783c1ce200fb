"""When the daemon may send and receive how much: `22:00-07:00 full, otherwise upload 1Mbps`.

    schedule  = rule *("," rule)
    rule      = [days] HH:MM "-" HH:MM terms / "otherwise" terms
    days      = day ["-" day] *("+" day ["-" day])          ; mon tue wed thu fri sat sun
    terms     = term *("/" term)
    term      = "full" / "upload" rate / "download" rate / "no uploads" / "no downloads"

The first rule that holds decides; where none does, there is no limit. A window whose end is not
after its start runs past midnight, and belongs to the day on which it began.

Windows are wall-clock time. In the night in which clocks go forward, what lies in the missing hour
does not take place; in the one in which they go back, what lies in the doubled hour does so twice.
Pure: the time is an argument, and so is the time zone.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

from toast.common.errors import UsageError
from toast.common.units import parse_rate
from toast.daemon.errors import RequestError

__all__ = ["FULL", "Limits", "Schedule", "day_of"]

_DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_DAY: Final = 24 * 60
_RULE: Final = re.compile(
    r"(?:(?P<days>[a-z+\-]+)\s+)?(?P<start>\d{1,2}:\d{2})\s*-\s*(?P<end>\d{1,2}:\d{2})\s+(?P<terms>\S.*)"
    r"|(?P<otherwise>otherwise)\s+(?P<rest>\S.*)",
    re.ASCII | re.IGNORECASE,
)
_SLASH: Final = re.compile(r"\s+/\s*|/(?=no |full|upload|download)", re.IGNORECASE)
"""Between terms; the slash of `kB/s` stands inside one."""
_MOST_CHARACTERS: Final = 1000
_LOOK_AHEAD: Final = timedelta(days=8)
_EXAMPLE: Final = "write for example '22:00-07:00 full, otherwise upload 1Mbps / no downloads'"


@dataclass(frozen=True, slots=True)
class Limits:
    """What is allowed at one moment. Rates in bytes per second, None for no limit."""

    upload_rate: float | None = None
    download_rate: float | None = None
    uploads: bool = True
    downloads: bool = True


FULL: Final = Limits()


@dataclass(frozen=True, slots=True)
class _Window:
    """Minutes [start, end) of the days (0 is Monday) on which it begins; end > 1440 runs over."""

    days: frozenset[int]
    start: int
    end: int
    limits: Limits

    def holds(self, weekday: int, minute: float) -> bool:
        today = weekday in self.days and self.start <= minute < self.end
        yesterday = (weekday - 1) % 7 in self.days
        return today or (yesterday and minute + _DAY < self.end)


@dataclass(frozen=True, slots=True)
class Schedule:
    """A schedule; made by `parse`. Equal ones allow the same."""

    windows: tuple[_Window, ...]

    @classmethod
    def parse(cls, text: str) -> "Schedule":
        """Read a schedule; an empty one never limits.

        Raises:
            RequestError: the text is none.
        """
        if len(text) > _MOST_CHARACTERS:
            raise RequestError(f"this schedule is longer than {_MOST_CHARACTERS} characters")
        if not text.strip():
            return cls(())
        return cls(tuple(_window(rule.strip()) for rule in text.split(",")))

    def at(self, now: float, zone: tzinfo) -> Limits:
        """What is allowed at a Unix time."""
        local = datetime.fromtimestamp(now, zone)
        minute = local.hour * 60 + local.minute + (local.second + local.microsecond / 1e6) / 60
        for window in self.windows:
            if window.holds(local.weekday(), minute):
                return window.limits
        return FULL

    def next_change(self, now: float, zone: tzinfo) -> float | None:
        """The Unix time from which something else is allowed; None if that is not within a week."""
        current = self.at(now, zone)
        moments = sorted({moment for moment in self._moments(now, zone) if moment > now})
        return next((moment for moment in moments if self.at(moment, zone) != current), None)

    def _moments(self, now: float, zone: tzinfo) -> Iterator[float]:
        """Every time after `now` at which another window may begin to hold."""
        today = datetime.fromtimestamp(now, zone).replace(
            hour=0, minute=0, second=0, microsecond=0, tzinfo=None
        )
        edges = {edge % _DAY for window in self.windows for edge in (window.start, window.end)}
        for day in range(-1, _LOOK_AHEAD.days + 1):
            for edge in edges | {0}:
                wall = today + timedelta(days=day, minutes=edge)
                for fold in (0, 1):
                    yield wall.replace(tzinfo=zone, fold=fold).timestamp()
        yield from _clock_changes(now, now + _LOOK_AHEAD.total_seconds(), zone)


def day_of(now: float, zone: tzinfo) -> str:
    """The date at a Unix time, as `2026-03-29`."""
    return datetime.fromtimestamp(now, zone).date().isoformat()


def _clock_changes(start: float, end: float, zone: tzinfo) -> Iterator[float]:
    """The whole seconds in [start, end] at which the zone's offset from UTC becomes another."""
    at, offset = int(start), _offset(int(start), zone)
    while at < end:
        after = at + 3600
        if _offset(after, zone) != offset:
            low, high = at, after
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if _offset(middle, zone) == offset else (low, middle)
            yield float(high)
            offset = _offset(after, zone)
        at = after


def _offset(now: float, zone: tzinfo) -> timedelta:
    return datetime.fromtimestamp(now, UTC).astimezone(zone).utcoffset() or timedelta()


def _window(rule: str) -> _Window:
    match = _RULE.fullmatch(rule)
    if match is None:
        raise RequestError(f"'{rule[:60]}' is no rule of a schedule: {_EXAMPLE}")
    if match["otherwise"]:
        return _Window(frozenset(range(7)), 0, _DAY, _limits(match["rest"]))
    days = frozenset(range(7)) if match["days"] is None else _days(match["days"].lower())
    start, end = _minute(match["start"]), _minute(match["end"])
    return _Window(days, start, end if end > start else end + _DAY, _limits(match["terms"]))


def _minute(text: str) -> int:
    hour, minute = (int(part) for part in text.split(":"))
    if hour > 24 or minute > 59 or hour * 60 + minute > _DAY:
        raise RequestError(f"'{text}' is no time of day: {_EXAMPLE}")
    return hour * 60 + minute


def _days(text: str) -> frozenset[int]:
    days: set[int] = set()
    for part in text.split("+"):
        first, dash, last = part.partition("-")
        if first not in _DAYS or (last if dash else first) not in _DAYS:
            raise RequestError(f"'{text[:60]}' names no days: write for example mon-fri or sat+sun")
        count = (_DAYS.index(last or first) - _DAYS.index(first)) % 7 + 1
        days |= {(_DAYS.index(first) + step) % 7 for step in range(count)}
    return frozenset(days)


def _limits(text: str) -> Limits:
    upload: float | None = None
    download: float | None = None
    uploads = downloads = True
    for term in (part.strip() for part in _SLASH.split(text)):
        what, _, rate = term.partition(" ")
        match what.lower(), rate.strip():
            case "full", "":
                pass
            case "no", ("uploads" | "downloads") as which:
                uploads = uploads and which != "uploads"
                downloads = downloads and which != "downloads"
            case "upload", number:
                upload = _rate(number)
            case "download", number:
                download = _rate(number)
            case _:
                raise RequestError(f"'{term[:60]}' is nothing that a schedule can say: {_EXAMPLE}")
    return Limits(upload, download, uploads, downloads)


def _rate(text: str) -> float:
    try:
        rate = parse_rate(text)
    except UsageError as error:
        raise RequestError(str(error)) from error
    if rate < 1:
        raise RequestError("a rate of nothing is written 'no uploads' or 'no downloads'")
    return rate
