"""What /metrics says, and that Prometheus can read it."""

import math
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vodserver.http.metrics import (
    METRICS,
    HttpCounts,
    LoopProbe,
    Sample,
    merge_counts,
    render,
    samples_of_counts,
    samples_of_status,
)

DOC = (Path(__file__).parents[3] / "docs" / "http.md").read_text("utf-8")
LINE = re.compile(r'([a-z_]+)(?:\{((?:[a-z]+="(?:[^"\\\n]|\\[\\"n])*",?)*)\})? (\S+)')
LABEL = re.compile(r'([a-z]+)="((?:[^"\\\n]|\\[\\"n])*)"')


def read(text):
    """A reader of the text format: {(name, labels): value}, types by name."""
    assert text.endswith("\n")
    values, types = {}, {}
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name not in types, "a metric's samples stand together"
            types[name] = kind
        elif not line.startswith("# HELP "):
            name, labels, value = LINE.fullmatch(line).groups()
            assert name in types, "its type comes first"
            unescaped = {
                label: re.sub(r'\\([\\"n])', lambda m: {"n": "\n"}.get(m[1], m[1]), raw)
                for label, raw in LABEL.findall(labels or "")
            }
            key = (name, tuple(unescaped.items()))
            assert key not in values, "one sample, one line"
            values[key] = float(value)
    return values, types


@given(label=st.text().filter(lambda t: len(t.splitlines()) <= 1 or "\n" in t), value=st.floats())
def test_any_label_and_value_can_be_read_back(label, value):
    label = "".join(c for c in label if c == "\n" or c.isprintable())
    text = render([Sample("vod_streams_refused_total", value, (label,))])

    values, types = read(text)

    ((key, got),) = values.items()
    assert key == ("vod_streams_refused_total", (("cause", label),))
    assert got == value or (math.isnan(got) and math.isnan(value))
    assert types == {"vod_streams_refused_total": "counter"}


def test_samples_of_a_metric_stand_together():
    text = render(
        [
            Sample("vod_disk_there", 1, ("0",)),
            Sample("vod_titles", 3),
            Sample("vod_disk_there", 0, ("1",)),
        ]
    )

    values, _ = read(text)
    assert len(values) == 3
    assert "vod_titles 3\n" in text


@pytest.mark.parametrize(
    "sample",
    [Sample("vod_nothing", 1), Sample("vod_titles", 1, ("x",)), Sample("vod_disk_there", 1)],
)
def test_what_is_no_known_metric_cannot_be_told(sample):
    with pytest.raises(ValueError):  # noqa: PT011 - either of two messages
        render([sample])


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_is_documented(name):
    metric = METRICS[name]
    row = DOC.split(f"\n| `{name}` |")[1].splitlines()[0]

    kind, labels, meaning = (cell.strip() for cell in row.split("|")[:3])
    assert kind == metric.kind
    assert labels == ", ".join(f"`{label}`" for label in metric.labels)
    assert meaning == metric.meaning
    assert metric.kind == "counter" or not name.endswith("_total")
    assert metric.kind == "gauge" or name.endswith("_total")


def test_no_metric_is_documented_that_is_not_there():
    assert set(re.findall(r"^\| `(vod_[a-z_]*)` \|", DOC, flags=re.MULTILINE)) == set(METRICS)


def test_several_processes_count_as_one():
    counts = [HttpCounts(), HttpCounts()]
    for n, count in enumerate(counts):
        count.answered("content", 206, 100 + n)
        count.answered("titles", 200, 0)
    counts[1].add("vod_streams_starved_seconds_total", 0.5)

    values, _ = read(render(samples_of_counts(merge_counts(c.snapshot() for c in counts))))

    ranges = (("route", "content"), ("status", "206"))
    assert values["vod_http_responses_total", ranges] == 2
    assert values["vod_http_content_bytes_total", (("route", "content"),)] == 201
    assert values["vod_streams_starved_seconds_total", ()] == 0.5


def test_the_status_becomes_metrics():
    status = {
        "uptime_seconds": 5.5,
        "titles": 2,
        "seed": {"bytes_sent": 9, "peers": 3, "peer_id_prefix": "-TV-", "port": 1},
        "seed_bytes_sent": 9,
        "disks": [
            {"number": 0, "there": True, "queued_bytes": 7, "state": "good", "stalled": False},
            {"number": 1, "there": False},
        ],
    }

    values, _ = read(render(samples_of_status(status)))

    assert values == {
        ("vod_uptime_seconds", ()): 5.5,
        ("vod_titles", ()): 2,
        ("vod_seed_sent_bytes_total", ()): 9,
        ("vod_seed", (("field", "peers"),)): 3,
        ("vod_disk_there", (("disk", "0"),)): 1,
        ("vod_disk_there", (("disk", "1"),)): 0,
        ("vod_disk", (("disk", "0"), ("field", "queued_bytes"))): 7,
        ("vod_disk", (("disk", "0"), ("field", "stalled"))): 0,
        ("vod_disk_state", (("disk", "0"), ("state", "good"))): 1,
    }
    assert samples_of_status({"seed": None}) == []


def test_the_probe_keeps_the_worst_of_half_a_minute():
    probe = LoopProbe(1.0)
    probe.note(0.25)
    for _ in range(24):
        probe.note(0.0005)
    assert probe.worst_seconds == pytest.approx(0.249)
    assert probe.late == 1

    for _ in range(10):
        probe.note(0.0)
    assert probe.worst_seconds == 0.0
