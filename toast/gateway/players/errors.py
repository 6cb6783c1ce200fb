"""What can go wrong with a player."""

from toast.common.errors import ToastError

__all__ = ["MpvRefusal", "PlayerError"]


class PlayerError(ToastError):
    """A player cannot be started, cannot play the film, or died."""


class MpvRefusal(PlayerError):  # noqa: N818  # mostly no failure: mpv says "not now"
    """mpv does not do what it was told, or is gone; the message is its word for it."""
