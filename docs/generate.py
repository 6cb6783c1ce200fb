"""Write docs/cli.md, docs/settings.md and docs/scenario.md from the programs themselves.

    .venv/bin/python docs/generate.py

`tests/test_docs.py` fails while a committed page is not what this writes.
"""  # noqa: INP001  # a script beside the pages that it writes, no package

import ast
import dataclasses
import enum
import importlib
import itertools
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import click

ROOT: Final = Path(__file__).parents[1]
WIDTH: Final = 80
"""Columns of the help texts: fixed, so that the page does not depend on anyone's terminal."""

PACKAGES: Final = {
    "toast": "The viewer: `toast`",
    "vodserver": "The VoD server: `vodserver`",
    "tracker": "The tracker: `toast-tracker`",
    "netem": "Emulated networks: `toast-netem`",
    "experiments": "The laboratory: `toast-lab`",
}

# How names end, and what that says of the number. Longer endings are tried first.
UNITS: Final = {
    "seconds": "seconds",
    "ms": "milliseconds",
    "bytes": "bytes",
    "rate": "bytes/second",
    "bps": "bits/second",
    "upload": "bytes/second",
    "intervals": "intervals",
    "share": "of 1",
    "fraction": "of the whole",
    "factor": "times",
    "ratio": "times",
}

_CLI_HEAD: Final = """\
# Command lines

What each program says of itself with `--help`. `docs/generate.py` writes this page: change the
programs, then run it.

All five keep to the same rules. Exit code 0 means success; 1 that something failed; 2 wrong usage
or unusable input; 130 interrupted. An error is one line on standard error. With `--json`, standard
output carries JSON only.

Values with a unit are written as people write them:

| kind | examples | |
|---|---|---|
| rate | `2Mbps`, `250kB/s` | bits or bytes must be said; a bare number is refused |
| seconds | `7.5`, `90s`, `15min`, `1:02:03` | a bare number is seconds |"""

_SETTINGS_HEAD: Final = """\
# Settings

Every setting of every program, with its default. `docs/generate.py` writes this page from the
settings dataclasses: change those, then run it. [The command lines](cli.md) take their defaults
from here; what has no option there is set where the program is built into another.

Sizes are bytes, rates bytes per second, times seconds. The end of a name says which."""


# -- command lines ---------------------------------------------------------------------------------


def programs() -> dict[str, click.Group]:
    """Every console script of the project and its click group, in the order of pyproject.toml."""
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["scripts"]
    return {name: _group_in(entry.split(":")[0]) for name, entry in scripts.items()}


def _group_in(module: str) -> click.Group:
    values = vars(importlib.import_module(module)).values()
    (group,) = (value for value in values if isinstance(value, click.Group))
    return group


def help_texts(
    name: str, command: click.Command, parent: click.Context | None = None
) -> Iterator[tuple[str, str]]:
    """(command path, help text) of a command and of all commands under it."""
    context = click.Context(
        command, parent=parent, info_name=name, terminal_width=WIDTH, max_content_width=WIDTH
    )
    yield context.command_path, command.get_help(context)
    if isinstance(command, click.Group):
        for below in command.list_commands(context):
            found = command.get_command(context, below)
            assert found is not None, "a group knows the commands that it lists"
            yield from help_texts(below, found, context)


def cli_page() -> str:
    """docs/cli.md."""
    parts = [_CLI_HEAD]
    for program, group in programs().items():
        for path, text in help_texts(program, group):
            parts.append(f"{'##' if path == program else '###'} {path}")
            parts.append(f"```\n{text.rstrip()}\n```")
    return "\n\n".join(parts) + "\n"


# -- settings --------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, slots=True)
class Setting:
    """One field of a settings dataclass.

    Attributes:
        name: its name.
        kind: its annotation, as written.
        default: as the page shows it.
        meaning: its attribute docstring on one line; empty where it has none.
    """

    name: str
    kind: str
    default: str
    meaning: str

    @property
    def unit(self) -> str:
        """What the end of its name says; empty if that is nothing."""
        return UNITS.get(self.name.rpartition("_")[2], "")


@dataclasses.dataclass(frozen=True, slots=True)
class SettingsClass:
    """A settings dataclass: its name, module, the first line of its docstring, and its fields."""

    name: str
    module: str
    summary: str
    settings: tuple[Setting, ...]


def settings_classes(package: str) -> list[SettingsClass]:
    """Every class of a package whose name ends in Settings, by module."""
    found = []
    for file in sorted((ROOT / package).rglob("*.py")):
        for node in ast.parse(file.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef) and node.name.endswith("Settings"):
                module = ".".join(file.relative_to(ROOT).with_suffix("").parts)
                found.append(_read_class(node, module))
    return found


def _read_class(node: ast.ClassDef, module: str) -> SettingsClass:
    made = getattr(importlib.import_module(module), node.name)
    fields = {field.name: field for field in dataclasses.fields(made)}
    settings = []
    for place, line in enumerate(node.body):
        if not isinstance(line, ast.AnnAssign) or not isinstance(line.target, ast.Name):
            continue
        after = node.body[place + 1] if place + 1 < len(node.body) else None
        name = line.target.id
        settings.append(
            Setting(name, ast.unparse(line.annotation), _default(fields[name]), _docstring(after))
        )
    summary = (ast.get_docstring(node) or "").partition("\n\n")[0]
    return SettingsClass(node.name, module, " ".join(summary.split()), tuple(settings))


def _docstring(node: ast.stmt | None) -> str:
    """The text of an attribute docstring (a string that stands behind the field), on one line."""
    if (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    ):
        return " ".join(node.value.value.split())
    return ""


def _default(field: "dataclasses.Field[Any]") -> str:
    if field.default_factory is not dataclasses.MISSING:
        return _shown(field.default_factory())
    if field.default is dataclasses.MISSING:
        return "must be given"
    return _shown(field.default)


def _shown(value: Any) -> str:
    if dataclasses.is_dataclass(value):
        name = type(value).__name__
        return f"[{name}](#{name.lower()})"
    if isinstance(value, tuple) and value:
        return ", ".join(_shown(entry) for entry in value)
    if value is None or value in ((), {}):
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, enum.Enum):
        value = value.value
    if isinstance(value, float):
        return f"{value:.10g}"
    return f"`{value}`" if isinstance(value, str | Path) else str(value)


def settings_page() -> str:
    """docs/settings.md."""
    parts = [_SETTINGS_HEAD]
    for package, title in PACKAGES.items():
        classes = settings_classes(package)
        if classes:
            parts.append(f"## {title}")
        for each in classes:
            parts += [f"### {each.name}", f"`{each.module}`. {each.summary}", _table(each)]
    return "\n\n".join(parts) + "\n"


def _table(each: SettingsClass) -> str:
    rows = ["| setting | unit | default | meaning |", "|---|---|---|---|"]
    for setting in each.settings:
        meaning = setting.meaning.replace("|", "\\|").replace("<", "&lt;")
        rows.append(f"| `{setting.name}` | {setting.unit} | {setting.default} | {meaning} |")
    return "\n".join(rows)


# -- scenarios -------------------------------------------------------------------------------------

_SCENARIO_HEAD: Final = """\
# Fields of a scenario

A scenario is a TOML file ([an example](swarms.md#a-scenario)). What it does not name has its
default. `docs/generate.py` writes this page from `experiments/swarms/scenario.py`: change that,
then run it.

Bit rates are bits per second, sizes bytes, times seconds. The end of a name says which."""

_TABLES: Final = {
    "Scenario": "The file itself",
    "Film": "`[film]`",
    "Arrivals": "`[arrivals]`",
    "Link": "`[[links]]`, once for each class",
}
_CHOICES: Final = {
    "ArrivalKind": "`arrivals.kind`",
    "Behaviour": "`behaviour`",
    "Choking": "`choking`",
    "Client": "`client`",
}


def scenario_page() -> str:
    """docs/scenario.md."""
    found = {}
    for module in ("experiments.swarms.scenario", "experiments.bound"):
        file = ROOT / f"{module.replace('.', '/')}.py"
        for node in ast.parse(file.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef):
                found[node.name] = (node, module)
    parts = [_SCENARIO_HEAD]
    for name, where in _TABLES.items():
        each = _read_class(*found[name])
        parts += [f"## {name}", f"{where}. {each.summary}", _table(each)]
    for name, title in _CHOICES.items():
        node = found[name][0]
        rows = [f"## The choices of {title}", "", "| | |", "|---|---|"]
        for line, after in itertools.pairwise(node.body):
            if isinstance(line, ast.Assign):
                rows.append(f"| `{ast.literal_eval(line.value)}` | {_docstring(after)} |")
        parts.append("\n".join(rows))
    return "\n\n".join(parts) + "\n"


PAGES: Final = {
    "docs/cli.md": cli_page,
    "docs/settings.md": settings_page,
    "docs/scenario.md": scenario_page,
}


if __name__ == "__main__":
    for page, make in PAGES.items():
        (ROOT / page).write_text(make(), encoding="utf-8")
        sys.stdout.write(f"{page}\n")
