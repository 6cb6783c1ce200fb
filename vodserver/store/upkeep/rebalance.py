"""Moves replicas until the disks are equally full again, as after a disk was added."""

from collections.abc import Callable
from typing import Any

import numpy as np

from vodserver.allocation.rebalance import rebalance_moves
from vodserver.store.upkeep.batch import Step, Tally, run_steps
from vodserver.store.upkeep.targets import arrays_of
from vodserver.store.upkeep.threads import in_thread
from vodserver.store.upkeep.workshop import Workshop

__all__ = ["DEFAULT_TOLERANCE", "rebalance"]

DEFAULT_TOLERANCE = 0.02
"""As a part of a disk: what is not worth a move."""


async def rebalance(
    workshop: Workshop,
    rng: np.random.Generator,
    progress: Callable[[dict[str, Any]], None],
    *,
    tolerance: float = DEFAULT_TOLERANCE,
) -> Tally:
    """Move replicas from fuller disks to emptier ones.

    Stopped, it has done a part of the work, and the next one plans the rest.

    Args:
        workshop: of the store.
        rng: the only source of chance.
        progress: told after each move.
        tolerance: how far from the mean a disk's used part may stay.

    Returns:
        What became of the moves.
    """
    rows = [row for row in workshop.store.disk_rows if workshop.can_take(row)]
    await workshop.count()
    _, capacity = arrays_of(workshop, rows)
    titles = workshop.store.titles()

    def plan() -> list[Step]:
        extents = [(title, extent) for title in titles for extent in title.extents]
        replicas = [(at, disk) for at, (_, extent) in enumerate(extents) for disk in extent.disks]
        numbers = np.array([at for at, _ in replicas], dtype=np.int64)
        disks = np.array([disk for _, disk in replicas], dtype=np.int64)
        sizes = np.array([extents[at][1].size for at, _ in replicas], dtype=np.int64)
        moves = rebalance_moves(numbers, disks, sizes, capacity, tolerance=tolerance, rng=rng)
        return [Step(*extents[move.extent], move.source, move.target) for move in moves]

    steps = await in_thread(plan)

    async def work(step: Step) -> bool:
        if not workshop.can_take(workshop.row(step.target)):
            return False  # it changed since the plan was made; the next plan knows
        return await workshop.move(step.title.id, step.extent.number, step.disk, step.target)

    tally = await run_steps(steps, work, progress)
    await workshop.sweep()
    return tally
