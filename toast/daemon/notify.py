"""Telling systemd how it goes: the sd_notify protocol, which is one datagram per message.

Source: sd_notify(3), "Notes"; the watchdog as sd_watchdog_enabled(3) describes it.
"""

import os
import socket
from collections.abc import Mapping

__all__ = ["Notifier"]


class Notifier:
    """Sends to the socket that systemd named in the environment; does nothing without one."""

    def __init__(self, environ: Mapping[str, str] = os.environ, pid: int | None = None) -> None:
        self._address = environ.get("NOTIFY_SOCKET", "")
        if self._address.startswith("@"):
            self._address = "\0" + self._address[1:]  # an abstract address
        mine = environ.get("WATCHDOG_PID") in {None, "", str(os.getpid() if pid is None else pid)}
        usec = environ.get("WATCHDOG_USEC", "")
        self.watchdog_seconds = (
            int(usec) / 1e6 if mine and usec.isdecimal() and usec != "0" else None
        )
        """After this long without `WATCHDOG=1` systemd restarts us; None if it does not watch."""

    def send(self, *lines: str) -> None:
        """Send a message such as `READY=1`; that nobody listens any more is no error of ours."""
        if not self._address:
            return
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
            sender.setblocking(False)
            try:
                sender.sendto("\n".join(lines).encode(), self._address)
            except OSError:
                return
