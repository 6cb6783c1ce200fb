"""Which disk reads what, and when: pure policies behind one protocol."""

from vodserver.scheduling.base import SCHEDULERS, DiskLoad, ReadRequest, Scheduler
from vodserver.scheduling.expected_delay import ExpectedDelay
from vodserver.scheduling.lazy import Lazy
from vodserver.scheduling.matched import Matched
from vodserver.scheduling.service import ServiceModel
from vodserver.scheduling.shortest_queue import ShortestQueue

__all__ = [
    "SCHEDULERS",
    "DiskLoad",
    "ExpectedDelay",
    "Lazy",
    "Matched",
    "ReadRequest",
    "Scheduler",
    "ServiceModel",
    "ShortestQueue",
]
