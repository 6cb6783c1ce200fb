"""Which replica to read: pure policies behind one protocol."""

from vodserver.scheduling.base import SCHEDULERS, Scheduler, scheduler_named
from vodserver.scheduling.shortest_queue import ShortestQueue

__all__ = ["SCHEDULERS", "Scheduler", "ShortestQueue", "scheduler_named"]
