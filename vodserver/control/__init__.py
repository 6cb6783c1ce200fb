"""One store, one process: how commands reach the process that has the store.

A command names an operation and its arguments. If a server runs on the store, the operation runs
there, over a socket in the store's directory; if not, the command opens the store and runs it.
"""

from vodserver.control import titles, upkeep  # noqa: F401 - their operations join the registry
from vodserver.control.client import run_operation
from vodserver.control.registry import OPERATIONS, Operation, Progress, operation
from vodserver.control.server import ControlServer

__all__ = [
    "OPERATIONS",
    "ControlServer",
    "Operation",
    "Progress",
    "operation",
    "run_operation",
]
