"""What can go wrong at the tracker: a request of a client's, or the tracker itself."""

from toast.common.errors import ToastError

__all__ = ["RequestError", "TrackerError"]


class TrackerError(ToastError):
    """The tracker cannot do what its operator asked for."""


class RequestError(TrackerError, ValueError):
    """A client's request cannot be answered; it gets the message as BEP 3 `failure reason`."""
