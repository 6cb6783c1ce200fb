"""Fields of a scenario in all combinations."""

import pytest

from experiments.errors import ScenarioError
from experiments.figures.grid import grid_cells
from experiments.swarms.presets import SCALES

QUICK = SCALES["quick"]


def test_all_combinations():
    cells = grid_cells(QUICK, ["picker=hybrid,beta", "links.upload_bps=1e6,2e6"])
    assert [cell.name for cell in cells] == [
        "picker-hybrid-upload_bps-1e6",
        "picker-hybrid-upload_bps-2e6",
        "picker-beta-upload_bps-1e6",
        "picker-beta-upload_bps-2e6",
    ]
    assert cells[2].scenario.picker == "beta"
    assert cells[2].scenario.links[0].upload_bps == 1e6
    assert cells[2].axes == {"picker": "beta", "links.upload_bps": "1e6"}
    assert cells[2].scenario.name == cells[2].name


def test_a_value_may_be_a_table():
    random = QUICK.with_(neighbours="random")
    cells = grid_cells(random, ["neighbours_options={k = 2}, {k = 5}"])
    assert [cell.scenario.neighbours_options for cell in cells] == [{"k": 2}, {"k": 5}]


@pytest.mark.parametrize(
    ("varied", "words"),
    [
        ("picker", "FIELD=VALUE,VALUE"),
        ("picker=", "FIELD=VALUE,VALUE"),
        ("picker=beta,newest", "picker"),
        ("pickers=beta", "pickers is no field"),
        ("viewers=2,2", "every value must be given once"),
    ],
)
def test_what_is_wrong_is_named(varied, words):
    with pytest.raises(ScenarioError, match=words):
        grid_cells(QUICK, [varied])
