"""What a cell's figures must be, and how they are read."""

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.cells import CELLS, Cell, Check, judge, read_outcome
from experiments.cli import cli
from experiments.errors import LabError
from toast.policy.pickers import picker_names

FINE = {
    "viewers": 8,
    "film_bytes": 15_000_000,
    "bound": 0.87,
    "copies": 2.2,
    "waste": 0.001,
    "stalls": 0,
    "stall_seconds": 0.0,
    "verified": True,
    "decode_errors": 0,
    "upload_cap_respected": True,
    "start_seconds_p50": 0.02,
    "start_seconds_p95": 0.05,
    "offload": 0.72,
    "choice_share": 0.95,
    "receipts_agree": True,
    "operator_seed_bytes": 0,
}


def cell_named(name):
    (cell,) = (cell for cell in CELLS if cell.name == name)
    return cell


@pytest.mark.parametrize(
    ("check", "value", "well"),
    [
        (Check("stalls", "=", 0), 0, True),
        (Check("stalls", "=", 0), 1, False),
        (Check("offload", ">=", 0.6), 0.6, True),
        (Check("offload", ">=", 0.6), 0.5999, False),
        (Check("start", "<=", 1.0), 1.0, True),
        (Check("start", "<=", 1.0), 1.001, False),
        (Check("start", "<=", 1.0), float("nan"), False),
        (Check("verified", "=", True), True, True),
        (Check("verified", "=", True), False, False),
        (Check("verified", "=", True), 1, False),
        (Check("stalls", "=", 0), False, False),
        (Check("stalls", "=", 0), "0", False),
        (Check("stalls", "=", 0), None, False),
    ],
)
def test_a_check_holds_or_says_what_is_wrong(check, value, well):
    failure = check.failure({check.field: value})
    assert (failure is None) == well
    assert failure is None or failure.startswith(check.field)


def test_a_figure_that_is_missing_is_wrong():
    assert Check("stalls", "=", 0).failure({}) == "stalls is not known"


def test_a_failure_tells_value_and_limit():
    assert Check("offload", ">=", 0.6).failure({"offload": 0.5}) == "offload is 0.5, not >= 0.6"
    assert Check("verified", "=", True).failure({"verified": False}) == (
        "verified is false, not true"
    )


def test_a_comparison_that_does_not_exist_is_refused():
    with pytest.raises(LabError, match="compared by '!='"):
        Check("stalls", "!=", 0)


@pytest.mark.parametrize("cell", CELLS[:7], ids=lambda cell: cell.name)
def test_a_good_run_holds_and_each_bad_figure_is_found(cell):
    assert judge(cell, 0, FINE, 100.0) == []
    for check in cell.checks:
        without = {name: value for name, value in FINE.items() if name != check.field}
        assert judge(cell, 0, without, 100.0) == [f"{check.field} is not known"]
    assert judge(cell, 0, FINE | {"stalls": 1}, 100.0) == ["stalls is 1, not 0"]
    assert judge(cell, 0, FINE | {"verified": False}, 100.0) != []


def test_a_cell_that_fails_or_takes_too_long_does_not_hold_however_good_its_figures():
    demo = cell_named("demo")
    assert judge(demo, 1, FINE, 100.0) == ["its exit code is 1"]
    assert judge(demo, 0, FINE, 301.0) == ["it took longer than 300 s"]


@pytest.mark.parametrize(
    ("name", "share"),
    [("in-order", 0.9), ("rarest-first", 0.8), ("beta", 0.8), ("hybrid", 0.8)],
)
def test_what_is_asked_for_is_the_pickers_choice(name, share):
    cell = cell_named(f"picker-{name}")
    assert judge(cell, 0, FINE | {"choice_share": share}, 100.0) == []
    assert judge(cell, 0, FINE | {"choice_share": share - 0.001}, 100.0) != []


def test_every_picker_has_a_cell():
    assert {f"picker-{name}" for name in picker_names()} <= {cell.name for cell in CELLS}


def test_cells_have_names_of_their_own_which_are_good_file_names():
    names = [cell.name for cell in CELLS]
    assert len(set(names)) == len(names)
    assert all(name.replace("-", "").isalnum() for name in names)


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.name)
def test_every_command_can_be_typed(cell, request):
    """Ours parses; pytest's names files that are there."""
    program, *arguments = cell.command
    assert shlex.split(shlex.join(cell.command)) == list(cell.command)
    if program == "pytest":
        files = [name for name in arguments if name.startswith("tests/")]
        assert files
        assert all((request.config.rootpath / name).exists() for name in files)
    elif program == "python":
        assert (request.config.rootpath / arguments[0]).exists()
    else:
        assert program == "toast-lab"
        command = cli.commands[arguments[0]]
        command.make_context(arguments[0], arguments[1:])


def test_figures_are_the_last_object_that_was_printed():
    lines = ["making a film", '{"stalls": 3}', "[1]", '{"stalls": 0}', "toast-lab: done"]
    assert read_outcome(lines) == {"stalls": 0}


@pytest.mark.parametrize(
    ("line", "counts"),
    [
        ("5 passed in 94.01s (0:01:34)", (5, 0, 0)),
        ("1 failed, 4 passed, 2 skipped, 3 deselected in 3.2s", (4, 1, 2)),
        ("2 skipped, 1 error in 0.5s", (0, 1, 2)),
        ("3 errors in 0.5s", (0, 3, 0)),
    ],
)
def test_counts_of_pytest_are_read(line, counts):
    found = read_outcome(["....  [100%]", line])
    assert tuple(found[name] for name in ("passed", "failed", "skipped")) == counts


def test_what_is_skipped_shows_nothing():
    interop = cell_named("interop")
    assert judge(interop, 0, read_outcome(["4 passed, 1 skipped in 9s"]), 9.0) == [
        "skipped is 1, not 0"
    ]
    assert judge(interop, 0, read_outcome(["no tests ran in 0.01s"]), 1.0) != []


@given(st.lists(st.text(max_size=40), max_size=8))
def test_whatever_is_printed_can_be_read(lines):
    figures = read_outcome(lines)
    cell = Cell("x", "x", ("x",), (Check("stalls", "=", 0),))
    assert isinstance(judge(cell, 0, figures, 1.0), list)
