"""TLS: a certificate and its key, and how they are replaced while the server runs."""

import logging
import os
import ssl
from pathlib import Path
from urllib.parse import urlsplit

from vodserver.errors import ServeUsageError, TlsError
from vodserver.settings import ServeSettings

__all__ = ["Tls", "read_tls"]

_log = logging.getLogger(__name__)


class Tls:
    """The server's side of TLS, version 1.2 and later.

    Args:
        certificate: PEM file of the certificate, the chain behind it.
        key: PEM file of its private key, without a passphrase.

    Attributes:
        context: for the listening socket.

    Raises:
        TlsError: a file is missing, unreadable or no such thing, or they are no pair.
    """

    def __init__(self, certificate: Path, key: Path) -> None:
        self._certificate = certificate
        self._key = key
        self.context = self._load()

    def reload(self) -> None:
        """Use what the files hold now, for connections that come from now on.

        Raises:
            TlsError: they cannot be used; what was in use stays in use.
        """
        self._load()  # first where it can do no harm
        self._load(self.context)

    def _load(self, into: ssl.SSLContext | None = None) -> ssl.SSLContext:
        for path, what in ((self._certificate, "certificate"), (self._key, "key")):
            try:
                with path.open("rb") as file:
                    os.fstat(file.fileno())
            except OSError as error:
                raise TlsError(f"cannot read the TLS {what} {path}: {error.strerror}") from error
        context = into or ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        try:
            # A passphrase would be asked for on the terminal of a server that has none.
            context.load_cert_chain(self._certificate, self._key, password=_no_passphrase)
        except ssl.SSLError as error:
            raise TlsError(self._explain(error)) from error
        except OSError as error:
            raise TlsError(f"cannot read the TLS files: {error.strerror}") from error
        return context

    def _explain(self, error: ssl.SSLError) -> str:
        if error.reason == "KEY_VALUES_MISMATCH":
            return f"the TLS key {self._key} is not that of the certificate {self._certificate}"
        if "-----BEGIN CERTIFICATE-----" not in _text(self._certificate):
            return f"there is no PEM certificate in {self._certificate}"
        if "ENCRYPTED" in _text(self._key):
            return f"the TLS key {self._key} has a passphrase: remove it with openssl pkey"
        return f"there is no PEM private key for {self._certificate} in {self._key}"


def _no_passphrase() -> str:
    return ""


def _text(path: Path) -> str:
    try:
        return path.read_text("ascii", errors="replace")[:1_000_000]
    except OSError:
        return ""


def read_tls(settings: ServeSettings) -> Tls | None:
    """The certificate that the settings name, if they name one.

    Raises:
        ServeUsageError: they name only a half of it.
        TlsError: it cannot be used.
    """
    certificate, key = settings.tls_cert, settings.tls_key
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise ServeUsageError("TLS needs both: give --tls-cert and --tls-key")
    url = settings.public_url
    if url is not None and urlsplit(url).scheme != "https":
        _log.warning("with TLS, viewers reach %s only if something before it speaks HTTP", url)
    return Tls(certificate, key)
