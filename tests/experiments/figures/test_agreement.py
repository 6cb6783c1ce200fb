"""Simulator beside real swarm: which runs are compared, and which order counts as the same."""

from dataclasses import replace

import pytest

from experiments.figures.agreement import compare
from experiments.figures.jobs import carry_out
from tests.experiments.figures.fake import FakeEngine


@pytest.fixture
def record(task):
    """A record with a given offload: record("sim", "beta", 0.5)."""
    engine = FakeEngine()

    def make(name, picker, offload, seed=1, **place):
        work = replace(task(picker, seed, **place), engine=name)
        done = carry_out(engine, work.described, lambda _: None)
        return work.record(replace(done, result=replace(done.result, offload=offload)))

    return make


def test_cells_that_both_have_are_compared_over_their_seeds(record):
    found = compare(
        [
            record("sim", "beta", 0.50, seed=1),
            record("sim", "beta", 0.60, seed=2),
            record("real", "beta", 0.58, seed=7),
            record("sim", "hybrid", 0.9),
        ]
    )
    (cell,) = found.cells
    assert (cell.cell, cell.scale) == ("beta-2mbps-streaming", "quick")
    assert cell.difference == pytest.approx(-0.03)
    assert (cell.simulated.seeds, cell.real.seeds) == (2, 1)
    assert found.worst is cell
    assert found.rankings == []


def test_a_run_that_figures_share_counts_once(record):
    found = compare(
        [
            record("sim", "beta", 0.5, sweep="5.3"),
            record("sim", "beta", 0.5, sweep="5.5"),
            record("real", "beta", 0.5, sweep="5.5"),
        ]
    )
    assert [cell.simulated.seeds for cell in found.cells] == [1]


@pytest.mark.parametrize(
    ("real", "same"),
    [
        ({"beta": 0.5, "hybrid": 0.6, "in-order": 0.7}, True),
        ({"beta": 0.5, "hybrid": 0.7, "in-order": 0.695}, True),  # less apart than repeats are
        ({"beta": 0.65, "hybrid": 0.6, "in-order": 0.7}, False),
    ],
)
def test_the_same_ranking_has_no_two_clearly_the_other_way(record, real, same):
    simulated = {"beta": 0.4, "hybrid": 0.5, "in-order": 0.6}
    records = [record("sim", *entry) for entry in simulated.items()]
    records += [record("real", *entry) for entry in real.items()]
    found = compare(records)
    (ranking,) = found.rankings
    assert ranking.is_same is same
    assert ranking.simulated == ("in-order", "hybrid", "beta")
    assert ranking.case == "quick: 2 Mb/s, streaming"
    assert found.to_dict()["rankings_are_same"] is same


def test_nothing_in_common():
    found = compare([])
    assert (list(found.cells), found.worst) == ([], None)
    assert found.to_dict()["worst_difference"] is None
