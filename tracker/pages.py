"""A tracker's statistics for people and for Prometheus. Pure."""

from collections.abc import Mapping
from html import escape
from typing import Final

__all__ = ["GAUGES", "for_people", "for_prometheus"]

GAUGES: Final = frozenset(
    {"connections_open", "torrents", "peers", "uptime_seconds", "siblings", "store_up", "browsers"}
)
"""Which of the statistics may fall; all others count since the start."""


def for_prometheus(statistics: Mapping[str, float]) -> bytes:
    """The statistics in Prometheus's text format, as `toast_tracker_NAME`."""
    lines: list[str] = []
    for name, value in statistics.items():
        full = f"toast_tracker_{name}" if name in GAUGES else f"toast_tracker_{name}_total"
        kind = "gauge" if name in GAUGES else "counter"
        lines += (f"# TYPE {full} {kind}", f"{full} {value}")
    return "\n".join((*lines, "")).encode()


def for_people(statistics: Mapping[str, float]) -> bytes:
    """The statistics as a page that needs nothing from elsewhere and renews itself."""
    rows = "".join(
        f"<tr><td>{escape(name.replace('_', ' '))}</td><td>{value:,}</td></tr>"
        for name, value in statistics.items()
    )
    return (
        "<!doctype html><html lang=en><meta charset=utf-8><meta http-equiv=refresh content=5>"
        "<title>toast-tracker</title><style>body{font:15px sans-serif;margin:2em}"
        "td{padding:.2em 1em .2em 0}td+td{text-align:right}</style>"
        f"<h1>toast-tracker</h1><table>{rows}</table></html>\n"
    ).encode()
