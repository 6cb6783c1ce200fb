"""The local HTTP door of films being watched: any player can open it, on this machine only."""

from toast.gateway.access import AccessRules
from toast.gateway.door import Door
from toast.gateway.errors import GatewayError
from toast.gateway.guard import film_key, install_guard, is_from_this_machine
from toast.gateway.routes import FilmRoutes
from toast.gateway.server import Gateway
from toast.gateway.settings import GatewaySettings
from toast.gateway.source import ByteStream, Films, FilmSource, OneFilm, Subtitle

__all__ = [
    "AccessRules",
    "ByteStream",
    "Door",
    "FilmRoutes",
    "FilmSource",
    "Films",
    "Gateway",
    "GatewayError",
    "GatewaySettings",
    "OneFilm",
    "Subtitle",
    "film_key",
    "install_guard",
    "is_from_this_machine",
]
