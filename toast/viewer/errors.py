"""What can go wrong while a film is watched."""

from toast.common.errors import ToastError

__all__ = ["FilmUnavailable", "ViewerError", "WrongBlock"]


class ViewerError(ToastError):
    """The film cannot be watched on."""


class FilmUnavailable(ViewerError):  # noqa: N818  # says what is the matter, as the gateway tells it
    """A part of the film can be had from nobody."""


class WrongBlock(ViewerError):  # noqa: N818  # says what was found
    """A block from the server is not what the .torrent promises."""
