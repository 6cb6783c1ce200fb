"""What can be wrong with a choice of policy."""

from toast.common.errors import UsageError

__all__ = ["PolicyError"]


class PolicyError(UsageError):
    """A policy of that name does not exist, or does not take these parameters."""
