"""Laws of the house that neither linter nor type checker knows."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PACKAGES = PROJECT["tool"]["importlinter"]["root_packages"]
MOST_LINES = 500
MODULES = sorted(
    file
    for folder in (*PACKAGES, "tests", "benchmarks", "docs")
    for file in (ROOT / folder).rglob("*.py")
)
SOURCES = [file for file in MODULES if file.relative_to(ROOT).parts[0] in PACKAGES]


def relative(file):
    return str(file.relative_to(ROOT))


def test_there_is_something_to_check():
    assert len(SOURCES) > 50


def lines_of(file):
    return len(file.read_text("utf-8").splitlines())


def test_a_module_can_be_read_in_one_sitting():
    assert {relative(file): lines_of(file) for file in MODULES if lines_of(file) > MOST_LINES} == {}


def test_half_of_the_modules_are_short():
    lengths = sorted(lines_of(file) for file in SOURCES)
    assert lengths[len(lengths) // 2] <= 180


@pytest.mark.parametrize("folder", sorted({file.parent for file in SOURCES}), ids=relative)
def test_every_folder_of_code_is_a_package_that_says_what_it_is(folder):
    init = folder / "__init__.py"
    assert init.exists()
    assert ast.get_docstring(ast.parse(init.read_text("utf-8")))


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_that_others_import_ships_its_types_and_is_installed(package):
    assert (ROOT / package / "py.typed").exists()
    assert f"{package}*" in PROJECT["tool"]["setuptools"]["packages"]["find"]["include"]


def test_errors_stand_in_one_file_per_package():
    """Who handles errors finds all of a package's in its errors.py."""
    strays = [
        f"{relative(file)}: {node.name}"
        for file in SOURCES
        if file.name != "errors.py"
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.ClassDef)
        and any(re.search(r"(Error|Exception)$", ast.unparse(base)) for base in node.bases)
    ]
    assert strays == []


def test_chance_is_handed_in():
    """A run can be repeated only if nobody draws from a generator that belongs to all."""
    hidden = re.compile(
        r"((np|numpy)\.random\.(?!default_rng$|Generator$)|random\.[a-z]+$|secrets\.choice$)"
    )
    strays = [
        f"{relative(file)}:{node.lineno}: {ast.unparse(node.func)}"
        for file in SOURCES
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.Call) and hidden.match(ast.unparse(node.func))
    ]
    assert strays == []


def test_every_ignored_rule_has_a_reason():
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    ignored = re.search(r"^ignore = \[\n(.*?)^\]", text, re.MULTILINE | re.DOTALL)[1]
    assert [line for line in ignored.splitlines() if "#" not in line] == []
