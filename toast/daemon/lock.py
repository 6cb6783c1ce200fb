"""One daemon per state folder."""

import fcntl
import os
from pathlib import Path
from typing import Self

from toast.daemon.errors import StateError

__all__ = ["StateLock"]


class StateLock:
    """Held while a daemon uses a state folder. The kernel lets go of it however the daemon ends.

    Args:
        state: the folder; made if it is not there.

    Raises:
        StateError: another daemon holds it, or the folder cannot be used.
    """

    def __init__(self, state: Path) -> None:
        try:
            state.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._fd = os.open(state / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StateError(
                f"{state} cannot hold the daemon's state ({error.strerror}): name another --state"
            ) from error
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            owner = os.pread(self._fd, 20, 0).decode("ascii", "replace").strip()
            os.close(self._fd)
            who = f" (process {owner})" if owner else ""
            raise StateError(
                f"a daemon{who} already uses {state}: stop it first, or name another --state"
            ) from error
        os.ftruncate(self._fd, 0)
        os.pwrite(self._fd, str(os.getpid()).encode(), 0)

    def release(self) -> None:
        """Let another daemon have it."""
        os.close(self._fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
