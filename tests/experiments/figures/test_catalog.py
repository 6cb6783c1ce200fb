"""The source's figures: their cells, and that every claim asks for results which they have."""

import json
from collections import defaultdict

import pytest

from experiments.errors import ScenarioError
from experiments.figures.catalog import FIGURES, KNOWN, find_figures
from experiments.figures.figure import PICKERS, judge
from experiments.figures.make import figure_tasks
from experiments.swarms.presets import SCALES
from experiments.swarms.scenario import ArrivalKind, Choking
from experiments.swarms.text import describe
from toast.policy.pickers import picker_names

every = pytest.mark.parametrize("name", [*FIGURES, "neighbours"])


def test_every_figure_that_can_be_made_is_there():
    names = ["5.3", "5.4", "5.5", "5.6", "5.7", "5.8", "5.9", "5.10", "5.11", "arrivals"]
    assert list(FIGURES) == names
    assert find_figures("all") == tuple(FIGURES.values())
    with pytest.raises(ScenarioError, match=r"'5\.1': choose 5\.3, .* or all"):
        find_figures("5.1")


def test_the_sources_pickers_are_among_ours():
    assert set(PICKERS) <= set(picker_names())


@pytest.mark.parametrize("scale", SCALES)
def test_a_cells_name_and_its_scenario_belong_together_in_all_figures(scale):
    """So that a run which two figures need is made once, and no file means two things."""
    scenarios, names = defaultdict(set), defaultdict(set)
    for figure in FIGURES.values():
        for cell in figure.cells(scale):
            plain = describe(cell.scenario)
            assert plain.pop("name") == cell.name
            scenarios[cell.name].add(json.dumps(plain, sort_keys=True))
            names[json.dumps(plain, sort_keys=True)].add(cell.name)
    assert {name: len(found) for name, found in scenarios.items() if len(found) > 1} == {}
    assert [found for found in names.values() if len(found) > 1] == []


@every
@pytest.mark.parametrize("scale", SCALES)
def test_every_cell_has_a_place_of_its_own(name, scale):
    figure = KNOWN[name]
    cells = figure.cells(scale)
    places = [(cell.axes[figure.series], *(cell.axes.get(x) for x in figure.x)) for cell in cells]
    assert len(set(places)) == len(cells)


@every
def test_every_claim_is_decided_by_a_number_from_the_figures_own_cells(name, results_of):
    for claim in KNOWN[name].claims:
        verdict = judge(claim, results_of(name))
        assert verdict.number is not None, (claim.text, verdict.words)


def test_the_fakes_pickers_are_seen_in_their_order(results_of):
    """In the fake in-order and hybrid are best at all caps, and behaviours change nothing."""
    seen = {
        claim.text: judge(claim, results_of(figure.name)).reproduced
        for figure in FIGURES.values()
        for claim in figure.claims
    }
    assert seen["in-order and hybrid lead at 2 Mb/s"] is True
    assert seen["beta leads at 1 Mb/s"] is False
    assert seen["the spread between pickers grows with upload"] is True
    assert seen["at 1 Mb/s rarest-first is above in-order and hybrid"] is False
    assert seen["seeding is the best behaviour with every picker"] is None
    assert seen["the new pickers lose with a buffer of 25 %"] is None
    assert seen["a round trip of 10 ms changes less than 2.1 points everywhere"] is True
    assert seen["all at once is 21 % worse than uniform on average (11 to 31 %)"] is False
    assert seen["rarest-first makes most traffic at 2 Mb/s"] is None


def test_what_figures_vary():
    choking = {
        cell.axes["choking"]: cell.scenario.choking for cell in FIGURES["5.7"].cells("quick")
    }
    assert choking == {"tit-for-tat": Choking.TIT_FOR_TAT, "seed choking": Choking.SEED}
    buffers = {
        cell.axes["buffer"]: cell.scenario.buffer_fraction for cell in FIGURES["5.8"].cells("quick")
    }
    assert buffers == {"25 %": 0.25, "50 %": 0.5, "75 %": 0.75, "100 %": None}
    arrivals = {cell.scenario.arrivals.kind for cell in FIGURES["arrivals"].cells("source")}
    assert arrivals == {ArrivalKind.UNIFORM, ArrivalKind.POISSON, ArrivalKind.ALL_AT_ONCE}
    assert {cell.scenario.viewers for cell in FIGURES["arrivals"].cells("source")} == {90}


def test_the_range_of_hybrid_is_in_minutes_of_the_hour():
    ranges = {
        cell.axes.get("range"): cell.scenario.picker_options.get("in_order_seconds")
        for cell in FIGURES["5.4"].cells("source")
    }
    assert ranges["2"] == 120.0
    assert ranges["20"] == 1200.0
    assert ranges["15"] is None  # the picker's own default: 15 minutes


def test_delays_of_ten_machines():
    cells = {cell.axes["latency"]: cell.scenario for cell in FIGURES["5.9"].cells("source")}
    classes = {
        name: sorted((link.latency_seconds, link.share) for link in scenario.links)
        for name, scenario in cells.items()
    }
    assert classes["mixed A"] == [(0.0, 4), (0.001, 4), (0.002, 1), (0.005, 1)]
    assert classes["10 ms"] == [(0.005, 1)]
    assert cells["10 ms"].server_latency_seconds == 0.005
    assert {link.upload_bps for link in cells["mixed B"].links} == {2e6}


def test_changes_apply_to_every_cell_and_name_the_sweep():
    tasks = figure_tasks(FIGURES["5.3"], "sim", "quick", 2, ["neighbours=random", "viewers=5"])
    assert len(tasks) == 24
    assert {task.sweep for task in tasks} == {"5.3,neighbours=random,viewers=5"}
    assert {task.cell.scenario.neighbours for task in tasks} == {"random"}
    assert [task.seed for task in tasks] == [1] * 12 + [2] * 12


def test_a_best_range_that_chance_explains_is_none(results_of):
    """To the fake all ranges are the same but for the seed, which all have in common."""
    claim = FIGURES["5.4"].claims[-1]
    verdict = judge(claim, results_of("5.4"))
    assert verdict.reproduced is None
    assert verdict.words == "best at 2 minutes, 0.0 points above 15 minutes"
