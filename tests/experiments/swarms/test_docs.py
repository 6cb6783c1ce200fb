"""The pages about scenarios and results name all there is, and their example is a scenario."""

import dataclasses
import re
from pathlib import Path

from experiments.figures.catalog import FIGURES
from experiments.swarms.presets import SCALES
from experiments.swarms.result import RunResult
from experiments.swarms.text import read_scenario

DOCS = Path(__file__).parents[3] / "docs"


def test_every_field_of_a_result_is_defined():
    section = (DOCS / "measures.md").read_text("utf-8").split("\n## A run of the swarm lab")[1]
    rows = re.findall(r"^\| (`.*?`) \|", section.split("\n## ")[0], re.MULTILINE)
    named = re.findall(r"`(\w+)`", " ".join(rows))
    assert sorted(named) == sorted(field.name for field in dataclasses.fields(RunResult))


def test_every_figure_and_every_scale_is_described():
    page = (DOCS / "swarms.md").read_text("utf-8")
    described = page.split("\n## Figures")[1].split("\n## ")[0]
    assert re.findall(r"^\| (5\.\d+|arrivals) \|", described, re.MULTILINE) == list(FIGURES)
    sizes = page.split("\n## Sizes")[1].split("\n## ")[0]
    assert re.findall(r"^\| `(\w+)` \|", sizes, re.MULTILINE) == list(SCALES)


def test_the_example_is_a_scenario(tmp_path):
    (text,) = re.findall(r"```toml\n(.*?)```", (DOCS / "swarms.md").read_text("utf-8"), re.DOTALL)
    (tmp_path / "evening.toml").write_text(text)
    scenario = read_scenario(tmp_path / "evening.toml")
    assert (scenario.name, scenario.viewers) == ("evening", 120)
    assert [link.share for link in scenario.links] == [2.0, 1.0]
