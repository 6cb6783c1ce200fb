import asyncio
import contextlib
import socket
from urllib.parse import quote_from_bytes

import aiohttp
import bencode2
import pytest
from yarl import URL

from tracker.errors import TrackerError
from tracker.messages import pack_address
from tracker.server import serve_tracker
from tracker.settings import TrackerSettings
from tracker.state import Swarms

HASH = bytes([0, 255, *range(0x20, 0x32)])
ESCAPED = quote_from_bytes(HASH, safe="")


@contextlib.asynccontextmanager
async def tracker_and_client(**settings):
    async with (
        serve_tracker(TrackerSettings(port=0, **settings), seed=1) as server,
        aiohttp.ClientSession() as client,
    ):

        async def get(path):
            async with client.get(URL(server.url + path, encoded=True)) as response:
                return response.status, response.content_type, await response.read()

        yield server, get


def announce(name, port, extra="", info_hash=ESCAPED):
    return f"/announce?info_hash={info_hash}&peer_id={name:->20}&port={port}&left=9{extra}"


async def raw(server, request):
    """Send bytes as they are and read until the tracker closes."""
    port = URL(server.url).port
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    received = await reader.read()
    writer.close()
    await writer.wait_closed()
    return received


async def test_two_clients_meet():
    async with tracker_and_client() as (server, get):
        status, content_type, body = await get(announce("a", 7001, "&event=started"))
        assert (status, content_type) == (200, "text/plain")
        assert bencode2.bdecode(body)[b"peers"] == b""
        _, _, body = await get(announce("b", 7002))
        assert bencode2.bdecode(body)[b"peers"] == bytes([127, 0, 0, 1]) + (7001).to_bytes(2, "big")
        _, _, body = await get(f"/scrape?info_hash={ESCAPED}")
        assert bencode2.bdecode(body)[b"files"] == {
            HASH: {b"complete": 0, b"downloaded": 0, b"incomplete": 2}
        }
        assert server.announce_url == f"{server.url}/announce"


async def test_playhead_reaches_other_viewers():
    async with tracker_and_client() as (_, get):
        await get(announce("a", 7001, "&playhead=12.5"))
        _, _, body = await get(announce("b", 7002, "&compact=0"))
        (peer,) = bencode2.bdecode(body)[b"peers"]
        assert peer[b"peer id"] == b"-" * 19 + b"a"
        assert 12_500 <= peer[b"playhead"] < 14_500


async def test_loopback_may_speak_for_another_address():
    async with tracker_and_client() as (_, get):
        await get(announce("seed", 7001, "&ip=203.0.113.5"))
        _, _, body = await get(announce("b", 7002, "&compact=0"))
        (peer,) = bencode2.bdecode(body)[b"peers"]
        assert peer[b"ip"] == b"203.0.113.5"


async def test_strangers_may_not_speak_for_another_address():
    """With BEP 3's `ip` believed, anyone could have a whole swarm connect to a victim."""
    async with tracker_and_client() as (server, _):
        stranger = pack_address("198.51.100.7")
        query = announce("a", 7001, "&ip=203.0.113.5").partition("?")[2].encode()
        server.service.announce(query, stranger, 0.0)
        query = announce("b", 7002, "&compact=0").partition("?")[2].encode()
        (peer,) = bencode2.bdecode(server.service.announce(query, stranger, 0.0))[b"peers"]
        assert peer[b"ip"] == b"198.51.100.7"


async def test_ipv6_viewers_meet():
    """BEP 7."""
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError as error:
        pytest.skip(f"no IPv6 on loopback: {error}")
    async with tracker_and_client(host="::1") as (server, get):
        assert server.url.startswith("http://[::1]:")
        await get(announce("a", 7001))
        _, _, body = await get(announce("b", 258))
        assert bencode2.bdecode(body)[b"peers6"] == b"\0" * 15 + b"\1" + (7001).to_bytes(2, "big")


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/announce", b"info_hash is missing"),
        ("/scrape", b"info_hash is missing: this tracker lists no torrents"),
        (announce("a", 7001, "&left=5"), b"left is given twice"),
        (announce("a", 7001, "&x=" + "x" * 4096), b"the query is longer than 4096 bytes"),
        (announce("a", 7001, info_hash="%c3%28" * 9), b"info_hash must be 20 bytes, not 18"),
    ],
)
async def test_failures_are_bencoded_reasons(path, reason):
    """BEP 3 `failure reason`, with status 200, since clients do not read the body of another."""
    async with tracker_and_client() as (server, get):
        status, _, body = await get(path)
        assert status == 200
        assert bencode2.bdecode(body) == {b"failure reason": reason}
        assert server.statistics()["failures"] == 1


async def test_a_defect_is_shown_to_the_operator_alone(monkeypatch, caplog):
    def explode(*_):
        raise ZeroDivisionError("the inside")

    monkeypatch.setattr(Swarms, "announce", explode)
    async with tracker_and_client() as (_, get):
        _, _, body = await get(announce("a", 7001))
    assert list(bencode2.bdecode(body)) == [b"failure reason"]
    assert b"inside" not in body
    assert "the inside" in caplog.text


async def test_counters_follow_what_happens():
    async with tracker_and_client() as (server, get):
        assert (await get("/healthz"))[2] == b"ok\n"
        await get(announce("a", 7001))
        await get(f"/scrape?info_hash={ESCAPED}")
        await get("/scrape")
        numbers = server.statistics()
        assert {name: numbers[name] for name in ("announces", "scrapes", "failures")} == {
            "announces": 1,
            "scrapes": 2,
            "failures": 1,
        }
        assert (numbers["torrents"], numbers["peers"]) == (1, 1)
        status, content_type, _ = await get("/status")
        assert (status, content_type) == (200, "application/json")


@pytest.mark.parametrize(
    "request_line",
    [
        pytest.param(announce("a", 7001), id="answer"),
        pytest.param("/announce?info_hash=%FF%FE", id="failure"),
        pytest.param("/announce?info_hash=\udcff", id="unescaped"),
        pytest.param("/nowhere", id="no-such-route"),
        pytest.param("/ HTTP/9.9 nonsense", id="not-http"),
        pytest.param("/" + "x" * 20_000, id="endless-line"),
    ],
)
async def test_sent_bytes_are_counted_to_the_byte(request_line, caplog):
    """Also those of answers that the HTTP library writes by itself; and strangers fill no log."""
    async with tracker_and_client() as (server, _):
        request = f"GET {request_line} HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n"
        received = await raw(server, request.encode("utf-8", "surrogateescape"))
        assert len(received) > 50
        assert server.statistics()["bytes_sent"] == len(received)
        assert b"Traceback" not in received
    assert not caplog.records


async def test_post_is_refused():
    async with tracker_and_client() as (server, _):
        received = await raw(
            server,
            b"POST /announce HTTP/1.1\r\nHost: t\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
        )
        assert received.startswith(b"HTTP/1.1 405")


async def test_connections_over_the_limit_are_closed_unanswered():
    async with tracker_and_client(max_connections=2) as (server, _):
        port = URL(server.url).port
        held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
        with contextlib.suppress(ConnectionError):
            assert await raw(server, b"GET /healthz HTTP/1.1\r\nHost: t\r\n\r\n") == b""
        numbers = server.statistics()
        assert (numbers["connections_open"], numbers["connections_refused"]) == (2, 1)
        for _, writer in held:
            writer.close()
            await writer.wait_closed()


async def test_the_place_of_a_closed_connection_is_free_again():
    async with tracker_and_client(max_connections=1) as (server, _):
        for _ in range(3):
            request = b"GET /healthz HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n"
            assert b"ok" in await raw(server, request)
        assert server.statistics()["connections_accepted"] == 3


async def test_a_client_that_never_finishes_its_request_is_cut_off():
    """One that trickles header lines is, too: only our answers keep a connection alive."""
    async with tracker_and_client(idle_timeout_seconds=0.1) as (server, _):
        with contextlib.suppress(ConnectionError):
            assert await raw(server, b"GET /announce HTTP/1.1\r\nX-Slow: ") == b""
        assert server.statistics()["connections_timed_out"] == 1


async def test_a_taken_port_is_one_clear_line():
    async with tracker_and_client() as (server, _):
        port = URL(server.url).port
        with pytest.raises(TrackerError, match=rf"cannot listen on 127\.0\.0\.1:{port}: address"):
            async with serve_tracker(TrackerSettings(port=port), seed=1):
                pass


async def test_a_host_that_does_not_exist_is_one_clear_line():
    with pytest.raises(TrackerError, match="cannot listen on"):
        async with serve_tracker(TrackerSettings(host="256.0.0.1", port=0), seed=1):
            pass


async def test_leaving_closes_everything():
    async with tracker_and_client() as (server, get):
        await get("/healthz")
        port = URL(server.url).port
    with pytest.raises(ConnectionError):
        await asyncio.open_connection("127.0.0.1", port)


async def test_pages_for_people_and_for_machines():
    async with tracker_and_client() as (_, get):
        await get(announce("a", 7001))
        status, content_type, body = await get("/")
        assert (status, content_type) == (200, "text/html")
        assert b"<td>peers</td><td>1</td>" in body
        _, _, body = await get("/metrics")
        assert b"# TYPE toast_tracker_peers gauge\ntoast_tracker_peers 1\n" in body
        assert b"# TYPE toast_tracker_announces_total counter\n" in body


async def test_who_comes_back_after_a_restart_is_spread():
    """In the first interval waits differ; later each is told the whole."""
    async with tracker_and_client() as (server, _):
        soon = {server.service.interval_seconds(server._started + 1.0) for _ in range(100)}
        assert soon <= set(range(15, 31))
        assert len(soon) > 5
        assert server.service.interval_seconds(server._started + 30.0) == 30
