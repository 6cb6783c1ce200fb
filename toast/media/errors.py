"""What can be wrong with a film file, and with what lies beside it."""

from toast.common.errors import ToastError, UsageError

__all__ = ["MediaError", "SubtitleError"]


class MediaError(UsageError):
    """The file is no film that can be offered or watched; the message says why."""


class SubtitleError(ToastError):
    """A file of subtitles is of no use."""
