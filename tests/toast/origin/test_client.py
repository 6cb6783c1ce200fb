"""The client of the VoD server against servers that answer well, badly, late or not at all."""

import asyncio
import re
import socket

import aiohttp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.toast.origin.server import LostSocket, ScriptedServer, film_server
from tests.toast.swarm.world import random_film
from toast.origin import OriginClient, OriginError, OriginSettings

HOST = "127.45.0.1"
FILM = random_film(300_000)
SIZE = len(FILM)
SETTINGS = OriginSettings(connect_seconds=1.0, silence_seconds=0.1)


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
async def http():
    async with aiohttp.ClientSession(auto_decompress=False) as session:
        yield session


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
async def origin():
    """An honest server that has the film."""
    async with film_server(FILM, HOST) as server:
        yield server


@pytest.fixture
async def scripted():
    """Start servers that follow a script: `url, server = await scripted(answer)`."""
    started = []

    async def start(answer, **options):
        server = ScriptedServer(answer, **options)
        started.append(server)
        return await server.start(HOST), server

    yield start
    for server in started:
        await server.stop()


@pytest.fixture
def client(http, clock):
    def make(*urls, film_bytes=SIZE, settings=SETTINGS):
        return OriginClient(http, urls, film_bytes=film_bytes, clock=clock, settings=settings)

    return make


def closed_url():
    """A URL at which nobody listens."""
    with socket.socket() as free:
        free.bind((HOST, 0))
        return f"http://{HOST}:{free.getsockname()[1]}/film"


def answer(status="206 Partial Content", body=b"", **headers):
    """A raw answer; header names with underscores for hyphens, None leaves one out."""
    fields = {"Content_Length": len(body), "Connection": "close"} | headers
    head = "".join(
        f"{name.replace('_', '-')}: {value}\r\n"
        for name, value in fields.items()
        if value is not None
    )
    return f"HTTP/1.1 {status}\r\n{head}\r\n".encode() + body


def part(start, end, total=SIZE, body=None, **headers):
    body = FILM[start:end] if body is None else body
    return answer(body=body, Content_Range=f"bytes {start}-{end - 1}/{total}", **headers)


# -- what is right ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "case", [(0, 1), (0, 100), (65536, 131072), (299_999, 300_000), (0, 300_000)]
)
async def test_the_bytes_asked_for_arrive_and_no_others(client, origin, case):
    start, end = case
    fetched = await client(origin.url).fetch(start, end)
    assert fetched.data == FILM[start:end]
    assert origin.ranges == [(start, end)]


async def test_one_range_is_asked_for_and_no_compression(client, scripted):
    url, server = await scripted(part(100, 200))
    await client(url).fetch(100, 200)
    (request,) = server.requests
    assert b"\r\nRange: bytes=100-199\r\n" in request
    assert b"\r\nAccept-Encoding: identity\r\n" in request


async def test_the_cost_counts_every_byte_of_the_answer(client, scripted):
    """Operator bytes are counted at the server's socket, headers included."""
    raw = part(0, 1000, X_Served_By="vod-7", Server="test")
    url, _ = await scripted(raw)
    fetched = await client(url).fetch(0, 1000)
    assert fetched.cost == len(raw)


async def test_the_whole_film_may_come_with_200(client, scripted):
    url, _ = await scripted(answer("200 OK", FILM))
    fetched = await client(url).fetch(0, len(FILM))
    assert fetched.data == FILM


async def test_several_fetches_at_once_do_not_mix(client, origin):
    ours = client(origin.url)
    ranges = [(start, start + 30_000) for start in range(0, 300_000, 30_000)]
    fetched = await asyncio.gather(*(ours.fetch(*each) for each in ranges))
    assert b"".join(part.data for part in fetched) == FILM


async def test_a_redirect_is_followed(client, scripted, origin):
    url, _ = await scripted(answer("302 Found", Location=origin.url))
    fetched = await client(url).fetch(5, 10)
    assert fetched.data == FILM[5:10]


# -- what is wrong ---------------------------------------------------------------------------------


async def fails(client, url, start=0, end=1000, words=""):
    ours = client(url)
    with pytest.raises(OriginError, match=words) as caught:
        await asyncio.wait_for(ours.fetch(start, end), 5)
    assert "\n" not in str(caught.value)
    assert not ours.up
    assert ours.last_error == str(caught.value)


@pytest.mark.parametrize("status", ["404 Not Found", "403 Forbidden", "416 No", "204 x"])
async def test_a_refusal_tells_its_number(client, scripted, status):
    url, _ = await scripted(answer(status))
    await fails(client, url, words=f"answers {status[:3]}")


async def test_the_whole_film_instead_of_a_part_is_not_read(client, scripted):
    """A server without ranges would send gigabytes: it is left at once."""
    endless = answer("200 OK", FILM[:5000], Content_Length=10**12)
    url, server = await scripted(endless, hang=True)
    await fails(client, url, words="answers 200 to a range request")
    await asyncio.wait_for(server.left.wait(), 5)


@pytest.mark.parametrize(
    "content_range",
    [
        None,
        "",
        "bytes 0-998/300000",
        "bytes 1-1000/300000",
        "bytes 0-1000/300000",
        "bytes */300000",
        "bytes 0-999/*",
        "items 0-999/300000",
        "bytes 0-999",
        "bytes 0-999/300000, bytes 5-6/300000",
        "bytes 0-999/" + "9" * 5000,
    ],
)
async def test_another_range_than_was_asked_for_is_refused(client, scripted, content_range):
    url, _ = await scripted(answer(body=FILM[:1000], Content_Range=content_range))
    await fails(client, url, words="another range")


@pytest.mark.parametrize("total", [1000, 299_999, 300_001])
async def test_a_film_of_another_size_is_refused(client, scripted, total):
    url, _ = await scripted(part(0, 1000, total=total))
    await fails(client, url, words=f"another film there .{total} bytes")


async def test_more_bytes_than_were_asked_for_are_not_collected(client, scripted):
    url, server = await scripted(part(0, 1000, body=FILM, Content_Length=10**12), hang=True)
    await fails(client, url, words="more than was asked for")
    await asyncio.wait_for(server.left.wait(), 5)


async def test_fewer_bytes_than_were_promised_are_refused(client, scripted):
    url, _ = await scripted(part(0, 1000, body=FILM[:600], Content_Length=1000))
    await fails(client, url, words="cannot be reached")


async def test_fewer_bytes_than_the_range_are_refused(client, scripted):
    """The header promises the range, the body is shorter and says so itself."""
    url, _ = await scripted(part(0, 1000, body=FILM[:600]))
    await fails(client, url, words="broke off after 600 bytes")


async def test_a_server_that_breaks_off_without_a_length_is_refused(client, scripted):
    url, _ = await scripted(part(0, 1000, body=FILM[:600], Content_Length=None))
    await fails(client, url, words="broke off after 600 bytes")


@pytest.mark.parametrize(
    "raw",
    [b"", b"\r\n\r\n", b"SSH-2.0-OpenSSH_9.2\r\n", b"HTTP/1.1 206\r\nContent-Le", b"\xff" * 99],
)
async def test_what_is_no_http_is_refused(client, scripted, raw):
    url, _ = await scripted(raw)
    await fails(client, url, words="cannot be reached")


async def test_a_header_without_an_end_is_refused(client, scripted):
    url, _ = await scripted(b"HTTP/1.1 206 OK\r\nX: " + b"x" * 100_000, hang=True)
    await fails(client, url, words="cannot be reached")


@pytest.mark.parametrize("raw", [b"", part(0, 1000, body=b""), part(0, 1000, body=FILM[:600])])
async def test_a_server_that_falls_silent_is_given_up(client, scripted, raw):
    """Before its head, before its body, in the middle of it."""
    raw = re.sub(rb"Content-Length: \d+", b"Content-Length: 1000", raw)
    url, server = await scripted(raw, hang=True)
    await fails(client, url, words="cannot be reached")
    await asyncio.wait_for(server.left.wait(), 5)


async def test_nobody_there_is_told_with_the_url(client):
    url = closed_url()
    await fails(client, url, words=rf"VoD server {url} cannot be reached")


async def test_a_lost_socket_is_a_failure_like_any_other(clock):
    url = closed_url()
    client = OriginClient(LostSocket(), (url,), film_bytes=SIZE, clock=clock)
    with pytest.raises(OriginError, match=rf"{url} cannot be reached: File descriptor 59"):
        await client.fetch(0, 100)
    assert client.retry_in > 0


async def test_endless_redirects_are_given_up(client, scripted):
    url, server = await scripted(b"")
    server.answer = answer("302 Found", Location=url)
    await fails(client, url, words="cannot be reached")
    assert len(server.requests) <= 5


@pytest.mark.parametrize("url", ["http://", "ftp://127.0.0.1/film", "http://[bad/", "film"])
async def test_a_url_that_is_none_is_one_line(client, url):
    await fails(client, url, words="cannot be reached")


async def test_no_url_at_all_says_what_to_do(client):
    ours = client()
    assert not ours.up
    with pytest.raises(OriginError, match="--origin"):
        await ours.fetch(0, 1)


# -- failures in time ------------------------------------------------------------------------------


async def test_the_next_url_is_tried_after_a_failure(client, origin):
    ours = client(closed_url(), origin.url)
    with pytest.raises(OriginError):
        await ours.fetch(0, 10)
    fetched = await ours.fetch(0, 10)
    assert fetched.data == FILM[:10]
    assert (ours.up, ours.retry_in, ours.last_error) == (True, 0.0, None)


async def test_two_failures_at_once_still_lead_to_the_next_url(client, origin):
    ours = client(closed_url(), origin.url)
    await asyncio.gather(ours.fetch(0, 10), ours.fetch(10, 20), return_exceptions=True)
    assert (await ours.fetch(0, 10)).data == FILM[:10]


async def test_what_a_broken_answer_cost_is_counted(client, scripted):
    whole = part(0, 100)
    url, _ = await scripted(whole[:-40])
    ours = client(url)
    with pytest.raises(OriginError):
        await ours.fetch(0, 100)
    assert ours.received_bytes >= len(whole) - 40 - len(b"Connection: close")


async def test_one_that_works_is_kept_to(client, origin, scripted):
    other, server = await scripted(part(0, 10))
    ours = client(origin.url, other)
    for _ in range(3):
        await ours.fetch(0, 10)
    assert (len(origin.ranges), server.requests) == (3, [])


async def test_tries_come_ever_less_often_up_to_a_limit(client, clock):
    ours = client(closed_url())
    waits = []
    for _ in range(8):
        with pytest.raises(OriginError):
            await ours.fetch(0, 10)
        assert not ours.up
        waits.append(ours.retry_in)
        clock.now += ours.retry_in
        assert (ours.up, ours.retry_in) == (True, 0.0)
    assert waits == [0.25, 0.5, 1.0, 2.0, 4.0, 4.0, 4.0, 4.0]


async def test_just_before_its_time_it_is_still_down(client, clock):
    ours = client(closed_url())
    with pytest.raises(OriginError):
        await ours.fetch(0, 10)
    clock.now += 0.2
    assert not ours.up
    assert not ours.estimate().up
    assert ours.retry_in == pytest.approx(0.05)


async def test_one_success_forgets_the_failures(client, origin, clock):
    ours = client(origin.url)
    await origin.stop()
    for _ in range(4):
        with pytest.raises(OriginError):
            await ours.fetch(0, 10)
    assert ours.retry_in == 2.0
    await origin.start()
    clock.now += 2.0
    await ours.fetch(0, 10)
    assert ours.up
    await origin.stop()
    with pytest.raises(OriginError):
        await ours.fetch(0, 10)
    assert ours.retry_in == 0.25


# -- estimates -------------------------------------------------------------------------------------


def test_unknown_is_assumed(clock):
    ours = OriginClient(None, ("http://a/f",), film_bytes=10, clock=clock)
    estimate = ours.estimate()
    assert (estimate.rtt_seconds, estimate.rate, estimate.up) == (0.1, 2_500_000.0, True)


def test_until_a_rate_was_seen_a_connection_over_a_long_way_is_taken_to_be_cold(clock):
    """A piece takes it somewhat more than four round trips; the first answer took two."""
    ours = OriginClient(None, ("http://a/f",), film_bytes=10, clock=clock)
    ours._rtts.append(0.4)
    assert ours.estimate().rate == pytest.approx(256 * 1024 / (4.2 * 0.2))
    ours._rtts[0] = 0.002
    assert ours.estimate().rate == SETTINGS.assumed_rate


async def test_a_first_answer_replaces_what_was_assumed(client, origin):
    ours = client(origin.url)
    ours._clock = asyncio.get_running_loop().time
    await ours.fetch(0, 200_000)
    estimate = ours.estimate()
    assert 0 < estimate.rtt_seconds != SETTINGS.assumed_rtt_seconds
    assert estimate.rate > 0
    assert estimate.rate != SETTINGS.assumed_rate


async def test_a_small_answer_says_nothing_of_the_rate(client, origin):
    ours = client(origin.url)
    ours._clock = asyncio.get_running_loop().time
    await ours.fetch(0, 60_000)
    assert ours.estimate().rate == SETTINGS.assumed_rate


@settings(deadline=None, derandomize=True)
@given(
    st.lists(st.floats(0.001, 10), min_size=1, max_size=40),
    st.lists(st.floats(1, 1e9), min_size=1, max_size=40),
)
def test_estimates_are_among_what_was_seen_and_on_the_careful_side(rtts, rates):
    ours = OriginClient(None, ("http://a/f",), film_bytes=10, clock=Clock())
    ours._rtts.extend(rtts)
    ours._rates.extend(rates)
    estimate = ours.estimate()
    recent_rtts, recent_rates = sorted(rtts[-20:]), sorted(rates[-20:])
    assert estimate.rtt_seconds in recent_rtts
    assert estimate.rate in recent_rates
    assert estimate.rtt_seconds >= recent_rtts[len(recent_rtts) // 2]
    assert estimate.rate <= recent_rates[len(recent_rates) // 2]
