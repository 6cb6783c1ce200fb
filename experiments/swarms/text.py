"""Scenarios as TOML and as plain data."""

import dataclasses
import tomllib
from collections.abc import Callable, Mapping
from enum import Enum
from pathlib import Path
from typing import Any, Final

from experiments.bound import Behaviour
from experiments.errors import ScenarioError
from experiments.swarms.scenario import (
    ArrivalKind,
    Arrivals,
    Choking,
    Client,
    Film,
    Link,
    Scenario,
)

__all__ = ["describe", "from_plain", "read_scenario"]

_LONGEST_FILE: Final = 1 << 20
_ENUMS: Final[Mapping[tuple[type, str], type[Enum]]] = {
    (Scenario, "behaviour"): Behaviour,
    (Scenario, "choking"): Choking,
    (Scenario, "client"): Client,
    (Arrivals, "kind"): ArrivalKind,
}


def describe(scenario: Scenario) -> dict[str, Any]:
    """A scenario as plain data: what `from_plain` reads, and JSON can hold. None is left out."""
    plain = _plain(scenario)
    assert isinstance(plain, dict)
    return plain


def read_scenario(path: Path) -> Scenario:
    """The scenario of a TOML file.

    Raises:
        ScenarioError: there is no such file, it is no TOML, or no scenario; the message says where.
    """
    try:
        if path.stat().st_size > _LONGEST_FILE:
            raise ScenarioError(f"{path} is too long for a scenario")
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ScenarioError(f"{path} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ScenarioError(f"{path} is no TOML: {error}") from error
    data.setdefault("name", "".join(c if c.isalnum() or c in "._-" else "-" for c in path.stem))
    return from_plain(data)


def from_plain(data: Mapping[str, Any]) -> Scenario:
    """A scenario from plain data; what is not named has its default.

    Raises:
        ScenarioError: no scenario; the message names the field.
    """
    fields = dict(data)
    for name, kind in (("film", Film), ("arrivals", Arrivals)):
        if name in fields:
            fields[name] = _build(kind, fields[name], f"{name}.")
    if "links" in fields:
        links = fields["links"]
        if not isinstance(links, list | tuple):
            raise ScenarioError("links must be a list of tables: [[links]]")
        fields["links"] = tuple(_build(Link, link, "links.") for link in links)
    scenario: Scenario = _build(Scenario, fields, "")
    return scenario


def _build(kind: type, data: Any, where: str) -> Any:
    if not isinstance(data, Mapping):
        raise ScenarioError(f"{where.rstrip('.')} must be a table")
    known = {field.name: field for field in dataclasses.fields(kind)}
    built: dict[str, Any] = {}
    for name, value in data.items():
        if name not in known:
            choices = ", ".join(known)
            raise ScenarioError(f"{where}{name} is no field of a scenario: there are {choices}")
        built[name] = _value(kind, name, str(known[name].type), value, f"{where}{name}")
    return kind(**built)


def _value(kind: type, name: str, declared: str, value: Any, where: str) -> Any:
    """A value of the declared kind."""
    if dataclasses.is_dataclass(value) or name == "links":
        return value  # built already
    if (enum := _ENUMS.get((kind, name))) is not None:
        try:
            return enum(value)
        except ValueError:
            choices = ", ".join(str(member.value) for member in enum)
            raise ScenarioError(f"{where} is {value!r}: choose one of {choices}") from None
    if name == "times_seconds":
        if not isinstance(value, list | tuple) or not all(_is_number(time) for time in value):
            raise ScenarioError(f"{where} must be a list of numbers")
        return tuple(float(time) for time in value)
    for words, fits, change in _KINDS:
        if any(word in declared for word in words):
            if value is None and "None" in declared:
                return None
            if not fits(value):
                raise ScenarioError(f"{where} is {value!r}, and must be {_NAMES[words]}")
            return change(value)
    raise AssertionError(f"no rule for {where}: {declared}")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_NUMBER, _WHOLE, _BOOL = ("float",), ("int'",), ("bool",)
_TEXT, _TABLE, _FILE = ("<class 'str'>",), ("Mapping",), ("Path",)
_NAMES: Final[Mapping[tuple[str, ...], str]] = {
    _TABLE: "a table",
    _FILE: "the path of a file",
    _NUMBER: "a number",
    _BOOL: "true or false",
    _WHOLE: "a whole number",
    _TEXT: "a text",
}
_KINDS: Final[tuple[tuple[tuple[str, ...], Callable[[Any], bool], Callable[[Any], Any]], ...]] = (
    (_TABLE, lambda value: isinstance(value, Mapping), dict),
    (_FILE, lambda value: isinstance(value, str), Path),
    (_NUMBER, _is_number, float),
    (_BOOL, lambda value: isinstance(value, bool), bool),
    (_WHOLE, lambda value: isinstance(value, int) and not isinstance(value, bool), int),
    (_TEXT, lambda value: isinstance(value, str), str),
)


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        pairs = ((field.name, getattr(value, field.name)) for field in dataclasses.fields(value))
        return {name: _plain(part) for name, part in pairs if part is not None}
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, Enum):
        return value.value
    return str(value) if isinstance(value, Path) else value
