"""Reading and showing rates, sizes and durations.

Inside the programs everything is bytes, bytes per second and seconds; bits appear only at the
edges.
"""

import re

from toast.common.errors import UsageError

__all__ = [
    "format_bytes",
    "format_rate",
    "format_seconds",
    "parse_bytes",
    "parse_fraction",
    "parse_rate",
    "parse_seconds",
]

_NUMBER = r"(\d+(?:\.\d+)?)"
_SIZE = re.compile(rf"^{_NUMBER}\s*([kmgt]?)(i?)(b?)$", re.IGNORECASE | re.ASCII)
_BITS = re.compile(rf"^{_NUMBER}\s*([kmg]?)(?:bps|b/s|bit/s|bits/s)$", re.IGNORECASE | re.ASCII)
_RATE = re.compile(rf"^{_NUMBER}\s*([kmgt]?)(i?)B/s$", re.IGNORECASE | re.ASCII)
_CLOCK = re.compile(r"^(?:(\d+):)?(\d{1,2}):(\d{1,2}(?:\.\d+)?)$", re.ASCII)
_SECONDS = re.compile(rf"^{_NUMBER}\s*(ms|s|m|min|h)?$", re.IGNORECASE | re.ASCII)
_POWER = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_SECONDS_PER = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


def parse_bytes(text: str) -> int:
    """Read a size such as `858MB`, `256KiB` or `4096` as bytes.

    Raises:
        UsageError: the text is no size.
    """
    match = _SIZE.match(text.strip())
    if match is None:
        raise UsageError(f"'{text}' is not a size: write for example 256KiB, 858MB or 4096")
    number, prefix, binary, _ = match.groups()
    return round(float(number) * _scale(prefix, 1024 if binary else 1000))


def parse_fraction(text: str) -> float:
    """Read a share such as `25%` or `0.25` as a fraction, more than 0 and at most 1.

    Raises:
        UsageError: the text is no such share.
    """
    stripped = text.strip()
    match = re.fullmatch(_NUMBER + r"\s*(%?)", stripped, re.ASCII)
    fraction = 0.0 if match is None else float(match[1]) / (100 if match[2] else 1)
    if not 0 < fraction <= 1:
        raise UsageError(f"'{text}' is not a share: write for example 25%, and 100% at most")
    return fraction


def _scale(prefix: str, base: int) -> float:
    return float(base) ** _POWER[prefix.lower()]


def parse_rate(text: str) -> float:
    """Read a rate such as `2Mbps` (bits) or `250kB/s` (bytes) as bytes per second.

    A rate without a unit is refused: half the world would read it as bits, the other as bytes.

    Raises:
        UsageError: the text is no rate.
    """
    stripped = text.strip()
    # "MB/s" is bytes and "Mb/s" is bits: the case of that one letter decides, so look at it first.
    if stripped.endswith("B/s") and (match := _RATE.match(stripped)):
        number, prefix, binary = match.groups()
        return float(number) * _scale(prefix, 1024 if binary else 1000)
    if match := _BITS.match(stripped):
        number, prefix = match.groups()
        return float(number) * _scale(prefix, 1000) / 8
    raise UsageError(f"'{text}' is not a rate: write for example 2Mbps or 250kB/s")


def parse_seconds(text: str) -> float:
    """Read a duration such as `7.5`, `90s`, `15min`, `1:02:03` as seconds.

    Raises:
        UsageError: the text is no duration.
    """
    stripped = text.strip()
    if match := _CLOCK.match(stripped):
        hours, minutes, seconds = match.groups()
        return int(hours or 0) * 3600 + int(minutes) * 60 + float(seconds)
    if match := _SECONDS.match(stripped):
        number, unit = match.groups()
        return float(number) * _SECONDS_PER[(unit or "").lower()]
    raise UsageError(f"'{text}' is not a duration: write for example 7.5, 90s, 15min or 1:02:03")


def format_bytes(count: float) -> str:
    """Show bytes with three significant figures: 858 MB."""
    value = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if abs(value) < 999.5:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.3g} {unit}"
        value /= 1000
    return f"{value:.3g} TB"


def format_rate(bytes_per_second: float) -> str:
    """Show a rate in bits per second, as people name rates: 2 Mb/s."""
    value = bytes_per_second * 8
    for unit in ("b/s", "kb/s", "Mb/s"):
        if abs(value) < 999.5:
            return f"{value:.3g} {unit}"
        value /= 1000
    return f"{value:.3g} Gb/s"


def format_seconds(seconds: float) -> str:
    """Show a position or a duration as a clock: 1:02:03."""
    whole = max(0, int(seconds))
    hours, minutes = divmod(whole // 60, 60)
    clock = f"{minutes:d}:{whole % 60:02d}"
    return f"{hours:d}:{minutes:02d}:{whole % 60:02d}" if hours else clock
