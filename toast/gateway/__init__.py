"""The local HTTP door of a film being watched: any player can open it, on this machine only."""

from toast.gateway.access import AccessRules
from toast.gateway.errors import GatewayError
from toast.gateway.server import Gateway, GatewaySettings
from toast.gateway.source import ByteStream, FilmSource

__all__ = [
    "AccessRules",
    "ByteStream",
    "FilmSource",
    "Gateway",
    "GatewayError",
    "GatewaySettings",
]
