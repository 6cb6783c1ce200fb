"""What can go wrong at the tracker: a request of a client's, or the tracker itself."""

from http import HTTPStatus
from typing import Literal

from toast.common.errors import ToastError

__all__ = ["HttpError", "RequestError", "TrackerError"]


class TrackerError(ToastError):
    """The tracker cannot do what its operator asked for."""


class RequestError(TrackerError, ValueError):
    """A client's request cannot be answered; it gets the message as BEP 3 `failure reason`.

    Attributes:
        retry: in how many minutes it may be answered, "never", or None: not known (BEP 31).
    """

    def __init__(self, message: str, *, retry: int | Literal["never"] | None = None) -> None:
        super().__init__(message)
        self.retry = retry


class HttpError(TrackerError, ValueError):
    """A request over HTTP that cannot be read or is not for us.

    Attributes:
        status: the answer's.
    """

    def __init__(self, status: int) -> None:
        super().__init__(HTTPStatus(status).phrase)
        self.status = status
