"""docs/daemon.md lists every metric, operation and rule, and no others."""

import dataclasses
import re
from pathlib import Path

import pytest

from toast.daemon.metrics import METRICS, render_metrics
from toast.daemon.operations import OPERATIONS, SCHEMAS
from toast.daemon.schedule import Schedule
from toast.daemon.settings import RuleSettings

PAGE = (Path(__file__).parents[3] / "docs" / "daemon.md").read_text("utf-8")


def rows(heading):
    """The tables under a heading: their cells, without the ticks of code."""
    text = PAGE.split(f"\n{heading}\n")[1]
    text = re.split(r"\n#+ ", text)[0]
    lines = re.findall(r"^\| (`.*) \|$", text, re.MULTILINE)
    return [tuple(cell.strip().replace("`", "") for cell in line.split(" | ")) for line in lines]


def test_every_metric_is_described_as_it_describes_itself():
    assert rows("## Metrics") == [(n, m.kind, m.help) for n, m in METRICS.items()]


def test_every_operation_is_listed():
    assert rows("## The API") == [
        (f"{op.method} {op.full_path}", op.summary.replace("`", "")) for op in OPERATIONS
    ]


def test_every_state_of_a_film_is_explained():
    states = SCHEMAS["Film"]["properties"]["state"]["enum"]
    assert sorted(row[0] for row in rows("## What a film goes through")) == sorted(states)


def test_every_rule_can_be_read_and_changed_through_the_api():
    assert list(SCHEMAS["Settings"]["properties"]) == [
        field.name for field in dataclasses.fields(RuleSettings)
    ]


def test_the_schedule_on_the_page_is_one():
    (text,) = re.findall(r'schedule="([^"]*)"', PAGE)
    assert len(Schedule.parse(text).windows) == 3


def test_a_metric_that_nobody_knows_cannot_be_shown():
    with pytest.raises(KeyError):
        render_metrics({"toast_secret": 1.0})
