"""Who may talk to the gateway: players and pages of this machine, and no page of the web.

A web page can make a browser send requests to 127.0.0.1, under its own name (DNS rebinding, where
the Host header gives it away) or across origins (where Origin or Sec-Fetch-Site does). Pure.
"""

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

__all__ = ["AccessRules"]

_EXPOSED = "Accept-Ranges, Content-Length, Content-Range, ETag"


@dataclass(frozen=True, slots=True)
class AccessRules:
    """The rules for a gateway that listens on one address.

    Attributes:
        bound_host: the address that the gateway is bound to. Loopback admits loopback names alone;
            another address admits itself too, and a wildcard any address (but no name).
    """

    bound_host: str

    def refusal(
        self, hosts: Sequence[str], origins: Sequence[str], fetch_site: str | None
    ) -> str | None:
        """Why a request is refused, in one line; None if it is welcome.

        Args:
            hosts: every Host field of the request.
            origins: every Origin field of the request.
            fetch_site: its Sec-Fetch-Site field, if any.
        """
        if len(hosts) != 1 or not self._is_ours(_host_of(f"//{hosts[0]}")):
            return "this gateway answers to its own address only"
        if origins:
            if len(origins) != 1 or not self.is_local_origin(origins[0]):
                return "pages of other sites may not use this gateway"
        elif fetch_site is not None and fetch_site.strip().lower() == "cross-site":
            return "pages of other sites may not use this gateway"
        return None

    def is_local_origin(self, origin: str) -> bool:
        """Whether a page of this origin comes from this machine."""
        return origin.startswith(("http://", "https://")) and self._is_ours(_host_of(origin))

    def cors_headers(self, origin: str | None) -> Mapping[str, str]:
        """The fields that let a page of a local origin read the answer; none for others."""
        if origin is None or not self.is_local_origin(origin):
            return {}
        return {
            "Access-Control-Allow-Origin": origin,
            "Access-Control-Expose-Headers": _EXPOSED,
            "Vary": "Origin",
        }

    def _is_ours(self, host: str | None) -> bool:
        if host is None:
            return False
        if host == "localhost":
            return True
        try:
            address = ipaddress.ip_address(host)
            bound = ipaddress.ip_address(self.bound_host)
        except ValueError:
            return False
        return address.is_loopback or address == bound or bound.is_unspecified


def _host_of(url: str) -> str | None:
    """The host of a URL, in small letters; None if it has none or is none."""
    try:
        parts = urlsplit(url)
        if parts.username is not None or parts.path or parts.query or parts.fragment:
            return None
        _ = parts.port  # raises where the port is no number
    except ValueError:
        return None
    return parts.hostname
