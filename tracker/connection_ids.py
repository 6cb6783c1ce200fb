"""BEP 15 connection ids without a memory of them: a keyed hash of address and time. Pure.

An id proves that its sender receives what is sent to its address. Nothing is stored, so no flood of
connects can fill anything, and several processes with one secret accept each other's ids.
"""

import hashlib
from typing import Final

__all__ = ["SECRET_BYTES", "WINDOW_SECONDS", "ConnectionIds"]

SECRET_BYTES: Final = 32

WINDOW_SECONDS: Final = 60.0
"""BEP 15: a client may use an id for one minute, and a tracker should take it for two. An id is
good in the window in which it was given and in the next, so for one to two minutes."""


class ConnectionIds:
    """Gives and checks connection ids.

    Args:
        secret: 32 random bytes.

    Raises:
        ValueError: the secret has another length.
    """

    def __init__(self, secret: bytes) -> None:
        if len(secret) != SECRET_BYTES:
            raise ValueError(f"the secret must have {SECRET_BYTES} bytes, not {len(secret)}")
        self._secret = secret
        self._turn(0)

    def _turn(self, window: int) -> None:
        self._window = window
        self._current, self._previous = (self._hash(number) for number in (window, window - 1))

    def _hash(self, window: int) -> "hashlib.blake2s":
        time = window.to_bytes(8, "big", signed=True)
        return hashlib.blake2s(time, key=self._secret, digest_size=8)

    def give(self, address: bytes, now: float) -> int:
        """The id of a packed address at this time: 64 bits.

        The address is hashed as it is: an IPv6 one counts alone, not its /64.
        """
        window = int(now // WINDOW_SECONDS)
        if window != self._window:
            self._turn(window)
        hasher = self._current.copy()
        hasher.update(address)
        return int.from_bytes(hasher.digest(), "big")

    def holds(self, connection_id: int, address: bytes, now: float) -> bool:
        """Whether this id was given to this address, in this window or in the one before."""
        if now // WINDOW_SECONDS != self._window:
            self._turn(int(now // WINDOW_SECONDS))
        sent = connection_id.to_bytes(8, "big")
        hasher = self._current.copy()
        hasher.update(address)
        if hasher.digest() == sent:
            return True
        hasher = self._previous.copy()
        hasher.update(address)
        return hasher.digest() == sent
