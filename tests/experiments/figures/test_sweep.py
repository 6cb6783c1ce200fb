"""Sweeps: what stands is not run again, and an interrupted sweep ends where a whole one does."""

import json
import shutil
from contextlib import closing
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from experiments.figures.jobs import run_here
from experiments.figures.records import Records
from experiments.figures.sweep import Sweep, gather
from tests.experiments.figures.fake import FakeEngine


def nothing(job, now):
    """Nobody wants to know."""


def run(folder, tasks, *, stop_after=None, **options):
    """Run a sweep, to its end or until so many outcomes; what was run."""
    engine = FakeEngine()
    sweep = Sweep(Records(folder), tasks, **options)
    with closing(sweep.run(run_here(lambda: engine), nothing)) as outcomes:
        for count, _ in enumerate(outcomes, 1):
            if count == stop_after:
                break
    return engine.runs


def files(folder):
    """What is kept, but for when and where it was made."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            plain = json.loads(path.read_text())
            found[path.relative_to(folder).as_posix()] = [plain["scenario"], plain["result"]]
    return found


@pytest.fixture
def tasks(task):
    cells = [("beta", 1, "5.3"), ("hybrid", 1, "5.3"), ("hybrid", 1, "5.5"), ("beta", 2, "5.3")]
    return [task(*place) for place in cells]


def test_every_cell_is_a_file_and_alike_ones_are_run_once(tmp_path, tasks):
    assert len(run(tmp_path, tasks)) == 3
    assert list(files(tmp_path)) == [
        "5.3/sim-quick-beta-2mbps-streaming-1.json",
        "5.3/sim-quick-beta-2mbps-streaming-2.json",
        "5.3/sim-quick-hybrid-2mbps-streaming-1.json",
        "5.5/sim-quick-hybrid-2mbps-streaming-1.json",
    ]
    assert run(tmp_path, tasks) == []


def test_a_file_says_how_it_came_to_be(tmp_path, tasks):
    run(tmp_path, tasks[:1])
    (path,) = tmp_path.glob("*/*.json")
    plain = json.loads(path.read_text())
    assert plain["scenario"]["random_seed"] == plain["seed"] == 1
    assert plain["machine"]["cores"] >= 1
    assert plain["commit"]
    assert plain["date"].endswith("+00:00")
    assert len(path.read_bytes()) < 10_000


def test_another_figures_run_is_taken_over(tmp_path, task):
    run(tmp_path, [task(sweep="5.3")])
    assert run(tmp_path, [task(sweep="5.5")]) == []
    assert len(files(tmp_path)) == 2


def test_a_folder_from_elsewhere_stands(tmp_path, tasks):
    run(tmp_path / "there", tasks)
    shutil.copytree(tmp_path / "there", tmp_path / "here")
    assert run(tmp_path / "here", tasks) == []


def test_a_result_from_before_a_field_was_stands_for_the_fields_default(tmp_path, tasks):
    run(tmp_path, tasks)
    for path in tmp_path.rglob("*.json"):
        old = json.loads(path.read_text())
        del old["scenario"]["server_loss"], old["scenario"]["links"][0]["loss"]
        path.write_text(json.dumps(old))
    assert run(tmp_path, tasks) == []


def test_a_result_with_a_field_that_is_no_more_stands_for_nothing_now(tmp_path, tasks):
    run(tmp_path, tasks)
    for path in tmp_path.rglob("*.json"):
        old = json.loads(path.read_text())
        old["scenario"]["colour"] = "green"
        path.write_text(json.dumps(old))
    assert len(run(tmp_path, tasks)) == len({task.key for task in tasks})


def test_another_scenario_or_engine_is_run_in_its_place(tmp_path, task):
    old = task()
    run(tmp_path, [old])
    changed = replace(old, cell=replace(old.cell, scenario=old.cell.scenario.with_(viewers=3)))
    assert len(run(tmp_path, [changed])) == 1
    assert len(files(tmp_path)) == 1
    assert len(run(tmp_path, [replace(changed, engine="real")])) == 1


def test_again_runs_what_stands(tmp_path, tasks):
    run(tmp_path, tasks)
    assert len(run(tmp_path, tasks, again=True)) == 3


def test_a_failure_does_not_stop_the_others_and_is_not_kept(tmp_path, task):
    tasks = [task(name="fails"), task("beta")]
    sweep = Sweep(Records(tmp_path), tasks)
    outcomes = list(sweep.run(run_here(FakeEngine), nothing))
    assert [outcome.error for outcome in outcomes] == ["the tracker did not start", ""]
    assert sweep.failures == outcomes[:1]
    assert list(files(tmp_path)) == ["5.3/sim-quick-beta-2mbps-streaming-1.json"]


def test_what_an_engine_cannot_do_is_no_failure(tmp_path, task):
    sweep = Sweep(Records(tmp_path), [task(name="cannot")])
    (outcome,) = sweep.run(run_here(FakeEngine), nothing)
    assert outcome.error == "latency is nothing for this engine"
    assert sweep.failures == []


@pytest.mark.parametrize("contents", [b"", b"{", b"[]", b"\xff", b'{"sweep": "5.3"}', b"null"])
def test_a_damaged_file_is_set_aside_and_made_anew(tmp_path, tasks, contents):
    run(tmp_path, tasks)
    whole = files(tmp_path)
    damaged = tmp_path / "5.3" / "sim-quick-beta-2mbps-streaming-2.json"
    damaged.write_bytes(contents)
    records = Records(tmp_path)
    aside = damaged.with_name(f"{damaged.name}.unreadable")
    assert records.set_aside == [aside]
    assert aside.read_bytes() == contents
    aside.unlink()
    assert len(run(tmp_path, tasks)) == 1
    assert files(tmp_path) == whole


@given(
    stops=st.lists(st.integers(1, 3), max_size=3),
    damage=st.none() | st.tuples(st.integers(0, 3), st.integers(0, 2000)),
)
@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_interrupted_anywhere_and_resumed_it_ends_as_if_it_had_not_been(
    tmp_path_factory, tasks, stops, damage
):
    """Also if a file was cut off: by a full disk, or by a copy that broke off."""
    whole, broken = (tmp_path_factory.mktemp(name) for name in ("whole", "broken"))
    run(whole, tasks)
    for stop in stops:
        run(broken, tasks, stop_after=stop)
    if damage is not None:
        which, length = damage
        for path in sorted(broken.glob("*/*.json"))[which : which + 1]:
            path.write_bytes(path.read_bytes()[:length])
    run(broken, tasks)
    for aside in broken.glob("*/*.unreadable"):
        aside.unlink()
    assert files(broken) == files(whole)


def test_results_are_those_of_the_scenario_as_it_is_now(tmp_path, task):
    tasks = [task(), task("beta"), task(seed=2)]
    run(tmp_path, tasks)
    old = tasks[1]
    tasks[1] = replace(old, cell=replace(old.cell, scenario=old.cell.scenario.with_(viewers=3)))
    results = gather(Records(tmp_path), tasks)
    (cell,) = results.cells
    assert sorted(cell.runs) == [1, 2]
