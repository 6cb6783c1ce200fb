"""What can go wrong between the viewer and the VoD server."""

from toast.common.errors import ToastError

__all__ = ["OriginBusyError", "OriginError"]


class OriginError(ToastError):
    """The VoD server is unreachable, refuses, or sends something else than was asked for."""


class OriginBusyError(OriginError):
    """The VoD server has too many connections already."""
