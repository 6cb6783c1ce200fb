"""Results are kept, resumed and judged; the cells are small programs that stand for long ones."""

import asyncio
import json
import os
import signal
import subprocess
from dataclasses import replace

import pytest
from click.testing import CliRunner

from experiments import cli as laboratory
from experiments.cells import Cell, Check
from experiments.errors import LabError
from experiments.evidence import Evidence, checkout, commit_of

pytestmark = pytest.mark.slow  # most of them start an interpreter

COUNTED = """
import json, pathlib, sys
runs = pathlib.Path({runs!r})
runs.write_text(runs.read_text() + "x" if runs.exists() else "x")
print("working")
print(json.dumps({figures!r}))
sys.exit({code})
"""


@pytest.fixture
def fake(tmp_path):
    """Makes cells whose program says given figures; and tells how often it has run."""

    class Fake:
        def cell(self, name, code=0, **figures):
            text = COUNTED.format(runs=str(tmp_path / f"{name}.runs"), figures=figures, code=code)
            command = ("python", "-I", "-S", "-c", text)
            return Cell(name, "a fake", command, (Check("stalls", "=", 0),), 20.0)

        def runs(self, name):
            path = tmp_path / f"{name}.runs"
            return len(path.read_text()) if path.exists() else 0

        def evidence(self, *cells, commit="abc"):
            return Evidence(tmp_path / "evidence", tmp_path, commit, cells)

    return Fake()


async def test_a_result_has_all_that_one_needs_to_believe_it(fake, tmp_path):
    cell = fake.cell("demo", stalls=0, offload=0.7)
    result = await fake.evidence(cell).obtain(cell)
    assert result.held
    stored = json.loads((tmp_path / "evidence" / "demo.json").read_text())
    assert stored["figures"] == {"stalls": 0, "offload": 0.7}
    assert json.loads(stored["last_line"]) == stored["figures"]
    assert stored["command"].startswith("python -I -S -c ")
    assert (stored["commit"], stored["exit_code"], stored["wrong"]) == ("abc", 0, [])
    assert stored["cores"] == os.cpu_count()
    assert os.uname().release in stored["kernel"]
    assert stored["date"].endswith("+00:00")
    assert 0 < stored["seconds"] < 20
    assert sorted(path.name for path in (tmp_path / "evidence").iterdir()) == ["demo.json", "logs"]


@pytest.mark.parametrize("stalls", [0, 2])
async def test_a_result_stands_for_its_commit_and_command_good_or_bad(fake, stalls):
    cell = fake.cell("demo", stalls=stalls)
    evidence = fake.evidence(cell)
    assert evidence.known(cell) is None
    result = await evidence.obtain(cell)
    assert result.held == (stalls == 0)
    assert fake.evidence(cell).known(cell) == result
    assert fake.evidence(cell, commit="abd").known(cell) is None
    assert evidence.known(replace(cell, command=(*cell.command, "--viewers"))) is None


async def test_a_kept_result_is_judged_by_the_checks_of_now(fake):
    cell = fake.cell("demo", stalls=0, offload=0.5)
    evidence = fake.evidence(cell)
    assert (await evidence.obtain(cell)).held
    harder = replace(cell, checks=(*cell.checks, Check("offload", ">=", 0.6)))
    assert evidence.known(harder).wrong == ["offload is 0.5, not >= 0.6"]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda path: path.write_text(path.read_text()[:40]),
        lambda path: path.write_text("[]"),
        lambda path: path.write_text('{"cell": "demo"}'),
        lambda path: path.write_text(
            path.read_text().replace('"figures": {', '"figures": 3, "x": {')
        ),
        lambda path: path.unlink(),
    ],
)
async def test_half_a_result_is_none(fake, tmp_path, spoil):
    cell = fake.cell("demo", stalls=0)
    evidence = fake.evidence(cell)
    await evidence.obtain(cell)
    spoil(tmp_path / "evidence" / "demo.json")
    assert evidence.known(cell) is None


async def test_a_program_that_fails_does_not_hold(fake):
    cell = fake.cell("demo", code=3, stalls=0)
    result = await fake.evidence(cell).obtain(cell)
    assert (result.exit_code, result.wrong) == (3, ["its exit code is 3"])


async def test_a_program_that_does_not_end_is_interrupted(fake, tmp_path):
    waiting = "import signal; signal.pause()"
    cell = Cell("stuck", "a fake", ("python", "-I", "-S", "-c", waiting), (), 0.3)
    result = await fake.evidence(cell).obtain(cell)
    assert not result.held
    assert "longer than 0.3 s" in result.wrong[-1]


async def test_an_interrupted_cell_leaves_no_result_and_may_clean_up(fake, tmp_path):
    """Its program gets SIGINT, as from a person's Ctrl-C, for it has programs of its own."""
    clean = tmp_path / "clean"
    text = (
        "import pathlib, signal\n"
        f"def tidy(*_): pathlib.Path({str(clean)!r}).touch(); raise SystemExit(130)\n"
        "signal.signal(signal.SIGINT, tidy)\n"
        'print("ready", flush=True)\n'
        "while True: signal.pause()\n"
    )
    cell = Cell("long", "a fake", ("python", "-I", "-S", "-c", text), (), 20.0)
    evidence = fake.evidence(cell)
    running = asyncio.create_task(evidence.obtain(cell))
    log = tmp_path / "evidence" / "logs" / "long.log"
    async with asyncio.timeout(10):
        while not (log.exists() and "ready" in log.read_text()):  # noqa: ASYNC110 - a program's
            await asyncio.sleep(0.01)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert clean.exists()
    assert evidence.known(cell) is None
    assert not (tmp_path / "evidence" / "long.json").exists()


async def test_a_folder_that_cannot_be_written_is_one_clear_line(fake, tmp_path):
    (tmp_path / "evidence").touch()
    cell = fake.cell("demo", stalls=0)
    with pytest.raises(LabError, match=r"no .* can be kept"):
        await fake.evidence(cell).obtain(cell)


def test_cells_are_selected_by_name_in_their_own_order(fake):
    cells = [fake.cell(name) for name in ("a", "b", "c")]
    evidence = fake.evidence(*cells)
    assert evidence.select([]) == tuple(cells)
    assert evidence.select(["c", "a"]) == (cells[0], cells[2])
    with pytest.raises(LabError, match="no cell 'd'"):
        evidence.select(["a", "d"])


# -- the state of the checkout -------------------------------------------------------------------


@pytest.fixture
def repository(tmp_path):
    root = tmp_path / "checkout"
    root.mkdir()

    def git(*words):
        who = ("-c", "user.name=n", "-c", "user.email=e@example.org")
        subprocess.run(["git", "-C", root, *who, *words], check=True, capture_output=True)

    git("init", "-q")
    (root / "code.py").write_text("1\n")
    git("add", "code.py")
    git("commit", "-q", "-m", "one")
    return root


def test_a_commit_is_its_own_and_changes_make_another_of_it(repository):
    clean = commit_of(repository)
    assert commit_of(repository) == clean
    assert "+" not in clean
    (repository / "code.py").write_text("2\n")
    changed = commit_of(repository)
    assert changed.startswith(f"{clean}+")
    assert commit_of(repository) == changed
    (repository / "code.py").write_text("3\n")
    assert commit_of(repository) not in {clean, changed}
    (repository / "code.py").write_text("1\n")
    assert commit_of(repository) == clean
    (repository / "new.py").touch()
    assert commit_of(repository) != clean


def test_what_is_no_checkout_is_one_clear_line(tmp_path, monkeypatch):
    with pytest.raises(LabError, match=r"state of .* is not known"):
        commit_of(tmp_path)
    monkeypatch.setattr("experiments.evidence._PACKAGE", tmp_path / "experiments")
    with pytest.raises(LabError, match="in a checkout"):
        checkout()


# -- the command ---------------------------------------------------------------------------------


@pytest.fixture
def command(fake, repository, tmp_path, monkeypatch):
    """Runs `toast-lab evidence` over fake cells."""
    monkeypatch.setattr(laboratory, "checkout", lambda: repository)

    def command(cells, *words):
        monkeypatch.setattr(laboratory, "CELLS", tuple(cells))
        before = signal.getsignal(signal.SIGTERM)
        try:
            folder = ("--folder", str(tmp_path / "kept"))
            return CliRunner().invoke(laboratory.cli, ["evidence", *folder, *words])
        finally:
            signal.signal(signal.SIGTERM, before)

    return command


def test_all_is_obtained_once_and_again_only_if_asked(fake, command):
    cells = [fake.cell("a", stalls=0), fake.cell("b", stalls=0)]
    first = command(cells)
    assert first.exit_code == 0, first.output
    assert "a: holds" in first.stderr
    assert first.stdout.count("holds") == 2
    assert command(cells).exit_code == 0
    assert (fake.runs("a"), fake.runs("b")) == (1, 1)
    assert command(cells, "--again", "--only", "b").exit_code == 0
    assert (fake.runs("a"), fake.runs("b")) == (1, 2)


def test_it_fails_if_anything_does_not_hold_and_runs_the_rest_all_the_same(fake, command):
    cells = [fake.cell("a", stalls=1), fake.cell("b", stalls=0)]
    result = command(cells, "--json")
    assert isinstance(result.exception, LabError)
    assert str(result.exception) == "this does not hold: a"
    (line,) = result.stdout.splitlines()
    told = json.loads(line)
    assert told["held"] is False
    assert [(cell["cell"], cell["held"]) for cell in told["cells"]] == [("a", False), ("b", True)]
    assert told["cells"][0]["wrong"] == ["stalls is 1, not 0"]
    assert result.stderr == ""
    # A bad result stands, too.
    assert isinstance(command(cells).exception, LabError)
    assert fake.runs("a") == 1
    assert command(cells, "--only", "b").exit_code == 0


def test_list_runs_nothing_and_tells_what_is_known(fake, command):
    cells = [fake.cell("a", stalls=0), fake.cell("b", stalls=0)]
    command(cells, "--only", "a")
    result = command(cells, "--list")
    assert result.exit_code == 0
    assert "not run" in result.stdout
    assert fake.runs("b") == 0
    told = json.loads(command(cells, "--list", "--json").stdout)
    assert [cell["held"] for cell in told["cells"]] == [True, None]


def test_a_changed_checkout_needs_new_evidence(fake, command, repository):
    cells = [fake.cell("a", stalls=0)]
    command(cells)
    (repository / "code.py").write_text("changed\n")
    command(cells)
    assert fake.runs("a") == 2


def test_an_unknown_cell_is_one_clear_line(fake, command):
    result = command([fake.cell("a")], "--only", "z")
    assert isinstance(result.exception, LabError)
    assert "no cell 'z'" in str(result.exception)
