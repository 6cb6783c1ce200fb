"""What can be wrong with a film file."""

from toast.common.errors import UsageError

__all__ = ["MediaError"]


class MediaError(UsageError):
    """The file is no film that can be offered or watched; the message says why."""
