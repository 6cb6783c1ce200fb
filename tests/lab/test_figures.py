"""Every figure of the source, simulated in small by the command that people use; twice."""

import json
import subprocess
import sys

import pytest

from experiments.figures.catalog import FIGURES

pytestmark = [pytest.mark.slow, pytest.mark.lab, pytest.mark.timeout(600)]


def make_all(folder):
    """Runs the command; returns what it tells of each figure."""
    command = [sys.executable, "-m", "experiments.cli", "figure", "all", "--scale", "quick"]
    done = subprocess.run(
        [*command, "--seeds", "1", "--folder", str(folder), "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_all_figures_are_made_and_what_was_made_is_not_made_again(tmp_path):
    told = make_all(tmp_path)

    assert [figure["figure"] for figure in told] == list(FIGURES)
    for figure in told:
        assert all(cell["seeds"] == [1] for cell in figure["cells"]), figure["figure"]
        assert all(claim["words"] for claim in figure["claims"]), figure["figure"]
    pictures = sorted(path.name for path in tmp_path.rglob("*.png"))
    assert pictures == sorted(f"figure-{name}-sim-quick.png" for name in FIGURES)

    runs = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*/sim-quick-*.json")}
    assert make_all(tmp_path) == told
    assert {path: path.stat().st_mtime_ns for path in tmp_path.glob("*/sim-quick-*.json")} == runs
