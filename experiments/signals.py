"""Signals of the laboratory's programs."""

import signal

__all__ = ["interrupt_on_sigterm"]


def interrupt_on_sigterm() -> None:
    """Make SIGTERM clean up as Ctrl-C does, also where that is ignored (a shell's background)."""
    handler = signal.getsignal(signal.SIGINT)
    if not callable(handler):
        handler = signal.default_int_handler
    signal.signal(signal.SIGTERM, handler)
