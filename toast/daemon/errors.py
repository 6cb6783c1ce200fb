"""What can go wrong in the daemon, and between it and its clients."""

from toast.common.errors import ToastError, UsageError

__all__ = [
    "DaemonError",
    "DamagedStateError",
    "NewerStateError",
    "NoSuchFilm",
    "QuotaError",
    "RequestError",
    "StateError",
    "UnreachableError",
]


class DaemonError(ToastError):
    """The daemon cannot do what was asked; `status` is what it answers over HTTP."""

    status = 409


class StateError(DaemonError):
    """The state folder cannot be used."""

    status = 503


class NewerStateError(StateError):
    """A later version of Toast wrote the state: it is not damaged, but not for us."""


class DamagedStateError(StateError):
    """The database is there, and is not what we wrote; it is set aside."""


class RequestError(DaemonError, UsageError):
    """A request to the API makes no sense."""

    status = 400


class NoSuchFilm(DaemonError, LookupError):  # noqa: N818  # says what is the matter
    """No film of this id is here."""

    status = 404


class QuotaError(DaemonError):
    """There is no room for it."""

    status = 507


class UnreachableError(DaemonError):
    """No daemon answers; raised on the client's side only."""
