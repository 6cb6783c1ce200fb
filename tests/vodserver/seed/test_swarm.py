"""What the seed makes libtorrent do that libtorrent has no call for."""

import asyncio

import pytest

from tests.vodserver.seed.conftest import CLIENT_HOST, SEED_HOST, torrent_of

pytestmark = pytest.mark.slow


@pytest.fixture
async def connected(home, tmp_path, seeding, stock_client):
    """A seed, and a client that is connected to it and has not got all for a while."""
    with home.open() as store:
        seed = await seeding(store, upload=150_000)
        await seed.wait_offered()
        client = stock_client(torrent_of(home.title), tmp_path, CLIENT_HOST)
        client.handle.connect_peer((SEED_HOST, seed.port))
        await client.settle(lambda c: any(c.pieces()))
        yield seed, client
        await seed.close()


def handle_of(seed):
    (offer,) = seed._offers
    return offer.handle


def lines(client, *words):
    return [line for line in client.alerts if all(word in line for word in words)]


async def test_it_knows_where_its_peers_listen(connected):
    seed, client = connected

    endpoints = await seed._swarm.endpoints(handle_of(seed))

    assert endpoints == [(CLIENT_HOST, client.port)]


async def test_a_peer_is_called_anew_and_told_again_what_is_there(connected):
    seed, client = connected
    told = len(lines(client, "<== HAVE_ALL"))
    await seed._swarm.call_back(handle_of(seed), {CLIENT_HOST}, drop=True)

    await client.settle(lambda c: len(lines(c, "<== HAVE_ALL")) > told, seconds=5)

    assert lines(client, "peer_disconnected_alert", SEED_HOST)
    assert client.handle.status().is_seeding is False


async def test_who_is_not_to_be_called_back_stays(connected):
    seed, client = connected
    await seed._swarm.call_back(handle_of(seed), {"127.31.0.77"}, drop=True)
    before = client.handle.status().total_payload_download
    await client.settle(lambda c: c.handle.status().total_payload_download > before)

    assert not lines(client, "peer_disconnected_alert", SEED_HOST)


async def test_it_waits_to_be_asked_again_soon_after_it_dialled(connected, monkeypatch):
    seed, _ = connected
    monkeypatch.setattr("vodserver.seed.swarm._DIAL_SECONDS", 0.05)
    seed._swarm.dial(handle_of(seed), [])
    dialling = seed._swarm._session.get_settings()["connection_speed"]
    await asyncio.sleep(0.1)

    assert (dialling > 0, seed._swarm._session.get_settings()["connection_speed"]) == (True, 0)


async def test_a_request_to_reopen_that_meets_another_is_not_lost(connected):
    """Links may have changed after libtorrent began to close its files."""
    seed, client = connected
    handle = handle_of(seed)
    for _ in range(3):
        seed._swarm.reopen(handle)
    asked = dict(seed._swarm._flushing)
    async with asyncio.timeout(5):
        while seed._swarm._flushing:  # noqa: ASYNC110 - libtorrent's answer is not passed on
            await asyncio.sleep(0.01)

    assert asked == {handle: True}
    assert not lines(client, "peer_disconnected_alert", SEED_HOST)


async def test_nothing_hangs_when_the_torrent_is_gone(connected):
    seed, _ = connected
    handle = handle_of(seed)
    seed._swarm.remove(handle)
    async with asyncio.timeout(8):
        assert await seed._swarm.peers(handle) == []
        assert await seed._swarm.endpoints(handle) == []
        seed._swarm.dial(handle, [(CLIENT_HOST, 1)])
        await seed._swarm.call_back(handle, {CLIENT_HOST}, drop=True)


async def test_files_are_opened_anew_though_the_answer_was_dropped(connected):
    """libtorrent holds so many alerts, and then drops them: that the files are closed, for one."""
    seed, _ = connected
    handle = handle_of(seed)
    seed._swarm._flushing[handle] = False  # asked long ago
    seed._swarm.reopen(handle)
    assert seed._swarm._flushing[handle]  # and it would be waited for for ever

    seed._swarm._ask_again()

    async with asyncio.timeout(8):
        while seed._swarm._flushing:  # noqa: ASYNC110 - libtorrent's answer is not passed on
            await asyncio.sleep(0.01)


async def test_what_was_sent_of_each_torrent_is_known(connected):
    seed, _ = connected
    async with asyncio.timeout(5):
        while not seed._swarm.uploads().get(handle_of(seed)):  # noqa: ASYNC110 - news comes late
            await asyncio.sleep(0.02)
