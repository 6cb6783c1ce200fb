"""A seed over a store, for tests."""

import pytest

from vodserver.seed import Seed, SeedSettings
from vodserver.torrent import compose_torrent

SEED_HOST = "127.31.0.1"
CLIENT_HOST = "127.31.0.2"


def settings(**changes):
    base = {"host": SEED_HOST, "port": 0, "upload": None, "connections": 50, "trackers": ()}
    return SeedSettings(**base | changes)


def torrent_of(title):
    return compose_torrent(title, trackers=(), content_url="http://127.0.0.1:1/film")


@pytest.fixture
async def seeding():
    """Start a seed over an opened store: `seed = await seeding(store)`."""
    started: list[Seed] = []

    async def start(store, **changes):
        seed = Seed(store, settings(**changes))
        await seed.start()
        started.append(seed)
        return seed

    yield start
    for seed in started:
        await seed.close()
