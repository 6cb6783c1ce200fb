"""The seed, met by a stock client over loopback."""

import asyncio
import hashlib
import os
import socket
from pathlib import Path

import pytest

from tests.vodserver.conftest import flip_byte, unlock
from tests.vodserver.seed.conftest import CLIENT_HOST, SEED_HOST, torrent_of
from vodserver.errors import SeedError
from vodserver.seed import PEER_ID_PREFIX


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.slow
async def test_a_stock_client_gets_the_film_from_the_seed_alone(
    home, tmp_path, seeding, stock_client
):
    with home.open() as store:
        seed = await seeding(store)
        await seed.wait_offered()
        client = stock_client(torrent_of(home.title), tmp_path, CLIENT_HOST)

        await client.download(SEED_HOST, seed.port)

        sent = await seed.statistics()
        await seed.close()
    assert sha256(tmp_path / home.film.name) == sha256(home.film) == home.title.sha256
    assert sent["payload_bytes_sent"] == home.title.film_bytes
    assert home.title.film_bytes < sent["bytes_sent"] < 1.02 * home.title.film_bytes + 5000


@pytest.mark.slow
async def test_damaged_replicas_are_not_offered_their_twins_are(
    home, tmp_path, seeding, stock_client
):
    """One replica of every extent is rotten, missing or short: the other serves."""
    for extent in home.title.extents:
        victim = home.replica(extent.number, extent.number % 2)
        kind = extent.number % 3
        if kind == 0:
            flip_byte(victim, extent.size // 2)
        elif kind == 1:
            victim.unlink()
        else:
            unlock(victim)
            victim.write_bytes(victim.read_bytes()[:-1])
    with home.open() as store:
        seed = await seeding(store)
        await seed.wait_offered()
        client = stock_client(torrent_of(home.title), tmp_path, CLIENT_HOST)

        await client.download(SEED_HOST, seed.port)

        assert not [line for line in client.alerts if "hash_failed" in line]
        await seed.close()
    assert sha256(tmp_path / home.film.name) == home.title.sha256


@pytest.mark.slow
async def test_an_extent_without_a_good_replica_is_not_advertised(
    home, tmp_path, seeding, stock_client
):
    for copy in (0, 1):
        flip_byte(home.replica(1, copy), 5)
    files = [home.replica(1, copy) for copy in (0, 1)]
    before = [path.read_bytes() for path in files]
    title = home.title
    with home.open() as store:
        seed = await seeding(store)
        await seed.wait_offered()
        client = stock_client(torrent_of(title), tmp_path, CLIENT_HOST)
        first = title.extent_bytes // title.piece_bytes
        lost = range(first, first + -(-title.extents[1].size // title.piece_bytes))
        wanted = client.handle.torrent_file().num_pieces() - len(lost)
        client.handle.connect_peer((SEED_HOST, seed.port))

        await client.settle(lambda c: sum(c.pieces()) == wanted)

        assert [n for n, there in enumerate(client.pieces()) if not there] == list(lost)
        assert (await seed.statistics())["titles_in_part"] == 1
        await seed.close()
    assert [path.read_bytes() for path in files] == before


def cut_short(path):
    unlock(path)
    os.truncate(path, path.stat().st_size // 2)


@pytest.mark.slow
@pytest.mark.parametrize("harm", [Path.unlink, cut_short])
async def test_a_replica_that_breaks_while_offered_is_replaced(
    home, tmp_path, seeding, stock_client, harm
):
    """libtorrent meets the fault; the seed goes over to the twins, and the film arrives."""
    with home.open() as store:
        seed = await seeding(store)
        await seed.wait_offered()
        chosen = seed._offers.get(home.title.id).chosen
        for extent, held in zip(home.title.extents, chosen, strict=True):
            harm(store.replica_path(home.title, extent, held.disk))
        client = stock_client(torrent_of(home.title), tmp_path, CLIENT_HOST)

        async def call_again():
            while True:
                client.handle.connect_peer((SEED_HOST, seed.port))
                await asyncio.sleep(0.5)

        calling = asyncio.create_task(call_again())
        try:
            await client.download(SEED_HOST, seed.port, seconds=30)
        finally:
            calling.cancel()
        await seed.close()
    assert sha256(tmp_path / home.film.name) == home.title.sha256


@pytest.mark.slow
async def test_rot_that_http_meets_is_replaced_in_the_seed_too(
    home, tmp_path, seeding, stock_client
):
    """libtorrent cannot see rot; the read that does tells the seed before a peer is sent it."""
    with home.open() as store:
        seed = await seeding(store)
        await seed.wait_offered()
        chosen = seed._offers.get(home.title.id).chosen
        rotten = chosen[2].disk
        flip_byte(store.replica_path(home.title, home.title.extents[2], rotten), 7)
        start = 2 * home.title.extent_bytes
        for number in home.title.extents[2].disks:  # whichever HTTP would have chosen
            await store.check_replica(home.title, home.title.extents[2], number)
        assert (
            await store.read(home.title, start, start + 10)
            == (home.film.read_bytes()[start : start + 10])
        )
        async with asyncio.timeout(5):
            while chosen[2] is None or chosen[2].disk == rotten:  # noqa: ASYNC110 - mending tells nobody
                await asyncio.sleep(0)
        client = stock_client(torrent_of(home.title), tmp_path, CLIENT_HOST)

        await client.download(SEED_HOST, seed.port)

        assert not [line for line in client.alerts if "hash_failed" in line]
        await seed.close()
    assert sha256(tmp_path / home.film.name) == home.title.sha256


@pytest.mark.slow
async def test_the_upload_limit_holds_on_loopback(home, tmp_path, seeding, stock_client):
    limit = 400_000
    with home.open() as store:
        seed = await seeding(store, upload=limit)
        await seed.wait_offered()
        client = stock_client(torrent_of(home.title), tmp_path, CLIENT_HOST)
        loop = asyncio.get_running_loop()
        began = loop.time()

        await client.download(SEED_HOST, seed.port)

        sent = await seed.statistics()
        elapsed = loop.time() - began
        await seed.close()
    # libtorrent's bucket holds up to a quarter of a second's worth before it is first emptied
    assert sent["bytes_sent"] <= limit * (elapsed + 0.3)


@pytest.mark.slow
async def test_peers_can_tell_that_it_is_the_operator_s(home, tmp_path, seeding, stock_client):
    with home.open() as store:
        seed = await seeding(store, upload=100_000)
        await seed.wait_offered()
        client = stock_client(torrent_of(home.title), tmp_path, CLIENT_HOST)
        client.handle.connect_peer((SEED_HOST, seed.port))
        await client.settle(lambda c: any(c.pieces()))

        (peer,) = client.handle.get_peer_info()

        assert str(peer.pid.to_bytes()[:8], "ascii") == PEER_ID_PREFIX
        await seed.close()


async def test_a_taken_port_is_one_clear_line(home, seeding):
    with (
        socket.create_server((SEED_HOST, 0)) as taken,
        home.open() as store,
        pytest.raises(SeedError, match=r"cannot listen on .*--seed-port"),
    ):
        await seeding(store, port=taken.getsockname()[1])


async def test_an_address_of_another_machine_is_one_clear_line(home, seeding):
    with (
        home.open() as store,
        pytest.raises(SeedError, match=r"cannot listen on 203\.0\.113\.7"),
    ):
        await seeding(store, host="203.0.113.7")
