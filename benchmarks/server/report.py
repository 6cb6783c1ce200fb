"""From runs to figures: medians over rounds, ratios with their spread, and the goals."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from rich.table import Table
from server.load import Run

__all__ = ["OURS", "Cell", "Goal", "Ratio", "Runs", "figures", "goals", "label", "ratio", "table"]

OURS: Final = "ours"

Cell = tuple[int, int]
"""Bytes of a range, and connections."""

Runs = Mapping[Cell, Mapping[str, Sequence[Run]]]
"""Of each cell and server, one run per round."""

_LARGE_BYTES: Final = 256 * 1024
_SMALL_BYTES: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class Ratio:
    """Ours over nginx's in the same round: median, least and most over the rounds."""

    median: float
    least: float
    most: float

    def __str__(self) -> str:
        if self.least == self.most:
            return f"{self.median:.2f}"
        return f"{self.median:.2f} ({self.least:.2f}..{self.most:.2f})"


@dataclass(frozen=True, slots=True)
class Goal:
    """A goal, and the worst that was measured for it over all connections and configurations."""

    name: str
    limit: float
    at_least: bool
    value: float

    @property
    def reached(self) -> bool:
        """Whether the worst value is within the limit."""
        return self.value >= self.limit if self.at_least else self.value <= self.limit

    def __str__(self) -> str:
        sign = ">=" if self.at_least else "<="
        verdict = "reached" if self.reached else "MISSED"
        return f"{verdict}: {self.name} {sign} {self.limit:g} x nginx: {self.value:.2f} at worst"


def label(size: int) -> str:
    """A size as it stands in names: 64k, 1m."""
    return f"{size >> 20}m" if size % (1 << 20) == 0 else f"{size >> 10}k"


def ratio(ours: Sequence[Run], theirs: Sequence[Run], of: Callable[[Run], float]) -> Ratio:
    """Compare round by round, so that what else the machine does hits both.

    Args:
        ours: one run per round.
        theirs: of the same rounds.
        of: the quantity.
    """
    values = [of(a) / of(b) for a, b in zip(ours, theirs, strict=True)]
    return Ratio(statistics.median(values), min(values), max(values))


def _rate(run: Run) -> float:
    return run.rate


def _cpu(run: Run) -> float:
    return run.cpu


def _p99(run: Run) -> float:
    return run.p99


def _rivals(servers: Mapping[str, Sequence[Run]]) -> list[str]:
    return [name for name in servers if name != OURS] if OURS in servers else []


def _is_valid(servers: Mapping[str, Sequence[Run]]) -> bool:
    return all(run.errors == 0 for runs in servers.values() for run in runs)


def goals(runs: Runs) -> list[Goal]:
    """The goals that the cells allow a verdict on; cells with errors allow none."""

    def worst(
        cells: Callable[[int], bool],
        of: Callable[[Run], float],
        pick: Callable[[list[float]], float],
    ) -> float | None:
        values = [
            ratio(servers[OURS], servers[rival], of).median
            for (size, _), servers in runs.items()
            if cells(size) and _is_valid(servers)
            for rival in _rivals(servers)
        ]
        return pick(values) if values else None

    wanted = [
        ("throughput at 256 KiB and more", 1.0, True, lambda size: size >= _LARGE_BYTES, _rate),
        ("throughput at 64 KiB", 0.5, True, lambda size: size == _SMALL_BYTES, _rate),
        ("p99 latency", 2.0, False, lambda _: True, _p99),
    ]
    found = []
    for name, limit, at_least, cells, of in wanted:
        value = worst(cells, of, min if at_least else max)
        if value is not None:
            found.append(Goal(name, limit, at_least, value))
    return found


def figures(runs: Runs) -> dict[str, float | bool | int]:
    """The figures of a comparison, by names that say what, size and connections.

    `throughput_ratio_256k_c64` is ours over nginx's best configuration; other configurations stand
    in the name: `throughput_ratio_default_256k_c64`. `..._256k_min` is the worst of a size over all
    connections and configurations, `..._default_256k_min` over all connections. A cell with errors
    gives no ratio.
    """
    found: dict[str, float | bool | int] = {
        "invalid_cells": sum(not _is_valid(servers) for servers in runs.values())
    }
    worst: dict[str, list[float]] = {}
    for (size, connections), servers in runs.items():
        where = f"{label(size)}_c{connections}"
        for name, rounds in servers.items():
            found[f"{name}_mb_per_second_{where}"] = round(_median(rounds, _rate) / 1e6, 1)
            found[f"{name}_cpu_seconds_per_gb_{where}"] = round(_median(rounds, _cpu), 4)
            found[f"{name}_p99_ms_{where}"] = round(_median(rounds, _p99) * 1e3, 3)
        if not _is_valid(servers):
            continue
        for rival in _rivals(servers):
            tag = "" if rival == "best" else f"{rival}_"
            for what, of in (("throughput", _rate), ("cpu", _cpu), ("p99", _p99)):
                compared = ratio(servers[OURS], servers[rival], of)
                found[f"{what}_ratio_{tag}{where}"] = round(compared.median, 3)
                for kind in (label(size), f"{rival}_{label(size)}"):
                    worst.setdefault(f"{what}_ratio_{kind}", []).append(compared.median)
    for name, values in worst.items():
        if name.startswith("throughput"):
            found[f"{name}_min"] = round(min(values), 3)
        else:
            found[f"{name}_max"] = round(max(values), 3)
    for goal in goals(runs):
        key = goal.name.replace(" ", "_").replace("_KiB", "k").replace("_and_more", "_up")
        found[f"reached_{key}"] = goal.reached
    return found


def table(runs: Runs) -> Table:
    """The comparison for people: medians, and ratios of ours with their spread."""
    columns = ["range", "conns", "server", "req/s", "MB/s", "CPU s/GB", "p50 ms", "p99 ms"]
    columns += ["cores busy", "ours/it MB/s", "ours/it p99"]
    shown = Table(*columns, title="random ranges of a cached film, medians over rounds")
    for column in shown.columns[3:]:
        column.justify = "right"
        column.no_wrap = True
    for (size, connections), servers in runs.items():
        for place, (name, rounds) in enumerate(servers.items()):
            compared = ["", ""]
            if errors := sum(run.errors for run in rounds):
                compared = [f"{errors} errors", "invalid"]
            elif name in _rivals(servers) and _is_valid(servers):
                compared = [str(ratio(servers[OURS], rounds, of)) for of in (_rate, _p99)]
            shown.add_row(
                label(size) if place == 0 else "",
                str(connections) if place == 0 else "",
                name,
                f"{_median(rounds, lambda run: run.requests):,.0f}",
                f"{_median(rounds, _rate) / 1e6:,.0f}",
                f"{_median(rounds, _cpu):.3f}",
                f"{_median(rounds, lambda run: run.p50) * 1e3:.2f}",
                f"{_median(rounds, _p99) * 1e3:.2f}",
                f"{_median(rounds, lambda run: run.server_busy):.2f}"
                f" / {_median(rounds, lambda run: run.load_busy):.2f}",
                *compared,
                end_section=place == len(servers) - 1,
            )
    return shown


def _median(rounds: Sequence[Run], of: Callable[[Run], float]) -> float:
    return statistics.median(of(run) for run in rounds)
