"""The page of all results: what is on it, and that it needs nothing else."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from experiments.errors import LabError
from experiments.figures.catalog import FIGURES
from experiments.figures.jobs import run_here
from experiments.figures.make import figure_tasks
from experiments.figures.records import Records
from experiments.figures.report import group_records, make_report
from experiments.figures.sweep import Sweep
from tests.experiments.figures.fake import FakeEngine


def fill(folder, *tasks):
    sweep = Sweep(Records(folder), tasks)
    for _ in sweep.run(run_here(FakeEngine), lambda _job, _now: None):
        pass
    return Records(folder)


class Page(HTMLParser):
    """Tags, addresses and text of a page; refuses what is not closed."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.addresses, self.words, self.ids = [], [], [], [], set()
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        for name, value in attributes:
            if name in {"src", "srcset", "href"}:
                self.addresses.append(value)
            if name == "id":
                self.ids.add(value)
        if tag not in {"meta", "img", "source"}:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)


@pytest.fixture
def records(tmp_path):
    """A figure of both engines, and a sweep."""
    tasks = figure_tasks(FIGURES["5.7"], "sim", "quick", 2)
    real = [replace(task, engine="real") for task in tasks[:4]]
    own = [replace(tasks[0], sweep="sweep-own", scale="own")]
    changed = figure_tasks(FIGURES["5.7"], "sim", "quick", 1, ["viewers=2"])
    return fill(tmp_path, *tasks, *real, *own, *changed)


@pytest.mark.slow
def test_the_page_has_everything_and_needs_nothing(records):
    text = make_report(records)
    page = Page(text)
    words = " ".join(page.words)
    assert "script" not in page.tags
    assert not re.search(r"https?://|url\(|@import", text)
    assert all(address.startswith(("data:image/png;base64,", "#")) for address in page.addresses)
    links = {address[1:] for address in page.addresses if address.startswith("#")}
    assert links == page.ids
    assert "5.7: Choking, streaming, 2 Mb/s (sim, quick)" in words
    assert "5.7: Choking, streaming, 2 Mb/s (real, quick)" in words
    assert "sweep-own (sim, own)" in words
    for claim in FIGURES["5.7"].claims:
        assert claim.text in words
    assert "hybrid-2mbps-streaming-seed-choking" in words
    assert "4 cells; farthest apart: " in words
    assert "made up" in words
    # Figure and load, light and dark, of three groups of the figure.
    assert text.count("data:image/png;base64,") == 3 * 4
    assert "prefers-color-scheme:dark" in text
    assert "width=device-width" in text


def test_groups_come_in_the_order_of_the_source(tmp_path):
    tasks = [figure_tasks(FIGURES[n], "sim", "quick", 1)[0] for n in ("5.10", "5.3", "arrivals")]
    own = replace(tasks[0], sweep="another")
    records = fill(tmp_path, own, *tasks)
    assert [group.sweep for group in group_records(records)] == [
        "5.3",
        "5.10",
        "arrivals",
        "another",
    ]


def test_results_of_older_scenarios_are_left_out(tmp_path):
    now = figure_tasks(FIGURES["5.3"], "sim", "quick", 2)[-1]
    cell = replace(now.cell, scenario=now.cell.scenario.with_(viewers=2))
    records = fill(tmp_path, now, replace(now, cell=cell, seed=1))
    (group,) = group_records(records)
    assert group.left_out == 1
    (found,) = group.results.cells
    assert list(found.runs) == [2]


def test_nothing_is_no_report(tmp_path):
    with pytest.raises(LabError, match="run 'toast-lab figure' first"):
        make_report(Records(tmp_path))
