"""Where each extent of a film goes: pure policies behind one protocol."""

from vodserver.allocation.base import ALLOCATIONS, Allocation
from vodserver.allocation.naive import Naive
from vodserver.allocation.rda import Rda

__all__ = ["ALLOCATIONS", "Allocation", "Naive", "Rda"]
