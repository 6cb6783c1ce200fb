"""What can go wrong between a player and the film."""

from toast.common.errors import ToastError

__all__ = ["GatewayError"]


class GatewayError(ToastError):
    """The gateway cannot be opened."""
