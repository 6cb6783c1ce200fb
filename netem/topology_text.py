"""A topology from the text of a TOML file; every error names the field. Pure."""

import tomllib
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, Final

from netem.distributions import Distribution
from netem.errors import TopologyError
from netem.presets import PRESETS
from netem.topology import MAX_HOSTS, GilbertElliott, Host, LatencyClass, Topology, Ways
from toast.common.errors import UsageError
from toast.common.units import parse_rate, parse_seconds

__all__ = ["CLASS_FIELDS", "topology_from_toml"]


def topology_from_toml(text: str) -> Topology:
    """Read the format shown at the head of `netem.topology`.

    Raises:
        TopologyError: it is no TOML, or a field is missing, unknown or out of range.
    """
    try:
        top = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise TopologyError(f"the file is not TOML: {error}") from error
    _only(top, "", {"name", "classes", "hosts", "loopback", "seed"})
    classes = _typed(top, "classes", dict, "")
    hosts: list[Host] = []
    for number, entry in enumerate(_typed(top, "hosts", list, ""), start=1):
        where = f"hosts[{number}]"
        if not isinstance(entry, dict):
            raise TopologyError(f"{where} must be a table: write [[hosts]] above it")
        hosts += _hosts(entry, where)
        if len(hosts) > MAX_HOSTS:
            raise TopologyError(f"hosts: at most {MAX_HOSTS}")
    return Topology(
        name=_typed(top, "name", str, ""),
        classes=tuple(_latency_class(name, entry) for name, entry in classes.items()),
        hosts=tuple(hosts),
        loopback=_typed(top, "loopback", bool, "") if "loopback" in top else False,
        seed=_whole(top["seed"], "seed") if "seed" in top else None,
    )


def _latency_class(name: str, entry: object) -> LatencyClass:
    where = f"classes.{name}"
    if not isinstance(entry, dict):
        raise TopologyError(f"{where} must be a table: write [classes.{name}] above it")
    _only(entry, f"{where}.", {"preset", *CLASS_FIELDS})
    values = dict(entry)
    preset = values.pop("preset", None)
    if preset is not None:
        if not isinstance(preset, str) or preset not in PRESETS:
            raise TopologyError(
                f"{where}.preset is {preset!r}, and none of {', '.join(sorted(PRESETS))}"
            )
        values = {**PRESETS[preset], **values}
    made: dict[str, Any] = {}
    for field, value in values.items():
        attribute, read = CLASS_FIELDS[field]
        made[attribute] = read(value, f"{where}.{field}")
    if isinstance(made.get("loss"), GilbertElliott):
        made["bursts"] = made.pop("loss")
    return LatencyClass(name=name, **made)


def _seconds(value: object, where: str) -> float:
    return _measure(value, where, parse_seconds)


def _rate(value: object, where: str) -> float:
    return _measure(value, where, parse_rate)


def _measure(value: object, where: str, parse: Callable[[str], float]) -> float:
    if not isinstance(value, str):
        raise TopologyError(f"{where} needs a unit: write it in quotes, such as '4ms'")
    try:
        return float(parse(value))
    except UsageError as error:
        raise TopologyError(f"{where}: {error}") from error


def _share(value: object, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TopologyError(f"{where} must be a fraction, such as 0.01 for 1 %")
    return float(value)


def _whole(value: object, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TopologyError(f"{where} must be a whole number")
    return value


def _loss(value: object, where: str) -> float | GilbertElliott:
    if not isinstance(value, dict):
        return _share(value, where)
    _only(value, f"{where}.", {"enter", "leave", "bad", "good"})
    for field in ("enter", "leave"):
        if field not in value:
            raise TopologyError(f"{where}.{field} is missing")
    return GilbertElliott(**{name: _share(each, f"{where}.{name}") for name, each in value.items()})


def _distribution(value: object, where: str) -> Distribution:
    return Distribution(_one_of(value, where, Distribution))


def _ways(value: object, where: str) -> Ways:
    return Ways(_one_of(value, where, Ways))


def _one_of(value: object, where: str, kind: type[StrEnum]) -> str:
    known = [each.value for each in kind]
    if not isinstance(value, str) or value not in known:
        raise TopologyError(f"{where} is {value!r}, and none of {', '.join(known)}")
    return value


CLASS_FIELDS: Final[Mapping[str, tuple[str, Callable[[object, str], Any]]]] = {
    "delay": ("delay_seconds", _seconds),
    "jitter": ("jitter_seconds", _seconds),
    "distribution": ("distribution", _distribution),
    "correlation": ("correlation", _share),
    "loss": ("loss", _loss),
    "duplicate": ("duplicate", _share),
    "corrupt": ("corrupt", _share),
    "reorder": ("reorder", _share),
    "reorder_gap": ("reorder_gap", _whole),
    "rate": ("rate", _rate),
    "download": ("download", _rate),
    "queue": ("queue_seconds", _seconds),
    "limit": ("limit_packets", _whole),
    "ways": ("ways", _ways),
}
"""Of a class, as files name them: the attribute of `LatencyClass`, and who reads it."""


def _hosts(entry: Mapping[str, Any], where: str) -> list[Host]:
    _only(entry, f"{where}.", {"name", "class", "count"})
    name = _typed(entry, "name", str, f"{where}.")
    latency_class = _typed(entry, "class", str, f"{where}.")
    if "count" not in entry:
        return [Host(name, latency_class)]
    count = entry["count"]
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MAX_HOSTS:
        raise TopologyError(f"{where}.count must be a whole number from 1 to {MAX_HOSTS}")
    return [Host(f"{name}-{number}", latency_class) for number in range(1, count + 1)]


def _typed(table: Mapping[str, Any], field: str, kind: type, where: str) -> Any:
    if field not in table:
        raise TopologyError(f"{where}{field} is missing")
    if not isinstance(table[field], kind):
        names: dict[type, str] = {
            str: "text",
            bool: "true or false",
            list: "a list of tables",
            dict: "a table",
        }
        raise TopologyError(f"{where}{field} must be {names[kind]}")
    return table[field]


def _only(table: Mapping[str, Any], where: str, known: set[str]) -> None:
    for field in table:
        if field not in known:
            raise TopologyError(f"{where}{field} is unknown; known are {', '.join(sorted(known))}")
