"""A build is made aside and put in its place; what goes wrong is one line, and leaves nothing."""

import sys
from pathlib import Path

import pytest

from experiments.compiled import building
from experiments.compiled.building import make_build, missing_tool
from experiments.compiled.recipe import ROOT, build_name
from experiments.errors import LabError


class FakeSteps:
    """Stands for the compiler's process and the proof."""

    def __init__(self, meanwhile=lambda: None):
        self.commands = []
        self._meanwhile = meanwhile

    def __call__(self, command, log):
        self.commands.append(command)
        if "-m" in command:
            out = Path(command[-1])
            out.mkdir()
            (out / "library.so").touch()
            self._meanwhile()


@pytest.fixture
def steps(monkeypatch):
    monkeypatch.setattr(building, "missing_tool", lambda: None)
    fake = FakeSteps()
    monkeypatch.setattr(building, "_run", fake)
    return fake


def test_a_build_is_made_once_and_proved_to_load(steps, tmp_path):
    folder, said = tmp_path / "run/compiled", []
    build = make_build(folder, say=said.append)
    assert build == folder / build_name(ROOT)
    assert [path.name for path in build.iterdir()] == ["library.so"]
    assert list(folder.iterdir()) == [build]
    assert len(said) == len(steps.commands) == 2
    assert make_build(folder) == build
    assert len(steps.commands) == 2


def test_whoever_is_second_takes_what_the_first_has_made(steps, tmp_path, monkeypatch):
    place = tmp_path / build_name(ROOT)

    def overtaken():
        place.mkdir()
        (place / "of the first").touch()

    monkeypatch.setattr(building, "_run", FakeSteps(overtaken))
    assert make_build(tmp_path) == place
    assert [path.name for path in place.iterdir()] == ["of the first"]
    assert list(tmp_path.iterdir()) == [place]


def test_a_failure_is_one_line_and_its_log_is_kept(monkeypatch, tmp_path):
    monkeypatch.setattr(building, "missing_tool", lambda: None)
    words = "print('a warning'); print('view.py:3: error: no'); raise SystemExit(1)"
    run = building._run
    monkeypatch.setattr(building, "_run", lambda _, log: run([sys.executable, "-c", words], log))
    with pytest.raises(LabError, match=r"it does not compile: view.py:3: error: no \(.*log\)$"):
        make_build(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["failed.log"]
    assert "a warning" in (tmp_path / "failed.log").read_text()


def test_a_folder_that_cannot_be_is_said(steps, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(LabError, match=r"nothing can be built in .*/file: "):
        make_build(tmp_path / "file")


@pytest.mark.parametrize("gone", ["mypyc", "setuptools"])
def test_a_missing_package_is_named(monkeypatch, gone, tmp_path):
    monkeypatch.setattr(building, "find_spec", lambda name: None if name == gone else object())
    assert missing_tool().startswith(f"{gone} is not installed: pip install ")
    with pytest.raises(LabError, match=f"^{gone} is not installed"):
        make_build(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_compiler_is_named(monkeypatch):
    monkeypatch.setattr(building, "find_spec", lambda _: object())
    monkeypatch.setattr(building.sysconfig, "get_config_var", lambda _: "kcc -pthread")
    assert missing_tool() == "there is no C compiler: install kcc"


def test_missing_headers_are_named(monkeypatch, tmp_path):
    monkeypatch.setattr(building, "find_spec", lambda _: object())
    monkeypatch.setattr(building.shutil, "which", lambda _: "/usr/bin/cc")
    monkeypatch.setattr(building.sysconfig, "get_path", lambda _: str(tmp_path))
    assert missing_tool().startswith("Python's headers are not installed")
