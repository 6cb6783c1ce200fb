"""Means, intervals and differences over seeds."""

import pytest

from experiments.errors import MissingResultError
from experiments.figures.results import CellResults, Estimate, Results, estimate
from tests.experiments.figures.fake import FakeEngine


def test_the_interval_is_students():
    found = estimate([1.0, 2.0, 3.0, 4.0])
    assert (found.mean, found.seeds) == (2.5, 4)
    # t = 3.182 with 3 degrees of freedom, standard deviation 1.29099
    assert found.half_width == pytest.approx(3.182 * 1.29099 / 2, rel=1e-4)


def test_many_seeds_have_the_normals_interval():
    found = estimate([0.0, 1.0] * 50)
    assert found.half_width == pytest.approx(1.96 * 0.50252 / 10, rel=1e-3)


def test_one_seed_has_no_interval_and_none_is_missing():
    assert estimate([0.5]) == Estimate(0.5, 0.0, 1)
    with pytest.raises(MissingResultError):
        estimate([])


@pytest.mark.parametrize(
    ("found", "sign"),
    [
        (Estimate(0.3, 0.1, 3), 1),
        (Estimate(-0.3, 0.1, 3), -1),
        (Estimate(0.1, 0.3, 3), 0),
        (Estimate(0.1, 0.0, 1), 1),
        (Estimate(0.0, 0.0, 1), 0),
    ],
)
def test_a_sign_is_one_that_chance_does_not_explain(found, sign):
    assert found.sign == sign


def test_cells_are_compared_seed_by_seed(task):
    engine = FakeEngine()
    cells = [
        CellResults(
            picker,
            {"picker": picker},
            {
                seed: engine.run(task(picker).cell.scenario.with_(random_seed=seed))
                for seed in seeds
            },
        )
        for picker, seeds in (("hybrid", (1, 2, 3)), ("beta", (2, 3, 4)))
    ]
    results = Results(cells)
    found = results.difference({"picker": "hybrid"}, {"picker": "beta"})
    assert found.seeds == 2
    assert found.mean == pytest.approx(0.15, abs=0.02)
    # The fake's chance is a factor that both have: of their difference little of it is left.
    assert found.half_width < results.cell(picker="hybrid").estimate("offload").half_width


def test_a_cell_without_runs_is_no_result(task):
    results = Results([CellResults("x", {"picker": "beta"}, {})])
    assert results.cells == ()
    with pytest.raises(MissingResultError, match="beta"):
        results.mean(picker="beta")


def test_what_a_run_does_not_have_is_left_out(task):
    run = FakeEngine().run(task().cell.scenario)
    cell = CellResults("x", {}, {1: run})
    assert cell.values("start_seconds_p50") == {1: 0.25}
    broken = type(run)(**{**run.to_dict(), "start_seconds_p50": None})
    with pytest.raises(MissingResultError):
        CellResults("x", {}, {1: broken}).estimate("start_seconds_p50")
