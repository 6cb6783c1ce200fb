"""What a tracker is told, and what is believed of its answers."""

import asyncio
import contextlib
import ipaddress
import socket
import struct

import aiohttp
import bencode2
import pytest
from aiohttp import web
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.toast.origin.server import LostSocket
from toast.swarm import Announcer, Peer, SwarmError
from toast.swarm.announcer import parse_answer

HOST = "127.41.0.1"
INFO_HASH = bytes([0, 1, 0x20, 0x25, 0x26, 0x2B, 0x2F, 0x3D, 0x7E, 0x7F, 0x80, 0xFF]) + b"Aa0-_.~+"
PEER_ID = b"-TO0100-abcdef012345"


def parse(**answer):
    return parse_answer(
        bencode2.bencode({key.replace("_", " ").encode(): value for key, value in answer.items()})
    )


def compact(*addresses):
    return b"".join(
        ipaddress.ip_address(host).packed + struct.pack(">H", port) for host, port in addresses
    )


def entry(host=b"127.0.0.2", port=6881, **more):
    return {b"ip": host, b"port": port} | {
        key.replace("_", " ").encode(): value for key, value in more.items()
    }


# -- answers ---------------------------------------------------------------------------------------


def test_bep_3_dictionaries_tell_addresses():
    answer = parse(interval=1800, peers=[entry(peer_id=b"-LT2000-xxxxxxxxxxxx")])
    assert answer.interval == 1800
    assert answer.peers == (Peer(("127.0.0.2", 6881)),)


@pytest.mark.parametrize("number", [10**400, -(10**400), 0])
def test_an_absurd_interval_is_bounded(number):
    answer = parse(interval=number, peers=b"")
    assert 2.0 <= answer.interval <= 1800.0


def test_bep_23_compact_peers_are_six_bytes_each():
    answer = parse(interval=60, peers=compact(("1.2.3.4", 80), ("5.6.7.8", 65535)))
    assert [peer.address for peer in answer.peers] == [("1.2.3.4", 80), ("5.6.7.8", 65535)]


def test_bep_7_peers6_come_besides_and_are_eighteen_bytes_each():
    answer = parse(
        interval=60, peers=compact(("1.2.3.4", 80)), peers6=compact(("2001:db8::1", 6881))
    )
    assert [peer.address for peer in answer.peers] == [("1.2.3.4", 80), ("2001:db8::1", 6881)]


def test_our_tracker_tells_playheads_seeds_and_who_is_done():
    answer = parse(
        interval=15,
        min_interval=3,
        peers=[
            entry(peer_id=b"-TO0100-aaaaaaaaaaaa", playhead=83_250),
            entry(port=2, peer_id=b"-TV0100-bbbbbbbbbbbb", complete=1),
            entry(port=3, complete=0, playhead=0),
        ],
    )
    ahead, seed, young = answer.peers
    assert (answer.interval, answer.least_interval) == (15, 3)
    assert (ahead.playhead, ahead.operator, ahead.complete) == (83.25, False, False)
    assert (seed.playhead, seed.operator, seed.complete) == (None, True, True)
    assert (young.playhead, young.complete) == (0.0, False)


def test_a_dictionary_may_hold_an_ipv6_address():
    assert parse(peers=[entry(host=b"2001:0db8::0001")]).peers[0].address == ("2001:db8::1", 6881)


@pytest.mark.parametrize(
    "item",
    [
        entry(host=b"localhost"),
        entry(host=b"example.com"),
        entry(host=b"127.1"),
        entry(host=b"\xff\xff"),
        entry(host=b""),
        entry(host=7),
        entry(port=0),
        entry(port=-1),
        entry(port=65536),
        entry(port=b"80"),
        {b"ip": b"127.0.0.2"},
        {b"port": 80},
        {},
        5,
        b"x",
        [],
    ],
)
def test_a_peer_that_makes_no_sense_is_left_out_and_the_others_stay(item):
    """A host name would have us look up what a stranger chose."""
    answer = parse(peers=[item, entry(port=7)])
    assert [peer.address for peer in answer.peers] == [("127.0.0.2", 7)]


@pytest.mark.parametrize("playhead", [-1, 1 << 40, 10**50, b"5", [5]])
def test_a_playhead_that_makes_no_sense_is_no_playhead(playhead):
    assert parse(peers=[entry(playhead=playhead)]).peers[0].playhead is None


@pytest.mark.parametrize("peers", [5, b"", {}, [], b"12345"])
def test_no_peers_are_no_peers(peers):
    assert parse(peers=peers).peers == ()


def test_a_cut_compact_list_gives_its_whole_entries_without_port_zero():
    body = compact(("1.2.3.4", 80), ("1.2.3.5", 0)) + b"12345"
    assert [peer.address for peer in parse(peers=body).peers] == [("1.2.3.4", 80)]


@pytest.mark.parametrize(
    "many",
    [
        {"peers": compact(*[("1.2.3.4", 80)] * 5000)},
        {"peers6": compact(*[("::2", 80)] * 5000)},
        {"peers": [entry()] * 5000},
        {"peers": [entry()] * 500, "peers6": compact(*[("::2", 80)] * 500)},
    ],
)
def test_more_peers_than_anyone_can_use_are_cut(many):
    assert len(parse(**many).peers) == 500


@pytest.mark.parametrize(
    "case",
    [
        ({}, 60.0),
        ({"interval": 900}, 900.0),
        ({"interval": 0}, 2.0),
        ({"interval": -5}, 2.0),
        ({"interval": 10**12}, 1800.0),
        ({"interval": b"60"}, 60.0),
        ({"interval": 10, "min_interval": 30}, 30.0),
        ({"interval": 30, "min_interval": 10}, 30.0),
    ],
)
def test_the_interval_is_kept_within_reason(case):
    answer, seconds = case
    assert parse(**answer).interval == seconds


def test_a_refusal_is_told_in_the_tracker_s_words():
    body = bencode2.bencode({b"failure reason": b"unregistered torrent"})
    with pytest.raises(SwarmError, match=r"http://t/a refuses: unregistered torrent"):
        parse_answer(body, url="http://t/a")


def test_a_refusal_that_never_ends_is_cut():
    with pytest.raises(SwarmError) as caught:
        parse(failure_reason=b"\xff" + b"no" * 10_000)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    "body",
    [b"", b"i5e", b"le", b"4:abcd", b"<html>404</html>", b"d8:interval", b"de junk", b"l" * 50_000],
)
def test_what_is_no_answer_is_one_line(body):
    with pytest.raises(SwarmError, match="does not answer like a tracker"):
        parse_answer(body)


_STEADY = settings(deadline=None, derandomize=True, max_examples=80)


@_STEADY
@given(st.binary(max_size=200))
def test_random_bytes_end_in_nothing_but_a_swarm_error(body):
    try:
        answer = parse_answer(body)
    except SwarmError:
        return
    assert answer.interval >= answer.least_interval >= 2.0


_VALUES = st.recursive(
    st.integers(-(2**70), 2**70) | st.binary(max_size=40),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.binary(max_size=8), inner),
    max_leaves=6,
)
_PEERS = st.lists(
    st.dictionaries(
        st.sampled_from([b"ip", b"port", b"playhead", b"peer id", b"complete"]), _VALUES
    )
)
_KEYS = [b"interval", b"min interval", b"peers6", b"failure reason", b"tracker id"]


@_STEADY
@given(st.dictionaries(st.sampled_from(_KEYS), _VALUES), _PEERS | _VALUES)
def test_hostile_answers_end_in_bounded_facts_or_in_a_swarm_error(answer, peers):
    try:
        found = parse_answer(bencode2.bencode(answer | {b"peers": peers}))
    except SwarmError:
        return
    assert 2.0 <= found.least_interval <= found.interval <= 1800.0
    for peer in found.peers:
        ipaddress.ip_address(peer.address[0])
        assert 0 < peer.address[1] < 65536


# -- announces -------------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def tracker(handler):
    """A real HTTP server on loopback; yields the announce URL."""
    app = web.Application()
    app.router.add_get("/announce", handler)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, HOST, 0)
    await site.start()
    try:
        yield f"http://{HOST}:{runner.addresses[0][1]}/announce"
    finally:
        await runner.cleanup()


@pytest.fixture
async def http():
    async with aiohttp.ClientSession(auto_decompress=False) as session:
        yield session


def announcer(http, url):
    return Announcer(http, url, info_hash=INFO_HASH, peer_id=PEER_ID, port=6881)


async def announce(http, url, **changes):
    facts = {"uploaded": 1, "downloaded": 2, "left": 3, "playhead": None} | changes
    return await announcer(http, url).announce(**facts)


def asked_of(seen):
    async def handler(request):
        seen.append(request)
        return web.Response(body=bencode2.bencode({b"interval": 60, b"peers": [entry()]}))

    return handler


async def test_every_byte_of_the_hash_arrives_as_it_is(http):
    """BEP 3 wants bytes percent-encoded, not characters: %25 and %2B must not be decoded twice."""
    seen = []
    async with tracker(asked_of(seen)) as url:
        answer = await announce(http, url)
    raw = dict(part.split("=", 1) for part in seen[0].raw_path.split("?", 1)[1].split("&"))
    assert raw["info_hash"] == "%00%01%20%25%26%2B%2F%3D~%7F%80%FFAa0-_.~%2B"
    assert raw["peer_id"] == PEER_ID.decode()
    assert (raw["port"], raw["compact"]) == ("6881", "0")
    assert (raw["uploaded"], raw["downloaded"], raw["left"]) == ("1", "2", "3")
    assert "event" not in raw
    assert "playhead" not in raw
    assert [peer.address for peer in answer.peers] == [("127.0.0.2", 6881)]


@pytest.mark.parametrize("event", ["started", "stopped", "completed"])
async def test_events_and_the_playhead_are_told(http, event):
    seen = []
    async with tracker(asked_of(seen)) as url:
        await announce(http, url, event=event, playhead=12.34567, want=7)
    query = seen[0].query
    assert (query["event"], query["playhead"], query["numwant"]) == (event, "12.346", "7")


async def test_an_announce_url_with_a_query_keeps_it(http):
    """Private trackers put a passkey there."""
    seen = []
    async with tracker(asked_of(seen)) as url:
        await announce(http, f"{url}?passkey=a%20b")
    assert "passkey=a%20b&info_hash=%00%01" in seen[0].raw_path


async def test_a_refusal_over_http_is_told(http):
    async def refuse(request):
        return web.Response(body=bencode2.bencode({b"failure reason": b"go away"}))

    async with tracker(refuse) as url:
        with pytest.raises(SwarmError, match="refuses: go away"):
            await announce(http, url)


async def test_an_error_page_is_no_answer(http):
    async def missing(request):
        return web.Response(status=404, text="<html>nothing here</html>")

    async with tracker(missing) as url:
        with pytest.raises(SwarmError, match="does not answer like a tracker"):
            await announce(http, url)


async def test_an_answer_in_many_chunks_is_read_whole(http):
    body = bencode2.bencode({b"interval": 77, b"peers": compact(*[("1.2.3.4", 80)] * 300)})

    async def drip(request):
        response = web.StreamResponse()
        await response.prepare(request)
        for start in range(0, len(body), 100):
            await response.write(body[start : start + 100])
        return response

    async with tracker(drip) as url:
        answer = await announce(http, url)
    assert (answer.interval, len(answer.peers)) == (77, 300)


async def test_an_answer_without_an_end_is_left(http):
    left = asyncio.get_running_loop().create_future()

    async def flood(request):
        response = web.StreamResponse()
        await response.prepare(request)
        try:
            while True:
                await response.write(b"x" * 65536)
        except (ConnectionError, asyncio.CancelledError):
            left.set_result(None)
            raise

    async with tracker(flood) as url, asyncio.timeout(5):
        with pytest.raises(SwarmError, match="more than any answer"):
            await announce(http, url)
        await left


async def test_a_refused_connection_names_the_tracker(http):
    with socket.socket() as free:
        free.bind((HOST, 0))
        url = f"http://{HOST}:{free.getsockname()[1]}/announce"
        with pytest.raises(SwarmError, match=rf"{url} cannot be reached"):
            await announce(http, url)


@pytest.mark.parametrize("url", ["http://", "http:///announce", "udp://127.0.0.1:1", "no url"])
async def test_a_url_that_is_none_is_one_line(http, url):
    with pytest.raises(SwarmError, match="cannot be reached"):
        await announce(http, url)


async def test_a_lost_socket_is_a_failure_like_any_other():
    with pytest.raises(SwarmError, match="cannot be reached: File descriptor 59"):
        await announce(LostSocket(), "http://127.0.0.1:1/announce")


async def test_a_tracker_that_hangs_up_is_told(http):
    async def hang_up(request):
        request.transport.close()
        return web.Response()

    async with tracker(hang_up) as url:
        with pytest.raises(SwarmError, match="cannot be reached"):
            await announce(http, url)
