"""What can go wrong with an emulated network: its description, or the machine."""

from toast.common.errors import ToastError, UsageError

__all__ = ["NetemError", "TopologyError"]


class NetemError(ToastError):
    """This machine cannot do what was asked of it."""


class TopologyError(NetemError, UsageError):
    """A topology file is not usable as written; the message names the field."""

    exit_code = UsageError.exit_code
