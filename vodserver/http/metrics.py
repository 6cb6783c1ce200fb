"""What `/metrics` says, in the text format that Prometheus reads (version 0.0.4).

Every metric stands in `METRICS`, once, with its type and meaning; the page of the documentation is
tested against it. Numbers that several processes count are added up by `merge_counts`.
"""

import asyncio
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

__all__ = [
    "CONTENT_TYPE",
    "METRICS",
    "HttpCounts",
    "LoopProbe",
    "Metric",
    "Sample",
    "merge_counts",
    "render",
    "samples_of_counts",
    "samples_of_status",
]

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

_LEAST_LAG_SECONDS: Final = 0.001


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric.

    Attributes:
        kind: "counter" or "gauge".
        meaning: one sentence.
        labels: names of its labels.
    """

    kind: str
    meaning: str
    labels: tuple[str, ...] = ()


METRICS: Final[dict[str, Metric]] = {
    "vod_uptime_seconds": Metric("gauge", "Since the server was started."),
    "vod_workers": Metric("gauge", "Processes that serve HTTP; absent where the main one does."),
    "vod_workers_lost_total": Metric("counter", "Those that ended though nobody wanted it."),
    "vod_titles": Metric("gauge", "Films in the store."),
    "vod_bad_replicas": Metric("gauge", "Replicas known to be missing, short or rotten."),
    "vod_http_sent_bytes_total": Metric("counter", "Headers and contents given to the network."),
    "vod_http_connections": Metric("gauge", "HTTP connections that are open."),
    "vod_http_accepted_total": Metric("counter", "HTTP connections let in."),
    "vod_http_refused_total": Metric("counter", "HTTP connections turned away, being too many."),
    "vod_http_responses_total": Metric(
        "counter", "Answers, by route and status.", ("route", "status")
    ),
    "vod_http_content_bytes_total": Metric(
        "counter", "Bytes of answers' bodies, by route.", ("route",)
    ),
    "vod_streams": Metric("gauge", "Paced streams that have leave to run."),
    "vod_streams_rate_bytes": Metric("gauge", "Bytes per second that those take together."),
    "vod_streams_admitted_total": Metric("counter", "Streams let in."),
    "vod_streams_refused_total": Metric("counter", "Streams refused, by cause.", ("cause",)),
    "vod_streams_starved_total": Metric(
        "counter", "Times that a stream had left its client without."
    ),
    "vod_streams_starved_seconds_total": Metric("counter", "How long those lasted."),
    "vod_disk_given_ratio": Metric(
        "gauge", "Share of a disk's time that admission gave away.", ("disk",)
    ),
    "vod_egress_cap_bytes": Metric(
        "gauge", "The egress cap in bytes per second; absent without one."
    ),
    "vod_egress_waiting": Metric("gauge", "Answers that wait for the egress cap."),
    "vod_links_refused_total": Metric(
        "counter", "Requests refused for want of a good signed link."
    ),
    "vod_access_log_dropped_total": Metric(
        "counter", "Entries that the access log could not take."
    ),
    "vod_loop_lag_seconds": Metric(
        "gauge", "Most that the event loop was late in the last half minute."
    ),
    "vod_loop_late_total": Metric("counter", "Times that the event loop was more than 10 ms late."),
    "vod_disk_there": Metric("gauge", "1 if the disk is there, 0 if not.", ("disk",)),
    "vod_disk": Metric(
        "gauge", "What the disk tells of itself in /status, by field.", ("disk", "field")
    ),
    "vod_disk_state": Metric("gauge", "1 for the state that the disk is in.", ("disk", "state")),
    "vod_seed_sent_bytes_total": Metric(
        "counter", "Bytes that the seed sent, payload and protocol."
    ),
    "vod_seed": Metric("gauge", "What the seed tells of itself in /status, by field.", ("field",)),
}
"""Every metric, by its name."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One value.

    Attributes:
        name: one of `METRICS`.
        value: of it.
        labels: values of its labels, in their order.
    """

    name: str
    value: float
    labels: tuple[str, ...] = ()


def render(samples: Iterable[Sample]) -> str:
    """Write samples out; those of one metric together, in the order of `METRICS`.

    Raises:
        ValueError: a sample is of no known metric, or has not its labels.
    """
    by_name: dict[str, list[Sample]] = {}
    for sample in samples:
        by_name.setdefault(sample.name, []).append(sample)
    if not by_name.keys() <= METRICS.keys():
        raise ValueError(f"not among METRICS: {sorted(by_name.keys() - METRICS.keys())}")
    lines = []
    for name, metric in METRICS.items():
        found = by_name.get(name, [])
        if found:
            lines += [f"# HELP {name} {metric.meaning}", f"# TYPE {name} {metric.kind}"]
        lines += [_line(sample, metric) for sample in found]
    return "\n".join([*lines, ""])


def _line(sample: Sample, metric: Metric) -> str:
    pairs = ",".join(
        f'{label}="{_escaped(text)}"'
        for label, text in zip(metric.labels, sample.labels, strict=True)
    )
    return f"{sample.name}{'{' + pairs + '}' if pairs else ''} {_number(sample.value)}"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _number(value: float) -> str:
    if isinstance(value, int):
        return str(int(value))  # True is 1
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return repr(value)


_Key = tuple[str, tuple[str, ...]]


class HttpCounts:
    """What one process answered; only ever counted up."""

    def __init__(self) -> None:
        self._counts: Counter[_Key] = Counter()
        # Answers and their bytes, by route and status: few of those, and every request counts.
        self._answers: dict[tuple[str, int], list[int]] = {}

    def add(self, name: str, amount: float = 1, labels: tuple[str, ...] = ()) -> None:
        """Count one of `METRICS` up."""
        self._counts[name, labels] += amount  # type: ignore[assignment]  # seconds are counted too

    def answered(self, route: str, status: int, body_bytes: int) -> None:
        """Count an answer."""
        counted = self._answers.get((route, status))
        if counted is None:
            counted = self._answers[route, status] = [0, 0]
        counted[0] += 1
        counted[1] += body_bytes

    def snapshot(self) -> list[list[Any]]:
        """Everything as JSON can carry it between processes: name, labels, value."""
        counts = self._counts.copy()
        for (route, status), (answers, size) in self._answers.items():
            counts["vod_http_responses_total", (route, str(status))] += answers
            if size:
                counts["vod_http_content_bytes_total", (route,)] += size
        return [[name, list(labels), value] for (name, labels), value in counts.items()]


def merge_counts(snapshots: Iterable[Sequence[Sequence[Any]]]) -> list[list[Any]]:
    """One snapshot out of those of several processes."""
    total: dict[tuple[str, tuple[str, ...]], float] = {}
    for snapshot in snapshots:
        for name, labels, value in snapshot:
            key = (name, tuple(labels))
            total[key] = total.get(key, 0) + value
    return [[name, list(labels), value] for (name, labels), value in total.items()]


def samples_of_counts(snapshot: Sequence[Sequence[Any]]) -> list[Sample]:
    """The samples of a snapshot."""
    return [Sample(name, value, tuple(labels)) for name, labels, value in sorted(snapshot, key=str)]


def samples_of_status(status: Mapping[str, Any]) -> list[Sample]:
    """The samples of what `/status` says; fields that are no numbers are passed over."""
    plain = {
        "uptime_seconds": "vod_uptime_seconds",
        "titles": "vod_titles",
        "bad_replicas": "vod_bad_replicas",
        "http_bytes_sent": "vod_http_sent_bytes_total",
        "http_connections": "vod_http_connections",
        "http_accepted": "vod_http_accepted_total",
        "http_refused": "vod_http_refused_total",
        "seed_bytes_sent": "vod_seed_sent_bytes_total",
    }
    samples = [Sample(name, status[field]) for field, name in plain.items() if field in status]
    for disk in status.get("disks", ()):
        number = str(disk.get("number", ""))
        for field, value in disk.items():
            if field == "there":
                samples.append(Sample("vod_disk_there", bool(value), (number,)))
            elif field in {"state", "health"} and isinstance(value, str):
                samples.append(Sample("vod_disk_state", 1, (number, value)))
            elif field != "number" and isinstance(value, int | float):
                samples.append(Sample("vod_disk", value, (number, field)))
    samples += [
        Sample("vod_seed", value, (field,))
        for field, value in (status.get("seed") or {}).items()
        if isinstance(value, int | float) and field not in {"bytes_sent", "port"}
    ]
    return samples


class LoopProbe:
    """Measures how late the event loop is: what it was asked for against when it did it.

    Args:
        interval_seconds: between two measurements.
    """

    def __init__(self, interval_seconds: float = 0.1) -> None:
        self._interval = interval_seconds
        self._worst = [0.0] * 6  # of the last six times five seconds, the newest last
        self._turn = 0
        self._late = 0
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Begin to measure the running loop."""
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(
            self._interval, self._measure, loop, loop.time() + self._interval
        )

    def stop(self) -> None:
        """Measure no longer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    @property
    def worst_seconds(self) -> float:
        """The longest that it was late in the last half minute."""
        return max(self._worst)

    @property
    def late(self) -> int:
        """How often it was more than 10 ms late."""
        return self._late

    def note(self, late_seconds: float) -> None:
        """Take one measurement."""
        self._turn += 1
        if self._turn * self._interval >= 5.0:
            self._turn = 0
            self._worst = [*self._worst[1:], 0.0]
        # A timer of whole milliseconds is up to one late without anyone being in its way.
        self._worst[-1] = max(self._worst[-1], late_seconds - _LEAST_LAG_SECONDS)
        self._late += late_seconds > 0.010

    def _measure(self, loop: asyncio.AbstractEventLoop, due: float) -> None:
        self.note(max(loop.time() - due, 0.0))
        self.start()
