"""The HTTP server of one film, for a viewing in the foreground."""

import ipaddress
from types import TracebackType
from typing import Self

from aiohttp import web

from toast.gateway.access import AccessRules
from toast.gateway.door import Door
from toast.gateway.guard import install_guard
from toast.gateway.routes import FilmRoutes
from toast.gateway.settings import GatewaySettings
from toast.gateway.source import FilmSource, OneFilm

__all__ = ["Gateway"]


class Gateway:
    """Serves one film over HTTP on this machine.

    Use as an async context manager, or call `start` and `close`.

    Args:
        source: the film.
        host: IP address to listen on; not a name, so that nothing is left to a resolver.
        port: 0 takes any free one.
        settings: bounds.
    """

    def __init__(
        self,
        source: FilmSource,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        settings: GatewaySettings | None = None,
    ) -> None:
        settings = settings or GatewaySettings()
        self._source = source
        self._routes = FilmRoutes(OneFilm(source), settings=settings)
        application = web.Application(client_max_size=1024)
        install_guard(application, AccessRules(host))
        self._routes.add_to(application)
        application.router.add_route("*", "/{path:.*}", self._lost)
        self._door = Door(application, host=host, port=port, settings=settings)

    @property
    def url(self) -> str:
        """Where a player finds the film, once started."""
        return self._door.url + self._routes.film_path(self._source, keyed=self._is_keyed)

    @property
    def playlist_url(self) -> str:
        """Where a player finds the film with its title and subtitles, once started."""
        return self._door.url + self._routes.playlist_path(self._source, keyed=self._is_keyed)

    @property
    def subtitle_urls(self) -> list[str]:
        """Where a player finds its subtitles, once started."""
        paths = self._routes.subtitle_paths(self._source, keyed=self._is_keyed)
        return [self._door.url + path for path in paths]

    @property
    def bytes_sent(self) -> int:
        """Film bytes handed to players so far."""
        return self._routes.bytes_sent

    @property
    def readers(self) -> int:
        """Answers that are being sent now."""
        return self._routes.readers

    async def wait_idle(self) -> None:
        """Wait until no film is being sent, and what was sent has left this process.

        For a viewing that ends while a player still reads the last seconds.
        """
        await self._routes.wait_idle()

    async def start(self) -> None:
        """Listen.

        Raises:
            GatewayError: the address or the port cannot be had.
        """
        await self._door.start()

    async def close(self) -> None:
        """Stop listening and end every answer; does nothing if not started."""
        await self._door.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    @property
    def _is_keyed(self) -> bool:
        return not ipaddress.ip_address(self._door.host).is_loopback

    async def _lost(self, _: web.Request) -> web.Response:
        return web.Response(status=404, text=f"there is one film here: {self.url}\n")
