"""Many films in one process: the set-top box. Queue, quotas, schedules, state, REST API."""

from toast.daemon.errors import DaemonError
from toast.daemon.settings import DaemonSettings, RuleSettings

__all__ = ["DaemonError", "DaemonSettings", "RuleSettings"]
