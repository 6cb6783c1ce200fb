"""The root of every error that a person can cause or should read."""

__all__ = ["ToastError", "UsageError"]


class ToastError(Exception):
    """Something failed in a way that a person can understand and act on.

    The message is one line, says what happened and what to do, and is shown without a traceback.
    """

    exit_code = 1


class UsageError(ToastError, ValueError):
    """An argument, a setting or an input file is not usable as given."""

    exit_code = 2
