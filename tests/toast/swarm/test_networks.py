"""Two sessions meet over IPv6, over uTP alone, and by the DHT; liars and the silent are let go."""

import asyncio
import contextlib
import itertools

import libtorrent as lt
import numpy as np
import pytest

from tests.toast.swarm.world import Recorder, make_metainfo, make_torrent, random_film
from toast.common.timemap import TimeMap
from toast.swarm import FilmSwarm, SessionSettings, SwarmSession, Utp, parse_metainfo

_UTP = 1 << 17  # libtorrent's peer_info::utp_socket: its Python leaves that out
FILM = random_film(300_000)
METAINFO = make_metainfo(FILM)
_HOSTS = (f"127.52.{a}.{b}" for a, b in itertools.product(range(250), range(1, 250)))


class Party:
    """Sessions of ours with one film each, all closed in the end."""

    def __init__(self, tmp_path, stack):
        self._tmp_path, self._stack = tmp_path, stack
        self._count = 0

    async def join(self, *, whole=False, metainfo=METAINFO, **settings):
        self._count += 1
        folder = self._tmp_path / str(self._count)
        folder.mkdir()
        settings.setdefault("listen_host", next(_HOSTS))
        session = SwarmSession(SessionSettings(**settings))
        self._stack.push_async_callback(session.close)
        await session.wait_listening()
        if whole:
            (folder / metainfo.name).write_bytes(FILM)
        told = Recorder()
        have = np.full(metainfo.geometry.pieces, whole)
        swarm = FilmSwarm(session, metainfo, folder=folder, have=have, events=told)
        swarm.start()
        return session, swarm, told

    @staticmethod
    async def all_verified(told):
        pieces = METAINFO.geometry.pieces
        await told.until(lambda told: len(told.of("verified")) == pieces)


@pytest.fixture
async def party(tmp_path):
    async with contextlib.AsyncExitStack() as stack:
        yield Party(tmp_path, stack)


def kinds_of(session):
    """How the peers of a session's film are connected."""
    (handle,) = session.native.get_torrents()
    return {(bool(peer.flags & _UTP), peer.ip[0]) for peer in handle.get_peer_info()}


@pytest.mark.slow
async def test_two_viewers_exchange_a_film_over_ipv6(party):
    first, _, _ = await party.join(whole=True, listen_host="::1")
    second, swarm, told = await party.join(listen_host="::1")
    swarm.connect(("::1", first.port))
    await party.all_verified(told)
    assert kinds_of(second) == {(False, "::1")}


@pytest.mark.slow
@pytest.mark.parametrize("caller", [Utp.ONLY, Utp.PREFER])
async def test_two_viewers_exchange_a_film_over_utp_alone(party, caller):
    first, _, _ = await party.join(whole=True, utp=Utp.ONLY)
    second, swarm, told = await party.join(utp=caller)
    host = first.settings.listen_host
    swarm.connect((host, first.port))
    await party.all_verified(told)
    assert kinds_of(second) == {(True, host)}


@pytest.mark.slow
async def test_whoever_listens_everywhere_is_reached_over_both_kinds_of_address(party):
    first, _, _ = await party.join(whole=True, listen_host="*", port_mapping=False)
    for host in ("::1", "127.0.0.1"):
        _, swarm, told = await party.join(listen_host=host)
        swarm.connect((host, first.port))
        await party.all_verified(told)


def test_who_may_be_found_beyond_the_trackers():
    """Not what is private (BEP 27), and not what a VoD server of ours offers."""
    top = lt.bdecode(make_torrent(FILM))
    top[b"info"][b"private"] = 1
    assert METAINFO.discoverable
    assert not parse_metainfo(lt.bencode(top)).discoverable
    assert not make_metainfo(FILM, timemap=TimeMap.constant(len(FILM), 10.0)).discoverable


async def flags_of(party, metainfo, **settings):
    session, _, _ = await party.join(metainfo=metainfo, **settings)
    (handle,) = session.native.get_torrents()
    flags = lt.torrent_flags
    ways = (flags.disable_dht, flags.disable_lsd, flags.disable_pex)
    enabled = session.native.get_settings()["enable_dht"]
    return [bool(handle.flags() & way) for way in ways], enabled


async def test_peers_are_exchanged_where_an_experiment_wants_it_and_nothing_else_is(party):
    metainfo = make_metainfo(FILM, timemap=TimeMap.constant(len(FILM), 10.0))
    assert await flags_of(party, metainfo, peer_exchange=True) == ([True, True, False], False)


async def test_a_film_that_may_be_looked_for_is_and_no_other(party):
    nodes = {"dht_nodes": ("127.0.0.1:1",), "port_mapping": False}
    ours = make_metainfo(FILM, timemap=TimeMap.constant(len(FILM), 10.0))
    assert await flags_of(party, METAINFO, **nodes) == ([False] * 3, True)
    assert await flags_of(party, ours, **nodes) == ([True] * 3, False)
    assert await flags_of(party, METAINFO) == ([True] * 3, False)  # on loopback


@pytest.mark.slow
async def test_a_host_that_is_hung_up_on_may_call_again_and_a_banned_one_may_not(party):
    first, _, _ = await party.join(whole=True, upload_rate=50_000)
    second, swarm, told = await party.join()
    address = (first.settings.listen_host, first.port)
    swarm.connect(address)
    await told.until(lambda told: told.of("requested"))
    assert swarm.departed() == frozenset()

    swarm.hang_up(address)
    await left(swarm, address[0])
    assert second.banned_hosts == frozenset()
    asked = len(told.of("requested"))
    async with asyncio.timeout(10):
        while len(told.of("requested")) == asked:
            swarm.connect(address)
            await asyncio.sleep(0.05)

    second.ban(address[0])
    await left(swarm, address[0])
    assert swarm.banned_hosts == {address[0]}
    swarm.connect(address)
    await asyncio.sleep(1.5)  # longer than a call takes
    assert swarm.snapshot().neighbours == ()


async def left(swarm, host):
    """Wait until someone at a host has left; it may have called us, from any port."""
    async with asyncio.timeout(5):
        while host not in {address[0] for address in swarm.departed()}:  # noqa: ASYNC110 - only this tells
            await asyncio.sleep(0.01)
