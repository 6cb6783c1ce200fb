"""Which replica to read: pure policies behind one protocol."""

from vodserver.scheduling.base import SCHEDULERS, Scheduler
from vodserver.scheduling.shortest_queue import ShortestQueue

__all__ = ["SCHEDULERS", "Scheduler", "ShortestQueue"]
