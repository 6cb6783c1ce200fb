"""Several processes that serve HTTP on one port, and the one that has the store."""

from vodserver.workers.crew import Crew

__all__ = ["Crew"]
