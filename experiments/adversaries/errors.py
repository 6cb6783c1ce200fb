"""What an adversary cannot make sense of."""

from experiments.errors import LabError

__all__ = ["WireError"]


class WireError(LabError, ValueError):
    """Bytes that are no message of this protocol."""
