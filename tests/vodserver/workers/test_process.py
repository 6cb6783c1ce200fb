"""A worker's process: it ends when its channel does, whenever that is."""

import asyncio
import socket
import sys
import time
from pathlib import Path

import aiohttp
import pytest

from vodserver.settings import ServeSettings
from vodserver.store.dispatched import Dispatched
from vodserver.workers.channel import Channel
from vodserver.workers.terms import Terms

pytestmark = [pytest.mark.slow, pytest.mark.timeout(30)]


class Main:
    """Hears what a worker tells."""

    def __init__(self, home):
        self._title, self._film = home.title, home.film
        self.news = asyncio.Queue()

    async def asked(self, what, args):
        """Let everybody in; every extent is in memory, of the disk that has it first.

        Or the machine has taken it away again: then the bytes themselves are asked for.
        """
        if what != "fetch":
            return {}, b""
        disk = self._title.extents[args["at"] // self._title.extent_bytes].disks[0]
        data = self._film.read_bytes()[args["at"] : args["end"]] if args["bytes"] else b""
        return {"disk": disk}, data

    def told(self, what, args):
        self.news.put_nowait((what, args))

    async def next(self, wanted):
        async with asyncio.timeout(10):
            while True:
                what, args = await self.news.get()
                if what == wanted:
                    return args


@pytest.fixture
async def worker(pristine):
    """Start one: process, channel and what it tells."""
    started = []

    async def start():
        ours, theirs = socket.socketpair()
        with theirs, Dispatched() as dispatched:
            handed = theirs.fileno(), dispatched.fd
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "vodserver.workers.process", *map(str, handed)),
                pass_fds=handed,
                stderr=asyncio.subprocess.PIPE,
            )
        channel, main = await Channel.open(ours), Main(pristine)
        channel.start(main)
        started.append((process, channel))
        return process, channel, main

    yield start
    for process, channel in started:
        await channel.close()
        if process.returncode is None:
            process.kill()
            await process.wait()


def terms(home, **settings):
    paths = dict(enumerate(home.disks))
    how = ServeSettings(port=0, **settings)
    return Terms(settings=how, store=home.path, disks=paths, bad=frozenset()).to_json()


def _open_files(pid):
    return [str(fd.readlink()) for fd in Path(f"/proc/{pid}/fd").iterdir()]


async def ended(process, seconds):
    async with asyncio.timeout(seconds):
        _, errors = await process.communicate()
    return process.returncode, errors.decode()


async def test_one_that_is_never_told_anything_ends_with_its_channel(worker):
    process, channel, _ = await worker()
    await channel.close()

    assert await ended(process, 5) == (0, "")


async def test_orphaned_in_the_middle_of_an_answer_it_ends_in_time(pristine, worker):
    process, channel, main = await worker()
    channel.tell("terms", **terms(pristine))
    url = (await main.next("listening"))["url"]
    async with aiohttp.ClientSession(url) as http:
        answer = await http.get("/titles/clock/stream")  # it goes on for half a minute
        assert answer.status == 200
        await answer.content.readexactly(100_000)
        began = time.monotonic()
        channel._writer.transport.abort()
        assert await ended(process, 5) == (0, "")
        assert time.monotonic() - began < 2


async def test_it_tells_what_it_did_at_the_latest_when_it_ends(pristine, worker):
    process, channel, main = await worker()
    channel.tell("terms", **terms(pristine))
    url = (await main.next("listening"))["url"]
    async with aiohttp.ClientSession(url) as http, http.get("/titles") as answer:
        size = len(await answer.read())
    channel.tell("stop")
    assert await ended(process, 5) == (0, "")

    told = []
    while not main.news.empty():
        told.append(main.news.get_nowait())
    last = [args["counts"] for what, args in told if what == "counts"][-1]
    assert last["accepted"] == 1
    assert last["connections"] == 0
    assert size < last["bytes_sent"] < size + 500
    assert ["vod_http_responses_total", ["/titles", "200"], 1] in last["answers"]


async def test_what_it_cannot_do_it_says_in_a_line(pristine, worker):
    process, channel, main = await worker()
    channel.tell("terms", **terms(pristine, stream_pacing="erratic"))

    assert "erratic" in (await main.next("failed"))["message"]
    assert await ended(process, 5) == (0, "")


async def test_a_store_that_it_cannot_open_it_says_in_a_line(pristine, worker, tmp_path):
    process, channel, main = await worker()
    channel.tell("terms", **terms(pristine) | {"store": str(tmp_path)})
    channel.tell("title", id="clock")

    assert "there is no store" in (await main.next("failed"))["message"]
    assert await ended(process, 5) == (0, "")


async def test_no_file_of_the_main_process_is_open_in_it(pristine, worker):
    """Above all not the store's lock, which would outlive the main process."""
    with pristine.open():
        process, channel, main = await worker()
        channel.tell("terms", **terms(pristine))
        await main.next("listening")
        files = _open_files(process.pid)
        assert not [name for name in files if name.endswith("/lock")]
        assert [name for name in files if name.endswith("catalog.sqlite")]
