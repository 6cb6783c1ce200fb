"""Which real runs a figure takes."""

import pytest

from experiments.arrays import trials
from experiments.arrays.catalog import ARRAY_FIGURES
from experiments.arrays.trials import is_search, plan


@pytest.fixture(autouse=True)
def sustained(monkeypatch):
    monkeypatch.setattr(trials, "_sustained", lambda scenario, seed: 80 + seed)


def planned(name, seeds=(1,)):
    return list(plan(ARRAY_FIGURES[name], seeds))


def test_a_bar_of_what_is_sustained_is_run_to_either_side_of_it():
    found = planned("4.2", (1, 2))
    assert len(found) == 2 * 2 * 6
    first = [each for each in found if each.measured.cell.name == "rda"]
    assert [(each.share, each.sustained, each.trial.streams) for each in first] == [
        (0.95, 81, 77),
        (1.05, 81, 85),
        (0.95, 82, 78),
        (1.05, 82, 86),
    ]


@pytest.mark.parametrize(("limit", "near"), [(81, (77, 85)), (8, (7, 9)), (1, (1, 2))])
def test_it_is_at_least_a_stream_away(limit, near):
    assert tuple(trials._near(limit, share) for share in trials.SHARES) == near


def test_a_sick_disk_is_run_at_what_well_ones_sustain():
    found = planned("4.5")
    assert {each.trial.streams for each in found} == {81}
    assert {each.share for each in found} == {None}
    assert all(each.trial.scenario.faults for each in found)


def test_the_sides_of_one_figure_are_the_same_runs():
    keys = [{each.measured.key for each in planned(name)} for name in ("4.5", "4.6", "4.7")]
    assert keys[0] == keys[1] == keys[2]
    assert len(keys[0]) == 30


def test_an_even_load_is_run_once_for_both_figures_that_have_it():
    even = {each.measured.key for each in planned("4.2")}
    uneven = {each.measured.key for each in planned("4.4")}
    assert len(even & uneven) == 2 * 4


def test_a_load_is_a_share_of_the_models_streams():
    found = {each.measured.cell.name: each.trial.streams for each in planned("sick")}
    assert found["half-rda-0.90"] == 72
    assert [is_search(ARRAY_FIGURES[name]) for name in ("4.2", "4.4", "4.5", "sick")] == [
        True,
        True,
        False,
        False,
    ]


def test_what_is_simulated_is_what_is_run():
    one = next(each for each in planned("sick") if each.measured.cell.name == "half-raid1-0.62")
    told = one.simulated()
    assert told.streams == one.trial.streams == 50
    assert told.incidents == 0
