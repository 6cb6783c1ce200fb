"""What can be wrong with a film file, and with what lies beside it."""

from toast.common.errors import ToastError, UsageError

__all__ = ["MediaError", "NotHereError", "PictureError", "SubtitleError"]


class MediaError(UsageError):
    """The file is no film that can be offered or watched; the message says why."""


class PictureError(ToastError):
    """No picture can be had from a film."""


class NotHereError(PictureError):
    """The bytes that a picture needs are not here yet."""


class SubtitleError(ToastError):
    """A file of subtitles is of no use."""
