"""The compiled simulator, and the plain one: the same results, byte for byte."""

import json
import subprocess
import sys

import pytest

from experiments.compiled.building import make_build, missing_tool
from experiments.compiled.loading import BUILDS, ENVIRONMENT, environment
from experiments.compiled.recipe import ROOT, build_name

pytestmark = [pytest.mark.slow, pytest.mark.lab, pytest.mark.timeout(1800)]

COSTS = ("wall_seconds", "cpu_seconds", "peak_memory_bytes", "compiled")
SCENARIOS = {
    "hybrid": ("picker=hybrid", "links.upload_bps=1e6"),
    "beta": ("picker=beta", "behaviour=seeding"),
    "rarest-first": ("picker=rarest-first", "behaviour=download-only", "choking=seed"),
    "in-order": ("picker=in-order", "buffer_fraction=0.4", "origin_rate_bps=20e6"),
}


@pytest.fixture(scope="module")
def build(tmp_path_factory, full):
    """One that is there; else, since it takes minutes, with --full alone, one made for this."""
    there = ROOT / BUILDS / build_name(ROOT)
    if there.is_dir():
        return there
    if (tool := missing_tool()) is not None:
        pytest.skip(tool)
    if not full:
        pytest.skip("nothing is compiled here: toast-lab compile, or pytest --full")
    return make_build(tmp_path_factory.mktemp("builds"))


def simulate(changes, build=None):
    """The result, told as JSON by the command that people use."""
    words = [word for change in changes for word in ("--set", change)]
    command = ["experiments.cli", "swarm", "--scale", "quick", *words, "--json"]
    with environment({ENVIRONMENT: str(build)} if build else {}):
        done = subprocess.run(
            [sys.executable, "-m", *command],
            capture_output=True,
            text=True,
            check=False,
            timeout=600,
        )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    return {name: result.pop(name) for name in COSTS}, json.dumps(result)


@pytest.mark.parametrize("name", SCENARIOS)
def test_results_are_the_same(build, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where nothing is compiled
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    plain_costs, plain = simulate(SCENARIOS[name])
    costs, compiled = simulate(SCENARIOS[name], build)
    assert (plain_costs["compiled"], costs["compiled"]) == (False, True)
    assert compiled == plain
