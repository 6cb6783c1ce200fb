"""Simulator beside real swarm: the same scenarios, and how far their offloads are apart. Pure."""

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from experiments.figures.records import Record
from experiments.figures.results import Estimate, estimate

__all__ = ["TIE", "Agreement", "Compared", "Ranking", "compare"]

TIE: Final = 0.01
"""Offloads that are less apart do not make an order: repeats of one run differ by as much."""


@dataclass(frozen=True, slots=True)
class Compared:
    """One scenario in both engines.

    Attributes:
        cell: its name.
        scale: of the figure that it is from.
        simulated: offload over the seeds.
        real: the same.
    """

    cell: str
    scale: str
    simulated: Estimate
    real: Estimate

    @property
    def difference(self) -> float:
        """By how much the simulator is above."""
        return self.simulated.mean - self.real.mean


@dataclass(frozen=True, slots=True)
class Ranking:
    """The pickers of otherwise equal scenarios, best first.

    Attributes:
        case: what they have in common.
        simulated: pickers in the simulator's order.
        real: in the real swarm's.
        is_same: no two of them are clearly (by more than `TIE`) in opposite orders.
    """

    case: str
    simulated: tuple[str, ...]
    real: tuple[str, ...]
    is_same: bool


@dataclass(frozen=True, slots=True)
class Agreement:
    """All that both engines have run."""

    cells: Sequence[Compared]
    rankings: Sequence[Ranking]

    @property
    def worst(self) -> Compared | None:
        """The cell in which they are farthest apart; None if there is none."""
        return max(self.cells, key=lambda cell: abs(cell.difference), default=None)

    def to_dict(self) -> dict[str, Any]:
        """As plain data, for JSON."""
        return {
            "cells": [
                {
                    "cell": cell.cell,
                    "scale": cell.scale,
                    "simulated": round(cell.simulated.mean, 4),
                    "real": round(cell.real.mean, 4),
                    "difference": round(cell.difference, 4),
                }
                for cell in self.cells
            ],
            "worst_difference": self.worst and round(self.worst.difference, 4),
            "rankings": [asdict(ranking) for ranking in self.rankings],
            "rankings_are_same": all(ranking.is_same for ranking in self.rankings),
        }


def compare(records: Iterable[Record]) -> Agreement:
    """What both engines have results for. A run that several figures share counts once."""
    offloads: dict[str, dict[str, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    samples: dict[str, Record] = {}
    for record in records:
        # Seeds are repeats of the same: each engine may have others.
        alike = _without(record, "random_seed")
        samples.setdefault(alike, record)
        offloads[alike][record.engine][record.seed] = record.done.result.offload
    compared: list[tuple[Record, Compared]] = []
    for alike, engines in offloads.items():
        if {"sim", "real"} <= engines.keys():
            sample = samples[alike]
            pair = [estimate(engines[engine].values()) for engine in ("sim", "real")]
            compared.append((sample, Compared(sample.cell, sample.scale, *pair)))
    compared.sort(key=lambda entry: (entry[1].scale, entry[1].cell))
    return Agreement([cell for _, cell in compared], _rankings(compared))


def _rankings(compared: Sequence[tuple[Record, Compared]]) -> list[Ranking]:
    groups: dict[str, dict[str, Compared]] = defaultdict(dict)
    cases: dict[str, str] = {}
    for record, cell in compared:
        alike = _without(record, "random_seed", "picker", "picker_options")
        picker = str(record.done.result.scenario.get("picker"))
        groups[alike][picker] = cell
        words = [value for axis, value in record.axes.items() if axis != "picker"]
        cases[alike] = f"{cell.scale}: {', '.join(words)}"
    found = []
    for alike, cells in groups.items():
        if len(cells) > 1:
            simulated, real = (
                tuple(sorted(cells, key=lambda p, e=engine: -getattr(cells[p], e).mean))  # type: ignore[misc]
                for engine in ("simulated", "real")
            )
            found.append(Ranking(cases[alike], simulated, real, _is_same(list(cells.values()))))
    return found


def _is_same(cells: Sequence[Compared]) -> bool:
    """Whether no two cells are clearly in opposite orders."""
    return not any(
        one.simulated.mean - other.simulated.mean > TIE and other.real.mean - one.real.mean > TIE
        for one in cells
        for other in cells
    )


def _without(record: Record, *names: str) -> str:
    """A scenario but for some fields, as a key; its name is no part of it."""
    plain = {
        name: value
        for name, value in record.done.result.scenario.items()
        if name not in {"name", *names}
    }
    return json.dumps(plain, sort_keys=True)
