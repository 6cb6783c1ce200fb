"""What a build depends on: all of it is in its name."""

import ast
import shutil
from importlib import metadata

import pytest

from experiments.compiled import recipe
from experiments.compiled.recipe import MODULES, ROOT, build_name, path_of, sources
from experiments.errors import LabError


@pytest.fixture
def checkout(tmp_path):
    """A copy of the sources that matter."""
    for path in sources(ROOT):
        copy = tmp_path / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
    return tmp_path


def imported(path):
    """The files of ours that a file imports."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        for name in names:
            for file in (ROOT / f"{path_of(name)}.py", ROOT / path_of(name) / "__init__.py"):
                if name.startswith(("toast", "experiments")) and file.is_file():
                    yield file


def test_the_compiler_sees_no_source_that_is_not_in_the_name():
    waiting, reached = [ROOT / f"{path_of(name)}.py" for name in MODULES], set()
    while waiting:
        file = waiting.pop()
        if file not in reached:
            reached.add(file)
            waiting += imported(file)
    assert len(reached) > len(MODULES)
    assert reached - set(sources(ROOT)) == set()


def test_the_same_sources_have_the_same_name_wherever_they_lie(checkout):
    assert build_name(checkout) == build_name(ROOT)


@pytest.mark.parametrize("module", ["toast.policy.view", "experiments.swarms.scenario"])
def test_a_changed_source_is_another_build_compiled_or_seen(checkout, module):
    with (checkout / f"{path_of(module)}.py").open("a", encoding="utf-8") as file:
        file.write("\n")
    assert build_name(checkout) != build_name(ROOT)


def test_another_python_or_compiler_is_another_build(monkeypatch):
    before = build_name(ROOT)
    monkeypatch.setattr(recipe.metadata, "version", lambda _: "0.1")
    other = build_name(ROOT)
    monkeypatch.setattr(recipe.sys, "version", "3.99")
    assert len({before, other, build_name(ROOT)}) == 3


def test_without_a_compiler_there_is_no_build(monkeypatch):
    def gone(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(recipe.metadata, "version", gone)
    with pytest.raises(LabError, match="mypy is not installed: pip install mypy"):
        build_name(ROOT)


def test_sources_that_cannot_be_read_are_named(tmp_path):
    with pytest.raises(LabError, match=r"__init__\.py cannot be read: No such file"):
        build_name(tmp_path)
