"""What can go wrong in the laboratory, each with a line that a person can act on."""

from toast.common.errors import ToastError, UsageError

__all__ = [
    "DecodeFailedError",
    "FilmError",
    "LabError",
    "MissingResultError",
    "ProcessError",
    "ScenarioError",
]


class LabError(ToastError):
    """An experiment could not be carried out, or did not show what it must show."""


class FilmError(LabError):
    """A test film could not be made."""


class ProcessError(LabError):
    """A program of the experiment did not start, or ended when it should not have."""


class DecodeFailedError(LabError):
    """The decoder could not open what it was given."""


class ScenarioError(LabError, UsageError):
    """A scenario that cannot exist, such as a viewer without a film."""


class MissingResultError(LabError):
    """Something is asked of results that are not there."""
