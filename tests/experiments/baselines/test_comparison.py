"""Ours beside the baselines, with figures that are made up."""

from dataclasses import replace

import pytest

from experiments.baselines.comparison import CELLS, COLUMNS, COMPARISON, comparison_rows
from experiments.figures.catalog import FIGURES, find_figures
from experiments.figures.figure import judge
from experiments.figures.results import CellResults, Results
from experiments.swarms.fluid import bound_of
from experiments.swarms.presets import SCALES
from experiments.swarms.scenario import Client
from tests.experiments.figures.fake import FakeEngine


@pytest.fixture(scope="session")
def made_up():
    """Results of ours at an offload of 0.8 and of all others at 0.5, but for what is changed."""
    base = FakeEngine().run(COMPARISON.cells("quick")[0].scenario)

    def make(of=None, **changes):
        return Results(
            CellResults(cell.name, cell.axes, {1: replace(base, **figures)})
            for cell in COMPARISON.cells("quick")
            for client in [cell.axes["client"]]
            for figures in [
                {"offload": 0.8 if client == "toast" else 0.5} | (changes if client == of else {})
            ]
        )

    return make


def verdicts(results):
    return [judge(claim, results).reproduced for claim in COMPARISON.claims]


@pytest.mark.parametrize("scale", SCALES)
def test_every_client_is_in_every_cell_under_a_name_of_its_own(scale):
    cells = COMPARISON.cells(scale)

    assert len({cell.name for cell in cells}) == len(cells) == len(CELLS) * len(Client)
    assert all(cell.scenario.name == cell.name for cell in cells)
    assert all(str(cell.scenario.client) == cell.axes["client"] for cell in cells)


def test_clients_of_a_cell_meet_the_same_scenario():
    for behaviour, upload in CELLS:
        first, *others = (
            cell.scenario
            for cell in COMPARISON.cells("quick")
            if (cell.axes["behaviour"], cell.axes["upload"]) == (behaviour, upload)
        )
        assert all(s.with_(client=first.client, name=first.name) == first for s in others)
        assert len(others) == len(Client) - 1


def test_ours_is_the_same_run_as_in_the_sources_figures():
    theirs = {cell.name: cell.scenario for cell in FIGURES["5.3"].cells("quick")}
    ours = COMPARISON.cells("quick")[0]

    assert theirs[ours.name] == ours.scenario


def test_cells_differ_in_what_peers_could_have_given():
    streaming, half, _, seeding_half = (
        bound_of(COMPARISON.cells("quick")[n * len(Client)].scenario) for n in range(4)
    )
    assert half < streaming
    assert half < seeding_half


def test_it_is_made_by_its_name_and_is_none_of_the_sources():
    assert find_figures("baselines") == (COMPARISON,)
    assert COMPARISON not in find_figures("all")


def test_the_table_has_a_row_for_each_cell_and_client(made_up):
    results = made_up("naive", offload=0.25, stalls=3, stall_seconds=1.25, start_seconds_p50=None)
    rows = comparison_rows(results)

    assert [row[:3] for row in rows] == [
        (str(behaviour), upload, str(client)) for behaviour, upload in CELLS for client in Client
    ]
    assert all(len(row) == len(COLUMNS) for row in rows)
    naive = next(row for row in rows if row[2] == "naive")
    assert naive[3] == "25.0 %"
    assert naive[5:9] == ("3", "1.25 s", "-", "0.25 s")


def test_ours_ahead_everywhere_and_never_stalled_is_all_that_is_claimed(made_up):
    assert verdicts(made_up()) == [True, True]
    assert verdicts(made_up("naive", stalls=9)) == [True, True]


def test_a_baseline_ahead_of_ours_is_seen(made_up):
    assert verdicts(made_up("naive", offload=0.9)) == [False, True]


def test_a_stall_of_ours_is_seen(made_up):
    assert verdicts(made_up("toast", stalls=1)) == [True, False]


def test_what_was_not_run_cannot_be_told(made_up):
    some = Results(cell for cell in made_up().cells if cell.axes["client"] != "unicast")

    assert verdicts(some) == [None, True]
