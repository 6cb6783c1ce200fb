"""Counters and gauges in Prometheus' text format (version 0.0.4). Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

__all__ = ["METRICS", "Metric", "render_metrics"]


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric: its kind (`counter` or `gauge`) and what it says."""

    kind: str
    help: str


METRICS: Final[Mapping[str, Metric]] = {
    "toast_films": Metric("gauge", "Films, by state."),
    "toast_film_pieces": Metric("gauge", "Pieces that are here, over all films."),
    "toast_readers": Metric("gauge", "Players' connections that read a film now."),
    "toast_neighbours": Metric("gauge", "Peers connected, over all films."),
    "toast_down_rate_bytes": Metric("gauge", "Bytes/second received from peers."),
    "toast_up_rate_bytes": Metric("gauge", "Bytes/second sent to peers."),
    "toast_received_bytes_total": Metric(
        "counter", "Film bytes received, by source (peers, seed, origin), of films that are here."
    ),
    "toast_uploaded_bytes_total": Metric(
        "counter", "Film bytes sent to peers, of films that are here."
    ),
    "toast_stalls_total": Metric("counter", "How often a viewing halted, of films that are here."),
    "toast_offload_ratio": Metric(
        "gauge", "Share of what was received that other viewers sent; absent while nothing was."
    ),
    "toast_uploaded_today_bytes": Metric("gauge", "Sent to peers since midnight, local time."),
    "toast_origin_today_bytes": Metric("gauge", "Asked of VoD servers in the last 24 hours."),
    "toast_disk_used_bytes": Metric("gauge", "What films take on the disk."),
    "toast_disk_free_bytes": Metric("gauge", "What the disk has left."),
    "toast_content_sent_bytes_total": Metric("counter", "Film bytes handed to players."),
    "toast_subscribers": Metric("gauge", "Event streams that are open."),
    "toast_uptime_seconds": Metric("gauge", "Since the daemon has started."),
}
"""By name; docs/daemon.md lists them."""


def render_metrics(values: Mapping[str, Mapping[str, float] | float | None]) -> str:
    """Everything that is known, as Prometheus reads it.

    Args:
        values: by metric: a number, or numbers by `label=value`; None leaves it out.
    """
    lines: list[str] = []
    for name, value in values.items():
        if value is None:
            continue
        metric = METRICS[name]
        lines += [f"# HELP {name} {metric.help}", f"# TYPE {name} {metric.kind}"]
        lines += _samples(name, value)
    return "\n".join(lines) + "\n"


def _samples(name: str, value: Mapping[str, float] | float) -> Iterable[str]:
    if not isinstance(value, Mapping):
        yield f"{name} {value:.17g}"
        return
    for label, number in value.items():
        key, _, text = label.partition("=")
        yield f'{name}{{{key}="{text}"}} {number:.17g}'
