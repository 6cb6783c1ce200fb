"""Everything that can go wrong in the VoD server and that its operator should read."""

from toast.common.errors import ToastError, UsageError

__all__ = [
    "AllocationError",
    "CalibrationError",
    "ChannelError",
    "ControlError",
    "ControlUsageError",
    "DiskError",
    "FilmError",
    "IngestStopped",
    "LinkError",
    "ReadError",
    "ReplicaError",
    "SeedError",
    "ServeError",
    "ServeUsageError",
    "StoreError",
    "StoreUsageError",
    "TlsError",
]


class StoreError(ToastError):
    """The store cannot do what it was asked for."""


class StoreUsageError(StoreError, UsageError):
    """A store, a disk or a title is not usable as named."""


class AllocationError(StoreUsageError):
    """No placement of a film exists on these disks, or no such policy."""


class FilmError(StoreUsageError):
    """A film cannot be taken in as it is."""


class IngestStopped(StoreError):  # noqa: N818 - nothing is wrong: someone wanted it
    """A film was stopped on its way in; the next `add` of it goes on from there."""

    exit_code = 130


class DiskError(StoreError, OSError):
    """A disk cannot be read or written: missing, full, read-only or broken."""


class CalibrationError(StoreError):
    """What was measured does not say how fast a disk is."""


class TargetError(DiskError):
    """A disk did not take what was written to it.

    Args:
        disk: its number.
        message: why.
    """

    def __init__(self, disk: int, message: str) -> None:
        super().__init__(message)
        self.disk = disk


class ReadError(StoreError, OSError):
    """No replica of an extent holds the bytes that were written into it."""


class ReplicaError(ReadError):
    """One replica cannot be sent from; another may.

    Args:
        disk: the number of its disk.
        message: why.
    """

    def __init__(self, disk: int, message: str) -> None:
        super().__init__(message)
        self.disk = disk


class ServeError(ToastError):
    """The server cannot start or go on."""


class ServeUsageError(ServeError, UsageError):
    """The server's settings do not fit together."""


class ChannelError(ServeError):
    """The processes of one server cannot talk to each other."""


class LinkError(ServeUsageError):
    """Signed links cannot be made or verified with what was given."""


class TlsError(ServeUsageError):
    """The certificate or its key cannot be used."""


class SeedError(ServeError):
    """The BitTorrent seed cannot start or go on."""


class ControlError(ToastError):
    """The running server cannot be reached, or did not do what it was told.

    Args:
        message: what to show.
        exit_code: of the command that failed; that of the error's kind if not given.
    """

    def __init__(self, message: str, exit_code: int | None = None) -> None:
        super().__init__(message)
        if exit_code is not None:
            self.exit_code = exit_code


class ControlUsageError(ControlError, UsageError):
    """An operation was asked for with arguments that it does not take, or there is none such."""
