"""The one thing that a trial and its reader must agree on."""

from typing import Final

__all__ = ["MARK"]

MARK: Final = "netem-trial:"
"""Stands before the JSON of a result: a kernel's console carries other lines, too."""
