"""Signed links that expire: who has one may have the film, until then, without an account.

    /titles/clock/content?expires=1790000000&net=192.0.2.0/24&sig=...

The signature is HMAC-SHA256 (RFC 2104) over path, expiry and network, in URL-safe base64. A link is
worth what its secret is worth: the file that holds it may be readable by its owner alone. Several
secrets may be in use, so that one can be replaced while links of the old one are about: the first
signs, all verify.

Pure but for `read_secrets`: `now` is an argument, in unix seconds.
"""

import base64
import hashlib
import hmac
import ipaddress
import os
import re
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

from vodserver.errors import LinkError

__all__ = ["LinkPolicy", "read_secrets", "sign_path"]

_MAX_FILE_BYTES: Final = 64 * 1024
_LEAST_SECRET_BYTES: Final = 16
_MAX_FIELD_CHARS: Final = 64
_LINKED: Final = ("/content", "/stream", "/torrent", "/blocks")
_DIGITS: Final = re.compile(r"[0-9]{1,12}", re.ASCII)


def read_secrets(path: Path) -> tuple[bytes, ...]:
    """Read a file of secrets, one a line, of which the first is the one in use.

    Raises:
        LinkError: it cannot be read, others than its owner may read it, or a secret is too short.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with os.fdopen(fd, "rb") as file:
            state = os.fstat(fd)
            if not stat.S_ISREG(state.st_mode):
                raise LinkError(f"{path} is no file: name a file with secrets, one a line")
            if state.st_mode & 0o077:
                raise LinkError(f"others may read the secrets in {path}: chmod 600 it")
            data = file.read(_MAX_FILE_BYTES + 1)
    except OSError as error:
        raise LinkError(f"cannot read the secrets in {path}: {error.strerror}") from error
    secrets = tuple(line.strip() for line in data.splitlines() if line.strip())
    if not secrets or len(data) > _MAX_FILE_BYTES:
        raise LinkError(f"there is no secret in {path}: head -c 32 /dev/urandom | base64 makes one")
    if any(len(secret) < _LEAST_SECRET_BYTES for secret in secrets):
        raise LinkError(
            f"a secret in {path} is shorter than {_LEAST_SECRET_BYTES} characters: "
            "head -c 32 /dev/urandom | base64 makes a good one"
        )
    return secrets


def sign_path(secret: bytes, path: str, expires: int, network: str | None = None) -> str:
    """Make the query of a signed link.

    Args:
        secret: that the server verifies with.
        path: of the link, without its query.
        expires: unix seconds up to which it holds.
        network: only for clients whose address is in it, such as 192.0.2.0/24; None for all.

    Raises:
        LinkError: the network is none.
    """
    fields = {"expires": str(expires)}
    if network is not None:
        fields["net"] = str(_network(network))
    fields["sig"] = _signature(secret, path, fields["expires"], fields.get("net", ""))
    return urlencode(fields, safe="/:")


def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    try:
        network = ipaddress.ip_network(text, strict=False)
    except ValueError as error:
        raise LinkError(f"'{text}' is no network: write for example 192.0.2.0/24") from error
    mapped = getattr(network.network_address, "ipv4_mapped", None)
    if mapped is not None and network.prefixlen >= 96:  # RFC 4291, 2.5.5.2: it is IPv4 there
        return ipaddress.ip_network((mapped, network.prefixlen - 96))
    return network


def _signature(secret: bytes, path: str, expires: str, network: str) -> str:
    # No field can hold a line break and pass for two: expiry and network are parsed before.
    text = f"vodserver link 1\n{expires}\n{network}\n{path}".encode("utf-8", "surrogateescape")
    return base64.urlsafe_b64encode(hmac.digest(secret, text, hashlib.sha256)).rstrip(b"=").decode()


@dataclass(frozen=True, slots=True)
class LinkPolicy:
    """Which requests need a signed link, and whether they have a good one.

    Attributes:
        secrets: the first signs, all verify.
        required: whether films, streams and torrents are for signed links only.
    """

    secrets: Sequence[bytes] = ()
    required: bool = False

    def __post_init__(self) -> None:
        if self.required and not self.secrets:
            raise LinkError("links cannot be verified without a secret: give --link-secrets")

    def authorize(
        self, path: str, query: Mapping[str, str], now: float, peer: str | None
    ) -> str | None:
        """Whether a request may have what it asks for.

        Args:
            path: of the request, decoded.
            query: of the request.
            now: unix seconds.
            peer: the client's IP address.

        Returns:
            None if it may; else the line that says why not.
        """
        if not self.required or not needs_link(path):
            return None
        if not query.get("sig"):
            return "this needs a signed link: ask who offers the film for one"
        expires, network = query.get("expires", ""), query.get("net", "")
        if not self._verifies(path, expires, network, query["sig"]):
            return "this link is not as it was made: ask for a new one"
        if now > int(expires):
            return "this link has expired: ask for a new one"
        if network and not _contains(network, peer):
            return "this link is for another network: ask for one for yours"
        return None

    def _verifies(self, path: str, expires: str, network: str, given: str) -> bool:
        if max(map(len, (expires, network, given))) > _MAX_FIELD_CHARS:
            return False
        if not _DIGITS.fullmatch(expires):
            return False
        good = False
        for secret in self.secrets:  # all of them, whichever fits: time tells nothing
            wanted = _signature(secret, path, expires, network)
            good |= hmac.compare_digest(wanted.encode(), given.encode("utf-8", "replace"))
        return good

    def extend(self, path: str, query: Mapping[str, str]) -> str:
        """The query for another path that is to hold as long, and for whom, as a verified one did.

        Returns:
            Empty where no link is needed.
        """
        if not self.required:
            return ""
        return sign_path(self.secrets[0], path, int(query["expires"]), query.get("net") or None)


def needs_link(path: str) -> bool:
    """Whether a path leads to a film or to what leads there."""
    return path.startswith("/torrents/") or path.endswith(_LINKED)


def _contains(network: str, peer: str | None) -> bool:
    try:
        address = ipaddress.ip_address((peer or "").partition("%")[0])
        mapped = getattr(address, "ipv4_mapped", None)
        return (mapped or address) in ipaddress.ip_network(network)
    except ValueError:
        return False
