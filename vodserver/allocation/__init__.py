"""Where each extent of a film goes: pure policies behind one protocol."""

from vodserver.allocation.base import ALLOCATIONS, Allocation, replacement, with_copies
from vodserver.allocation.naive import Naive
from vodserver.allocation.raid0 import Raid0
from vodserver.allocation.raid1 import Raid1
from vodserver.allocation.random import Random
from vodserver.allocation.rda import Rda, Rda3
from vodserver.allocation.rebalance import Move, rebalance_moves

__all__ = [
    "ALLOCATIONS",
    "Allocation",
    "Move",
    "Naive",
    "Raid0",
    "Raid1",
    "Random",
    "Rda",
    "Rda3",
    "rebalance_moves",
    "replacement",
    "with_copies",
]
