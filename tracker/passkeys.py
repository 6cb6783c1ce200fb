"""Announce URLs that name their viewer: signed, so that nothing has to be stored. Pure.

A passkey is `NAME.SIGNATURE`, as the parameter `passkey` of an announce URL; over UDP it comes as
BEP 41 URL data. It says that the operator gave this URL, and to whom. It does not encrypt: whoever
reads the line can use it.
"""

import hmac
import re
from typing import Final

from tracker.errors import RequestError, TrackerError

__all__ = ["Passkeys"]

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
_LEAST_SECRET_BYTES: Final = 16
_SIGNATURE_HEX: Final = 32


class Passkeys:
    """Gives and checks passkeys.

    Args:
        secret: at least 16 bytes that only the operator knows.

    Raises:
        TrackerError: it is shorter.
    """

    def __init__(self, secret: bytes) -> None:
        if len(secret) < _LEAST_SECRET_BYTES:
            raise TrackerError(
                f"a passkey secret needs {_LEAST_SECRET_BYTES} bytes, not {len(secret)}: "
                "make one with `head -c 32 /dev/urandom > FILE`"
            )
        self._secret = secret

    def give(self, name: str) -> str:
        """The passkey of a viewer.

        Raises:
            TrackerError: the name is not letters, digits, `-` and `_`, 64 at most.
        """
        if not _NAME.match(name):
            raise TrackerError(f"'{name}' is no name: use letters, digits, - and _, 64 at most")
        return f"{name}.{self._sign(name)}"

    def check(self, passkey: bytes | None) -> str:
        """The name in a passkey.

        Raises:
            RequestError: there is none, or it was not given by us.
        """
        if passkey is None:
            raise RequestError(
                "this tracker wants a passkey: use your own announce URL", retry="never"
            )
        name, _, signature = passkey.decode("ascii", "replace").rpartition(".")
        if not _NAME.match(name) or not hmac.compare_digest(
            signature.encode(), self._sign(name).encode()
        ):
            raise RequestError("the passkey is not valid", retry="never")
        return name

    def _sign(self, name: str) -> str:
        return hmac.digest(self._secret, name.encode(), "sha256").hex()[:_SIGNATURE_HEX]
