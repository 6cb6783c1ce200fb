"""The running server: HTTP and seed over one store, from first bind to last goodbye."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from vodserver.control import ControlServer
from vodserver.http import HttpServer
from vodserver.seed import Seed, SeedSettings
from vodserver.settings import ServeSettings
from vodserver.store import Store
from vodserver.store.held import held_share
from vodserver.store.upkeep import Keeper, UpkeepSettings
from vodserver.workers import Crew

__all__ = ["Listening", "serve"]


@dataclass(frozen=True, slots=True)
class Listening:
    """What a server tells when it is ready.

    Attributes:
        url: where HTTP listens.
        public_url: what viewers reach it as.
        seed_port: TCP port of the seed, or None.
        titles: how many films it has.
    """

    url: str
    public_url: str
    seed_port: int | None
    titles: int


async def serve(
    store: Store,
    settings: ServeSettings,
    *,
    ready: Callable[[Listening], None],
    stop: asyncio.Event,
    upkeep: UpkeepSettings | None = None,
    hangup: Callable[[Callable[[], None]], object] | None = None,
) -> None:
    """Serve a store until told to stop.

    Args:
        store: opened by this process; not closed here.
        settings: how.
        ready: called once, when every port is bound.
        stop: ends it.
        upkeep: how the store is kept whole meanwhile; the defaults if not given.
        hangup: told what is to be done when files may have been replaced (SIGHUP).

    Raises:
        ControlError: the store's directory takes no control socket.
        ServeError: a port is taken, or an address is not one of this machine's.
    """
    seed: Seed | None = None

    async def seed_status() -> dict[str, Any] | None:
        return None if seed is None else await seed.statistics()

    async def facts() -> dict[str, Any]:
        return {"url": http.public_url, "seed": await seed_status()}

    # Several processes are needed only where one core is not enough.
    http: HttpServer | Crew
    if settings.workers == 1:
        store.hold_at_most(held_share(settings.held_bytes))
        http = HttpServer(store, settings, seed_status=seed_status)
    else:
        http = Crew(store, settings, seed_status=seed_status)
    control = ControlServer(store, status=facts)
    keeper = Keeper(store, upkeep or UpkeepSettings())
    await http.start()
    if hangup is not None:
        hangup(http.reload)
    try:
        if settings.seed:
            seed = Seed(
                store,
                SeedSettings(
                    host=settings.seed_host or http.address,
                    port=settings.seed_port,
                    upload=settings.seed_upload,
                    connections=settings.seed_connections,
                    trackers=settings.trackers,
                ),
            )
            await seed.start()
        await keeper.start()
        await control.start()
        ready(
            Listening(
                http.url,
                http.public_url,
                None if seed is None else seed.port,
                len(store.titles()),
            )
        )
        await stop.wait()
    finally:
        await control.close()
        await keeper.close()
        await http.close()
        if seed is not None:
            await seed.close()
