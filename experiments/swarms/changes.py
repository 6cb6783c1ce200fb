"""Fields of a scenario changed by words, such as `picker=beta` or `film.duration_seconds=60`."""

import tomllib
from collections.abc import Sequence
from typing import Any

from experiments.errors import ScenarioError
from experiments.swarms.scenario import Scenario
from experiments.swarms.text import describe, from_plain

__all__ = ["with_changes"]

_POLICIES = ("picker", "horizon", "neighbours")


def with_changes(scenario: Scenario, changes: Sequence[str]) -> Scenario:
    """The same scenario but for some fields.

    A value is written as in TOML; a text needs no quotes. "none" takes a field's value away, and
    it has its default then. A field of `links` is set in every class. Another policy begins with
    its own parameters; the one that is there keeps those it has.

    Raises:
        ScenarioError: no such field, or not a value of it; the message names it.
    """
    plain = describe(scenario)
    for change in changes:
        field, equals, text = change.partition("=")
        if not equals:
            raise ScenarioError(f"'{change}' changes nothing: write FIELD=VALUE")
        field = field.strip()
        if field in _POLICIES and text.strip().strip("\"'") != plain.get(field):
            plain.pop(f"{field}_options", None)
        *tables, name = field.split(".")
        for table in _inside([plain], tables):
            if text.strip() == "none":
                table.pop(name, None)
            else:
                table[name] = _value(text)
    return from_plain(plain)


def _inside(places: list[dict[str, Any]], tables: Sequence[str]) -> list[dict[str, Any]]:
    """The tables of these names inside the places; a list stands for each of its entries."""
    for table in tables:
        inner: list[dict[str, Any]] = []
        for place in places:
            found = place.setdefault(table, {})
            entries = found if isinstance(found, list) else [found]
            if not all(isinstance(entry, dict) for entry in entries):
                raise ScenarioError(f"{table} is no table: it has no fields")
            inner += entries
        places = inner
    return places


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text.strip()
