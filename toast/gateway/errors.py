"""What can go wrong between a player and the film."""

from toast.common.errors import ToastError

__all__ = ["FilmUnavailable", "GatewayError"]


class GatewayError(ToastError):
    """The gateway cannot be opened."""


class FilmUnavailable(GatewayError):  # noqa: N818 - a state of the film, and no fault of the reader's
    """The bytes asked for cannot be had now, from peers or from the VoD server."""
