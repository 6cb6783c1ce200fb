"""`AccessRules` at the door of an aiohttp application: the daemon's, or the gateway's own."""

import hashlib
import hmac
import ipaddress
from collections.abc import Callable

from aiohttp import web
from aiohttp.typedefs import Handler

from toast.gateway.access import AccessRules

__all__ = ["film_key", "install_guard", "is_from_this_machine"]

_KEY_HEX_DIGITS = 32


def install_guard(
    application: web.Application,
    rules: AccessRules,
    refuse: Callable[[web.Request, str], web.StreamResponse] | None = None,
) -> None:
    """Turn away from an application whoever the rules refuse, before any handler sees them.

    To every answer it adds the fields by which pages of this machine may read it.

    Args:
        application: where to stand guard; its other middlewares come after.
        rules: who may come in.
        refuse: makes the answer to someone turned away, from the request and one line that says
            why; by default status 403 and that line.
    """

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        why = rules.refusal(
            request.headers.getall("Host", []),
            request.headers.getall("Origin", []),
            request.headers.get("Sec-Fetch-Site"),
        )
        if why is None:
            return await handler(request)
        return refuse(request, why) if refuse else web.Response(status=403, text=f"{why}\n")

    async def let_pages_read(request: web.Request, response: web.StreamResponse) -> None:
        origins = request.headers.getall("Origin", [])
        if len(origins) == 1:
            response.headers.update(rules.cors_headers(origins[0]))

    application.middlewares.insert(0, guard)
    application.on_response_prepare.append(let_pages_read)


def is_from_this_machine(request: web.Request) -> bool:
    """Whether the connection came in on a loopback address, so that no other machine sent it."""
    transport = request.transport
    name = transport.get_extra_info("sockname") if transport is not None else None
    if not isinstance(name, tuple):
        return False
    address = ipaddress.ip_address(name[0].partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return address.is_loopback


def film_key(secret: bytes, film_id: str) -> str:
    """What a film's URLs must carry as `key` on an address that other machines can reach.

    It opens this film and no other, and says nothing about the secret.
    """
    digest = hmac.new(secret, f"film:{film_id}".encode(), hashlib.sha256).hexdigest()
    return digest[:_KEY_HEX_DIGITS]
