"""The options that say how other viewers are reached, the same for all commands that have some."""

import ipaddress
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import click

from toast.common.errors import UsageError
from toast.swarm import ANY_HOST, SessionSettings, Utp

__all__ = ["NetworkOptions", "listen_address", "network_options"]

_SESSION = SessionSettings()
_OPTIONS = (
    click.option(
        "--listen",
        default=_SESSION.listen_host,
        show_default=True,
        metavar="IP[:PORT]",
        help="Where other viewers reach us; * is every address, IPv4 and IPv6.",
    ),
    click.option(
        "--utp",
        type=click.Choice([str(kind) for kind in Utp]),
        default=str(_SESSION.utp),
        show_default=True,
        help="What to do with uTP, which yields to other traffic.",
    ),
    click.option(
        "--port-mapping/--no-port-mapping",
        default=_SESSION.port_mapping,
        show_default=True,
        help="Ask the router to let other viewers in (UPnP, NAT-PMP).",
    ),
    click.option(
        "--discovery/--no-discovery",
        default=_SESSION.discovery,
        show_default=True,
        help="For public torrents from elsewhere: DHT, local discovery, peer exchange.",
    ),
)


@dataclass(frozen=True, slots=True)
class NetworkOptions:
    """What these options say, under the names that the session's settings have."""

    listen_host: str
    listen_port: int
    utp: Utp
    port_mapping: bool
    discovery: bool

    @classmethod
    def parse(cls, *, listen: str, utp: str, port_mapping: bool, discovery: bool) -> Self:
        """From the options' values.

        Raises:
            UsageError: the address is none.
        """
        host, port = listen_address(listen)
        return cls(host, port, Utp(utp), port_mapping, discovery)


def network_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command these options: `listen`, `utp`, `port_mapping` and `discovery`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def listen_address(text: str) -> tuple[str, int]:
    """`1.2.3.4`, `1.2.3.4:6881`, `::1`, `[::1]:6881`, `*` or `*:6881`.

    Raises:
        UsageError: it is none of these.
    """
    host, port = text, "0"
    if text.startswith("["):
        host, _, rest = text[1:].partition("]")
        port = rest.removeprefix(":") or "0"
    elif text.count(":") == 1:
        host, _, port = text.partition(":")
    try:
        address = host if host == ANY_HOST else str(ipaddress.ip_address(host))
        number = int(port)
    except ValueError as error:
        raise UsageError(f"'{text}' is not an address: write for example 0.0.0.0:6881") from error
    if not 0 <= number <= 65535:
        raise UsageError(f"'{text}' is not an address: a port is a number up to 65535")
    return address, number
