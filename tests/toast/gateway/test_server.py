"""The gateway over real sockets: the right bytes, in time, and never a wrong or a short film."""

import asyncio
import socket
from urllib.parse import urlsplit

import aiohttp
import av
import pytest

from tests.toast.gateway.films import FILM, ArrivingSource, FileSource, opened
from toast.gateway import Gateway, GatewayError


async def test_a_whole_film_comes_through_bit_by_bit():
    async with opened(FileSource(FILM)) as (gateway, client), client.get(gateway.url) as answer:
        assert gateway.url.endswith("/a%20film%20%26%20more.mp4")
        assert await answer.read() == FILM
        assert answer.status == 200
        assert answer.headers["Accept-Ranges"] == "bytes"
        assert answer.headers["ETag"] == '"film-1"'
        assert answer.headers["Content-Type"] == "video/mp4"
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["transferMode.dlna.org"] == "Streaming"
        assert gateway.bytes_sent == len(FILM)


@pytest.mark.parametrize(
    ("asked", "status", "start", "end"),
    [
        ("bytes=0-0", 206, 0, 1),
        ("bytes=1000-60000", 206, 1000, 60001),
        ("bytes=204000-", 206, 204000, 204800),
        ("bytes=-7", 206, 204793, 204800),
        ("bytes=204799-999999", 206, 204799, 204800),
        ("pages=1-2", 200, 0, 204800),
    ],
)
async def test_a_range_is_that_range(asked, status, start, end):
    source = FileSource(FILM)
    async with (
        opened(source) as (gateway, client),
        client.get(gateway.url, headers={"Range": asked}) as answer,
    ):
        assert await answer.read() == FILM[start:end]
        assert answer.status == status
        assert answer.headers["Content-Length"] == str(end - start)
        if status == 206:
            assert answer.headers["Content-Range"] == f"bytes {start}-{end - 1}/{len(FILM)}"
    assert source.asked == [(start, end)]
    assert source.left == 1


async def test_answers_without_content():
    source = FileSource(FILM)
    async with opened(source) as (gateway, client):
        async with client.get(gateway.url, headers={"Range": "bytes=204800-"}) as answer:
            assert answer.status == 416
            assert answer.headers["Content-Range"] == "bytes */204800"
        async with client.head(gateway.url, headers={"Range": "bytes=0-9"}) as answer:
            assert (answer.status, answer.headers["Content-Length"]) == (200, "204800")
        async with client.get(gateway.url, headers={"If-None-Match": '"film-1"'}) as answer:
            assert (answer.status, await answer.read()) == (304, b"")
        async with client.post(gateway.url, data=b"x") as answer:
            assert (answer.status, answer.headers["Allow"]) == (405, "GET,HEAD,OPTIONS")
        async with client.get(f"{gateway.url}.txt") as answer:
            assert answer.status == 404
            assert urlsplit(gateway.url).path in await answer.text()
        async with client.get(f"{gateway.url}/more") as answer:
            assert answer.status == 404
            assert gateway.url in await answer.text()
    assert source.asked == []


async def test_a_part_of_another_film_is_not_continued():
    """If-Range with another tag: the whole film, not a part glued to what the player has."""
    asked = {"Range": "bytes=100-199", "If-Range": '"film-0"'}
    async with (
        opened(FileSource(FILM)) as (gateway, client),
        client.get(gateway.url, headers=asked) as answer,
    ):
        assert (answer.status, await answer.read()) == (200, FILM)


async def test_a_connection_serves_one_request_after_another():
    """HEAD, 304, 416 and 206 leave the connection in order for what follows."""
    async with opened(FileSource(FILM), max_connections=1) as (gateway, client):
        for field, status in (("If-None-Match", 304), ("Range", 206), ("Range", 206)):
            value = '"film-1"' if field == "If-None-Match" else "bytes=5-14"
            async with client.get(gateway.url, headers={field: value}) as answer:
                assert answer.status == status
                assert await answer.read() == (b"" if status == 304 else FILM[5:15])
            async with client.head(gateway.url) as answer:
                assert answer.status == 200


async def test_foreign_names_and_pages_are_turned_away():
    source = FileSource(FILM)
    async with opened(source) as (gateway, client):
        for fields in (
            {"Host": "rebound.example"},
            {"Origin": "https://evil.example"},
            {"Origin": "null"},
            {"Sec-Fetch-Site": "cross-site"},
        ):
            async with client.get(gateway.url, headers=fields) as answer:
                assert answer.status == 403
                assert "Access-Control-Allow-Origin" not in answer.headers
    assert source.asked == []


async def test_a_local_page_may_read_and_ask_beforehand():
    page = {"Origin": "http://localhost:3000"}
    async with opened(FileSource(FILM)) as (gateway, client):
        async with client.options(gateway.url, headers=page) as answer:
            assert answer.status == 204
            assert "Range" in answer.headers["Access-Control-Allow-Headers"]
        async with client.get(gateway.url, headers=page) as answer:
            assert answer.headers["Access-Control-Allow-Origin"] == page["Origin"]
            assert "Content-Range" in answer.headers["Access-Control-Expose-Headers"]


async def test_a_reader_waits_for_bytes_and_gets_them_when_they_come():
    source = ArrivingSource(FILM, chunk=1000)
    async with opened(source) as (gateway, client):
        await source.arrive(5000)
        async with client.get(gateway.url) as answer:
            assert await answer.content.readexactly(5000) == FILM[:5000]
            await source.waits.wait()
            rest = asyncio.ensure_future(answer.content.readexactly(1))
            assert gateway.readers == 1
            assert not rest.done()
            await source.arrive(len(FILM))
            assert await rest + await answer.read() == FILM[5000:]


async def test_a_reader_who_leaves_ends_the_wait():
    source = ArrivingSource(FILM)
    async with opened(source) as (gateway, client):
        wait = asyncio.ensure_future(client.get(gateway.url))
        await source.waits.wait()
        wait.cancel()
        await asyncio.wait_for(source.gone.wait(), 5)
        assert source.left == 1


async def test_a_film_that_cannot_be_had_is_a_503_with_the_reason():
    source = ArrivingSource(FILM)
    await source.arrive(0, fails=True)
    async with opened(source) as (gateway, client), client.get(gateway.url) as answer:
        assert answer.status == 503
        assert answer.headers["Retry-After"] == "1"
        assert "no peer and no server" in await answer.text()


async def test_a_film_that_breaks_off_is_never_taken_for_whole():
    source = ArrivingSource(FILM, chunk=1000)
    await source.arrive(3000, fails=True)
    async with opened(source) as (gateway, client), client.get(gateway.url) as answer:
        assert answer.status == 200
        with pytest.raises(aiohttp.ClientPayloadError):
            await answer.read()


@pytest.mark.parametrize("there", [0, 1000])
async def test_a_source_that_ends_early_is_never_taken_for_whole(there):
    class Short(FileSource):
        async def read(self, start, end):
            if there:
                yield self.data[start : start + there]

    async with opened(Short(FILM)) as (gateway, client):
        with pytest.raises(aiohttp.ClientError):
            async with client.get(gateway.url) as answer:
                await answer.read()


async def test_a_source_that_gives_too_much_is_cut_to_the_range():
    class Long(FileSource):
        async def read(self, start, end):
            yield self.data[start:]

    async with opened(Long(FILM)) as (gateway, client):
        for _ in range(2):
            async with client.get(gateway.url, headers={"Range": "bytes=3-9"}) as answer:
                assert await answer.read() == FILM[3:10]


async def test_a_slow_player_slows_the_source():
    """Of 256 MiB no more is taken from the source than sockets hold, while the player waits."""

    class Endless(FileSource):
        film_bytes = 256 * 1024 * 1024
        taken = 0

        def __init__(self):
            self.block = bytes(1024 * 1024)

        async def read(self, start, end):
            for _ in range(start, end, len(self.block)):
                self.taken += len(self.block)
                yield self.block

    source = Endless()
    async with opened(source) as (gateway, client), client.get(gateway.url) as answer:
        await answer.content.readexactly(1024 * 1024)
        assert source.taken < 32 * 1024 * 1024


async def test_connections_are_bounded():
    source = ArrivingSource(FILM)
    async with opened(source, max_connections=2) as (gateway, client):
        held = []
        for _ in range(2):
            source.waits.clear()
            held.append(asyncio.ensure_future(client.get(gateway.url)))
            await source.waits.wait()
        assert gateway.readers == 2
        with pytest.raises(aiohttp.ClientError):
            await client.get(gateway.url)
        for wait in held:
            wait.cancel()


async def test_closing_ends_a_reader_who_waits():
    source = ArrivingSource(FILM)
    async with opened(source, closing_seconds=0.01) as (gateway, client):
        wait = asyncio.ensure_future(client.get(gateway.url))
        await source.waits.wait()
        await asyncio.wait_for(gateway.close(), 5)
        with pytest.raises(aiohttp.ClientError):
            await wait
        assert source.left == 1
        with pytest.raises(aiohttp.ClientError):
            await client.get(gateway.url)


async def test_idle_means_that_nothing_is_on_its_way():
    source = ArrivingSource(FILM)
    async with opened(source) as (gateway, client):
        await asyncio.wait_for(gateway.wait_idle(), 1)
        reading = asyncio.ensure_future(client.get(gateway.url))
        await source.waits.wait()
        idle = asyncio.ensure_future(gateway.wait_idle())
        await asyncio.sleep(0)
        assert not idle.done()
        await source.arrive(len(FILM))
        async with await reading as answer:
            assert await answer.read() == FILM
            await asyncio.wait_for(idle, 5)
            assert gateway.readers == 0


async def test_a_taken_port_is_one_clear_line():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(GatewayError, match=f"port {port}.*choose another port"):
            await Gateway(FileSource(FILM), port=port).start()


@pytest.mark.parametrize(("host", "port"), [("localhost", 0), ("nowhere", 0), ("127.0.0.1", 70000)])
async def test_an_address_that_is_none_is_one_clear_line(host, port):
    with pytest.raises(GatewayError, match="cannot listen"):
        await Gateway(FileSource(FILM), host=host, port=port).start()


@pytest.mark.parametrize("arriving", [False, True])
async def test_a_real_decoder_decodes_every_frame(small_film, arriving):
    """Also while the film is still arriving behind it."""
    source = (ArrivingSource if arriving else FileSource)(small_film.read_bytes(), chunk=65_536)
    source.film_name = "small.mp4"

    def decode(url):
        with av.open(url) as film:
            return sum(1 for frame in film.decode() if isinstance(frame, av.VideoFrame))

    async with opened(source) as (gateway, _):
        decoded = asyncio.ensure_future(asyncio.to_thread(decode, gateway.url))
        if arriving:
            for end in range(0, source.film_bytes, 100_000):
                await source.arrive(end)
                await asyncio.wait_for(source.waits.wait(), 5)
                source.waits.clear()
            await source.arrive(source.film_bytes)
        assert await decoded == 150
