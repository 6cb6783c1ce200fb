"""The control socket in a store's directory, however long the directory's path is.

The address of a Unix socket holds some 108 bytes (unix(7)). Naming the socket through an open
descriptor of its directory, /proc/self/fd/N/control.sock, is always short.
"""

import contextlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from vodserver.errors import ControlError

__all__ = ["SOCKET_NAME", "bind", "connect", "unbind"]

SOCKET_NAME: Final = "control.sock"
_CONNECT_SECONDS = 10.0


@contextlib.contextmanager
def _short_name(store: Path) -> Iterator[str]:
    fd = os.open(store, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{fd}/{SOCKET_NAME}"
    finally:
        os.close(fd)


def bind(store: Path) -> socket.socket:
    """A socket bound in the store's directory, for its owner only.

    The caller has the store's lock: a socket that is there already was left by a process that was
    killed.

    Raises:
        ControlError: the directory takes none.
    """
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        # The kernel gives the file the mode that the socket has: there is no moment at which
        # others might connect.
        os.fchmod(bound.fileno(), 0o600)
        with _short_name(store) as name:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name)  # noqa: PTH108 - it is a name through a descriptor
            bound.bind(name)
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
        with _short_name(store) as name:
            connection.connect(name)
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
