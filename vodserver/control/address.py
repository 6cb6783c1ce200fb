"""The control socket in a store's directory, however long the directory's path is.

The address of a Unix socket holds some 108 bytes (unix(7)). Naming the socket through an open
descriptor of its directory, /proc/self/fd/N/control.sock, is always short.
"""

import contextlib
import os
import socket
from pathlib import Path
from typing import Final

from vodserver.errors import ControlError

__all__ = ["SOCKET_NAME", "bind", "connect", "unbind"]

SOCKET_NAME: Final = "control.sock"
_CONNECT_SECONDS = 10.0


class _Bound(socket.socket):
    """A bound socket that keeps its directory open: the name that it knows itself by needs that."""

    directory = -1

    def close(self) -> None:
        super().close()
        if self.directory >= 0:
            os.close(self.directory)
            self.directory = -1


def _open(store: Path) -> int:
    return os.open(store, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)


def _name(directory: int) -> str:
    return f"/proc/self/fd/{directory}/{SOCKET_NAME}"


def bind(store: Path) -> socket.socket:
    """A socket bound in the store's directory, for its owner only.

    The caller has the store's lock: a socket that is there already was left by a process that was
    killed.

    Raises:
        ControlError: the directory takes none.
    """
    bound = _Bound(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        # The kernel gives the file the mode that the socket has: there is no moment at which
        # others might connect.
        os.fchmod(bound.fileno(), 0o600)
        bound.directory = _open(store)
        with contextlib.suppress(FileNotFoundError):
            (store / SOCKET_NAME).unlink()
        bound.bind(_name(bound.directory))
    except OSError as error:
        bound.close()
        raise ControlError(
            f"cannot make the control socket {store / SOCKET_NAME}: {error.strerror}"
        ) from error
    bound.setblocking(False)
    return bound


def unbind(store: Path) -> None:
    """Remove the socket's name."""
    with contextlib.suppress(OSError):
        (store / SOCKET_NAME).unlink()


def connect(store: Path) -> socket.socket | None:
    """A connection to the server that has the store; None if there is no such server.

    Raises:
        ControlError: there is one, but it does not let us in.
    """
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(_CONNECT_SECONDS)
        directory = _open(store)
        try:
            connection.connect(_name(directory))
        finally:
            os.close(directory)
        connection.settimeout(None)
    except (FileNotFoundError, NotADirectoryError, ConnectionRefusedError):
        connection.close()
        return None
    except OSError as error:
        connection.close()
        reason = error.strerror or "it does not answer"
        raise ControlError(
            f"cannot reach the server through {store / SOCKET_NAME}: {reason}"
        ) from error
    except BaseException:
        connection.close()
        raise
    return connection
