"""The session: an address to be reached on, or one line that says why there is none."""

import asyncio
import gc
import socket
from pathlib import Path

import libtorrent as lt
import pytest

from tests.toast.swarm.world import make_torrent, random_film
from toast.swarm import SessionSettings, SwarmError, SwarmSession, Utp
from toast.swarm.session import _native_settings, _ports

HOST = "127.42.0.1"


async def test_it_listens_on_the_address_given_and_on_any_free_port():
    session = SwarmSession(SessionSettings(listen_host=HOST))
    await session.wait_listening()

    _, writer = await asyncio.open_connection(HOST, session.port)
    writer.close()
    await writer.wait_closed()

    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.42.0.2", session.port)
    await session.close()


async def test_waiting_twice_is_fine():
    session = SwarmSession(SessionSettings(listen_host=HOST))
    await asyncio.gather(session.wait_listening(), session.wait_listening())
    await session.wait_listening()
    await session.close()


async def test_a_taken_port_is_an_error_and_no_other_port_is_taken_instead():
    with socket.create_server((HOST, 0)) as taken:
        port = taken.getsockname()[1]
        session = SwarmSession(SessionSettings(listen_host=HOST, listen_port=port))
        with pytest.raises(SwarmError, match=rf"cannot listen for peers on {HOST}:{port}: .+"):
            await session.wait_listening()
        await session.close()


async def test_an_address_of_another_machine_is_an_error():
    session = SwarmSession(SessionSettings(listen_host="203.0.113.7"))
    with pytest.raises(SwarmError, match=r"cannot listen for peers on 203\.0\.113\.7"):
        await session.wait_listening()
    await session.close()


async def test_closing_frees_the_port_and_twice_is_once():
    session = SwarmSession(SessionSettings(listen_host=HOST))
    await session.wait_listening()
    port = session.port
    await session.close()
    await session.close()
    socket.create_server((HOST, port)).close()


async def test_closing_at_once_leaves_nothing_unsaid():
    """Nobody waited for the port: that must not end in a warning about a lost exception."""
    with socket.create_server((HOST, 0)) as taken:
        port = taken.getsockname()[1]
        session = SwarmSession(SessionSettings(listen_host=HOST, listen_port=port))
        await session.close()
    gc.collect()


def descriptors():
    return len(list(Path("/proc/self/fd").iterdir()))


async def test_no_descriptor_is_left_behind():
    async def once():
        session = SwarmSession(SessionSettings(listen_host=HOST))
        await session.wait_listening()
        await session.close()

    await once()
    before = descriptors()
    for _ in range(3):
        await once()
    assert descriptors() == before


async def test_two_sessions_have_peer_ids_of_their_own_that_begin_with_our_mark():
    first, second = (SwarmSession(SessionSettings(listen_host=HOST)) for _ in range(2))
    assert first.peer_id != second.peer_id
    for session in (first, second):
        assert session.peer_id.startswith(b"-TO")
        assert len(session.peer_id) == 20
        await session.close()


def native(**settings):
    chosen = SessionSettings(**settings)
    return _native_settings(chosen, ((chosen.listen_host, chosen.listen_port),))


def test_rates_are_whole_bytes_and_none_means_no_limit():
    capped, free = native(upload_rate=250_000.5, download_rate=1e6), native()
    assert (capped["upload_rate_limit"], capped["download_rate_limit"]) == (250_000, 1_000_000)
    assert (free["upload_rate_limit"], free["download_rate_limit"]) == (0, 0)


def test_who_takes_most_can_be_served_first():
    key = "seed_choking_algorithm"
    assert native()[key] == lt.default_settings()[key]
    assert native(serves_takers=True)[key] != lt.default_settings()[key]


DOORS = ("enable_dht", "enable_lsd", "enable_natpmp", "enable_upnp")


def test_on_loopback_nothing_goes_out_to_the_network():
    """Nor is the DHT joined before a film needs it."""
    here, there, neither = (
        [native(listen_host=host, port_mapping=mapping)[door] for door in DOORS]
        for host, mapping in ((HOST, True), ("*", True), ("*", False))
    )
    assert here == neither == [False] * 4
    assert there == [False, False, True, True]


@pytest.mark.parametrize(
    ("settings", "looks"),
    [
        ({}, True),
        ({"discovery": False}, False),
        ({"listen_host": HOST}, False),
        ({"listen_host": "::1"}, False),
        ({"listen_host": "192.0.2.1"}, True),
        ({"listen_host": HOST, "dht_nodes": ("127.0.0.1:1",)}, True),
    ],
)
def test_who_may_look_for_peers_beyond_the_trackers(settings, looks):
    assert SessionSettings(**settings).discovers is looks


@pytest.mark.parametrize(
    ("utp", "doors"),
    [
        (Utp.OFF, {"incoming_tcp", "outgoing_tcp"}),
        (Utp.ACCEPT, {"incoming_tcp", "outgoing_tcp", "incoming_utp"}),
        (Utp.PREFER, {"incoming_tcp", "outgoing_tcp", "incoming_utp", "outgoing_utp"}),
        (Utp.ONLY, {"incoming_utp", "outgoing_utp"}),
    ],
)
def test_what_each_use_of_utp_opens(utp, doors):
    made = native(utp=utp)
    ways = ("incoming_tcp", "outgoing_tcp", "incoming_utp", "outgoing_utp")
    assert {way for way in ways if made[f"enable_{way}"]} == doors


@pytest.mark.parametrize(
    "case",
    [
        (("0.0.0.0", 7), "0.0.0.0:7", ""),
        (("::", 6881), "[::]:6881", ""),
        (("*", 5), "0.0.0.0:5,[::]:5", ""),
        (("127.0.0.9", 1), "127.0.0.9:1", "127.0.0.9"),
        (("::1", 5), "[::1]:5", "::1"),
    ],
)
def test_who_listens_on_one_address_calls_from_it(case):
    (host, port), listens, calls = case
    settings = SessionSettings(listen_host=host, listen_port=port)
    made = _native_settings(settings, _ports(settings))
    assert (made["listen_interfaces"], made["outgoing_interfaces"]) == (listens, calls)


async def test_every_address_of_the_machine_has_the_port_that_is_announced():
    """Left to itself libtorrent takes another free port for each."""
    session = SwarmSession(SessionSettings(port_mapping=False))
    await session.wait_listening()
    for host in ("127.0.0.1", "::1"):
        _, writer = await asyncio.open_connection(host, session.port)
        writer.close()
        await writer.wait_closed()
    await session.close()


async def test_a_port_that_is_taken_everywhere_is_an_error():
    with socket.create_server(("0.0.0.0", 0)) as taken:
        port = taken.getsockname()[1]
        settings = SessionSettings(listen_host="0.0.0.0", listen_port=port, port_mapping=False)
        session = SwarmSession(settings)
        with pytest.raises(SwarmError, match="cannot listen for peers on 0"):
            await session.wait_listening()
        await session.close()


def test_libtorrent_knows_every_setting():
    """A name that it does not know would be an exception, or, worse, silence."""
    known = lt.default_settings()
    assert set(native(dht_nodes=("127.0.0.1:1",))) <= set(known)


class Listener:
    def __init__(self):
        self.heard = []
        self.first = asyncio.get_running_loop().create_future()

    def on_alert(self, alert):
        self.heard.append(type(alert).__name__)
        if not self.first.done():
            self.first.set_result(None)


async def test_alerts_of_a_torrent_come_to_its_listener_until_it_leaves(tmp_path):
    session = SwarmSession(SessionSettings(listen_host=HOST))
    listeners = []
    for seed in (1, 2):
        params = lt.add_torrent_params()
        params.ti = lt.torrent_info(make_torrent(random_film(100_000, seed)))
        params.save_path = str(tmp_path)
        params.flags = lt.torrent_flags.paused
        handle = session.native.add_torrent(params)
        listener = Listener()
        session.register(handle, listener)
        listeners.append((handle, listener))
    (first, heard), (second, silent) = listeners
    session.unregister(second)
    before = len(silent.heard)

    second.resume()
    first.resume()
    await asyncio.wait_for(heard.first, 5)

    assert heard.heard
    assert len(silent.heard) == before
    await session.close()
