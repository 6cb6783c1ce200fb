"""What can go wrong while a film is watched."""

from toast.common.errors import ToastError

__all__ = ["FilmUnavailable", "ViewerError", "WrongBlock"]


class ViewerError(ToastError):
    """The film cannot be watched on."""


class FilmUnavailable(ViewerError):  # noqa: N818  # says what is the matter, as the gateway tells it
    """A part of the film can be had from nobody."""


class WrongBlock(ViewerError):  # noqa: N818  # says what was found
    """A block from the server is not what the .torrent promises."""


def first_error(group: BaseExceptionGroup[ToastError]) -> ToastError:
    """The error that ended it: the others are its consequences."""
    error = group.exceptions[0]
    return first_error(error) if isinstance(error, BaseExceptionGroup) else error
