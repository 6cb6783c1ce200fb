"""The token: who holds it may command the daemon."""

import hashlib
import hmac
import secrets
from pathlib import Path

from toast.daemon.errors import StateError
from toast.daemon.state import write_safely

__all__ = ["Token", "read_token"]

_FILE = "token"
_LEAST_CHARACTERS = 16
_MOST_CHARACTERS = 200


def read_token(state: Path) -> str:
    """The token of the daemon that uses this state folder.

    Raises:
        StateError: there is none that we may read.
    """
    try:
        with (state / _FILE).open("r", encoding="ascii") as file:
            text = file.read(_MOST_CHARACTERS + 1).strip()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise StateError(
            f"the token in {state / _FILE} cannot be read ({reason}): is a daemon running there?"
        ) from error
    if not _LEAST_CHARACTERS <= len(text) <= _MOST_CHARACTERS:
        raise StateError(f"{state / _FILE} holds no token: delete it and restart the daemon")
    return text


class Token:
    """The daemon's own side of the token: made at the first start, kept in a file of mode 0600.

    Args:
        state: the state folder.

    Raises:
        StateError: it can be neither read nor made.
    """

    def __init__(self, state: Path) -> None:
        path = state / _FILE
        if not path.exists():
            try:
                write_safely(path, secrets.token_urlsafe(32).encode() + b"\n")
            except OSError as error:
                raise StateError(f"{path} cannot be written: {error.strerror}") from error
        self.text = read_token(state)

    @property
    def cookie(self) -> str:
        """What a browser is given instead: made from the token, and good for nothing else."""
        return self._derive(b"cookie")

    def film_key(self, film_id: str) -> str:
        """What the URLs of one film carry where the daemon listens for other machines."""
        return self._derive(b"film " + film_id.encode())

    def admits(self, authorization: str | None, cookie: str | None) -> bool:
        """Whether a request with these fields comes from someone who holds the token."""
        if authorization is not None:
            scheme, _, given = authorization.partition(" ")
            return scheme.lower() == "bearer" and self.is_right(given.strip())
        return cookie is not None and _same(cookie, self.cookie)

    def is_right(self, given: str) -> bool:
        """Whether this is the token; takes equally long for every wrong one."""
        return _same(given, self.text)

    def _derive(self, what: bytes) -> str:
        return hmac.new(self.text.encode(), what, hashlib.sha256).hexdigest()


def _same(given: str, right: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), right.encode())
