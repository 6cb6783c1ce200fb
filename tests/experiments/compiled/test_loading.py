"""From where a process takes the simulator: a build that fits, or the sources."""

import os
import sys

import pytest

from experiments.compiled import loading
from experiments.compiled.loading import environment, is_compiled, load, variables
from experiments.compiled.recipe import MODULES, ROOT, SUFFIX, build_name
from experiments.sim import world


@pytest.fixture
def build(tmp_path):
    """The folder of a build of these sources; there is nothing in it."""
    folder = tmp_path / build_name(ROOT)
    folder.mkdir()
    return folder


@pytest.fixture
def untouched(monkeypatch):
    """A process that has loaded nothing of the simulator yet."""
    for name in MODULES:
        monkeypatch.delitem(sys.modules, name, raising=False)
    finders = list(sys.meta_path)
    monkeypatch.setattr(sys, "meta_path", finders)
    return finders


def test_processes_are_told_of_the_build_of_these_sources(build):
    said = []
    assert variables(said.append, build.parent) == {loading.ENVIRONMENT: str(build)}
    assert said == []


def test_without_one_they_are_told_nothing_and_why_is_said(tmp_path):
    (tmp_path / "an-older-one").mkdir()
    said = []
    assert variables(said.append, tmp_path) == {}
    assert said == [
        "simulated in plain Python: there is no build of these sources: toast-lab compile makes one"
    ]


def test_compiled_modules_come_from_the_build_and_all_others_do_not(build, untouched):
    assert load(build)
    found = {name: untouched[0].find_spec(name, None) for name in (*MODULES, "toast.viewer")}
    assert found.pop("toast.viewer") is None
    assert {spec.origin for spec in found.values()} >= {
        str(build / f"experiments/sim/world{SUFFIX}"),
        str(build / f"toast/policy/pickers/hybrid{SUFFIX}"),
    }


def test_a_build_of_other_sources_is_not_loaded(tmp_path, untouched):
    assert not load(tmp_path)
    assert not load(tmp_path / build_name(ROOT))  # it is gone


def test_what_is_loaded_already_is_not_mixed_with_a_build(build):
    before = list(sys.meta_path)
    assert not load(build)
    assert sys.meta_path == before
    assert not is_compiled(world)


def test_the_environment_is_that_before(monkeypatch):
    monkeypatch.setenv("TOAST_LAB_TEST", "before")
    with environment({"TOAST_LAB_TEST": "within", loading.ENVIRONMENT: "within"}):
        assert os.environ["TOAST_LAB_TEST"] == os.environ[loading.ENVIRONMENT] == "within"
    assert os.environ["TOAST_LAB_TEST"] == "before"
    assert loading.ENVIRONMENT not in os.environ
