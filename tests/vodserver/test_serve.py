"""HTTP and seed together, from first bind to last goodbye."""

import asyncio
import hashlib
import json
import socket
from pathlib import Path

import aiohttp
import pytest

from vodserver.errors import ServeError
from vodserver.serve import serve
from vodserver.settings import ServeSettings

HOST = "127.32.0.1"
HAS_IPV6 = Path("/proc/net/if_inet6").exists()


class Running:
    """A server that runs as a task in this loop."""

    def __init__(self, store, settings):
        self.listening = asyncio.get_running_loop().create_future()
        self._stop = asyncio.Event()
        self._task = asyncio.create_task(
            serve(store, settings, ready=self.listening.set_result, stop=self._stop)
        )

    async def stop(self):
        self._stop.set()
        await self._task


@pytest.mark.slow
async def test_a_film_goes_out_over_both_ways_and_both_are_counted(
    pristine, tmp_path, stock_client
):
    with pristine.open() as store:
        running = Running(store, ServeSettings(host=HOST, port=0))
        listening = await running.listening
        async with aiohttp.ClientSession(listening.url) as http:
            described = await (await http.get("/titles/clock")).json()
            film = await (await http.get(described["content"])).read()
            torrent = await (await http.get(described["torrent"])).read()
            client = stock_client(torrent, tmp_path, "127.32.0.2")
            await client.download(HOST, listening.seed_port)
            status = await (await http.get("/status")).json()
        await running.stop()

    wanted = described["sha256"]
    assert hashlib.sha256(film).hexdigest() == wanted
    assert hashlib.sha256((tmp_path / "clock.mp4").read_bytes()).hexdigest() == wanted
    assert status["seed_payload_bytes_sent"] == len(film)
    assert len(film) < status["seed_bytes_sent"] < 1.02 * len(film) + 5000
    assert len(film) < status["http_bytes_sent"] < len(film) + len(torrent) + 5000
    assert status["seed"]["titles_offered"] == 1


@pytest.mark.slow
async def test_the_seed_announces_itself_to_the_tracker(pristine):
    """A tracker of a few lines sees who announces: the torrent's hash, our prefix, our port."""
    seen = asyncio.get_running_loop().create_future()
    left = asyncio.get_running_loop().create_future()
    heard = []

    async def tracker(request):
        if request.query.get("event") == "stopped":
            left.set_result(request.remote)
        elif not heard:
            # It says goodbye only to a tracker whose answer it has taken in: that takes a moment.
            heard.append((request.remote, dict(request.query), request.query_string))
            asyncio.get_running_loop().call_later(0.5, seen.set_result, heard[0])
        return aiohttp.web.Response(body=b"d8:intervali1800e5:peers0:e")

    app = aiohttp.web.Application()
    app.router.add_get("/announce", tracker)
    runner = aiohttp.web.AppRunner(app)
    await runner.setup()
    site = aiohttp.web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    announce = f"http://127.0.0.1:{runner.addresses[0][1]}/announce"
    with pristine.open() as store:
        running = Running(store, ServeSettings(host=HOST, port=0, trackers=(announce,)))
        listening = await running.listening

        address, query, raw = await asyncio.wait_for(seen, 15)
        await running.stop()

    assert address == HOST
    assert query["port"] == str(listening.seed_port)
    assert query["peer_id"].startswith("-TV0100-")
    assert query["left"] == "0"
    assert bytes.fromhex(pristine.title.info_hash) == _info_hash(raw)
    assert await asyncio.wait_for(left, 5) == HOST
    await runner.cleanup()


def _info_hash(query: str) -> bytes:
    from urllib.parse import unquote_to_bytes  # noqa: PLC0415 - this one's alone

    (field,) = [part for part in query.split("&") if part.startswith("info_hash=")]
    return unquote_to_bytes(field.removeprefix("info_hash="))


async def test_without_a_seed_there_is_only_http(pristine):
    with pristine.open() as store:
        running = Running(store, ServeSettings(port=0, seed=False))
        listening = await running.listening

        async with aiohttp.ClientSession(listening.url) as http:
            status = json.loads(await (await http.get("/status")).text())
        await running.stop()

    assert listening.seed_port is None
    assert listening.titles == 1
    assert status["seed"] is None


async def test_a_seed_that_cannot_listen_takes_http_down_with_it(pristine):
    """Nothing half-started stays: the HTTP port is free again."""
    with pristine.open() as store, socket.create_server((HOST, 0)) as taken:
        with socket.create_server((HOST, 0)) as free:
            port = free.getsockname()[1]
        settings = ServeSettings(host=HOST, port=port, seed_port=taken.getsockname()[1])
        running = Running(store, settings)

        with pytest.raises(ServeError, match="--seed-port"):
            await running.stop()

        assert not running.listening.done()
        socket.create_server((HOST, port)).close()


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
async def test_the_seed_listens_where_http_does(pristine, host):
    """Also where the host is a name: libtorrent takes addresses only."""
    with pristine.open() as store:
        running = Running(store, ServeSettings(host=host, port=0))
        listening = await running.listening
        _, writer = await asyncio.open_connection("127.0.0.1", listening.seed_port)
        writer.close()
        await writer.wait_closed()
        await running.stop()

    assert listening.url.startswith("http://127.0.0.1:")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", ""])
async def test_every_address_needs_a_public_url(own_address, pristine, host):
    """Or torrents would send viewers to 0.0.0.0."""
    with pristine.open() as store:
        running = Running(store, ServeSettings(host=host, port=0))
        with pytest.raises(ServeError, match="--public-url"):
            await running.stop()

        if host == "::" and not HAS_IPV6:
            pytest.skip("no IPv6 on this machine")
        running = Running(
            store, ServeSettings(host=host or "0.0.0.0", port=0, public_url="http://films.example")
        )
        listening = await running.listening
        assert listening.public_url == "http://films.example"
        await running.stop()
