"""The store that trackers share: a real Redis, killed and started again."""

import asyncio
import contextlib
import logging
import shutil
import subprocess
import sys

import pytest

from tests.tracker.asking import announce, until
from tracker.ending import end_tasks
from tracker.errors import TrackerError
from tracker.server import serve_tracker
from tracker.settings import TrackerSettings
from tracker.store import open_store

SETTINGS = TrackerSettings(port=0, share_seconds=0.01)


class Redis:
    """A server of its own on a Unix socket, that writes nothing to disk."""

    def __init__(self, folder):
        self._folder = folder
        self.url = f"unix://{folder}/redis.sock"
        self._process = None

    async def start(self):
        program = shutil.which("redis-server")
        if program is None:
            pytest.skip("redis-server is not installed")
        self._process = await asyncio.create_subprocess_exec(
            *(program, "--port", "0", "--unixsocket", f"{self._folder}/redis.sock"),
            *("--save", "", "--dir", str(self._folder)),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        await until((self._folder / "redis.sock").exists)

    async def kill(self):
        if self._process is not None:
            self._process.kill()
            await self._process.wait()
            (self._folder / "redis.sock").unlink(missing_ok=True)
            self._process = None


@pytest.fixture
async def redis(tmp_path):
    server = Redis(tmp_path)
    await server.start()
    yield server
    await server.kill()


@contextlib.asynccontextmanager
async def trackers(store, count=2):
    async with contextlib.AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(serve_tracker(SETTINGS, 1, store=store))
            for _ in range(count)
        ]


def peers(server):
    return server.service.swarms.peers


@pytest.mark.interop
async def test_trackers_that_share_a_store_serve_one_swarm(redis):
    async with trackers(redis.url) as (one, other):
        await announce(one, "a", "&playhead=30")
        await until(lambda: peers(other) == 1)
        answer = await announce(other, "b", "&compact=0", port=7002)
        assert [peer[b"peer id"][-1:] for peer in answer[b"peers"]] == [b"a"]
        assert answer[b"peers"][0][b"playhead"] >= 29_000
        await until(lambda: peers(one) == 2)
        assert one.statistics()["store_up"] == 1
        await announce(one, "a", "&event=stopped")
        await until(lambda: peers(other) == 1)
    assert asyncio.all_tasks() == {asyncio.current_task()}


@pytest.mark.interop
async def test_one_that_comes_later_knows_all_before_it_answers(redis):
    async with trackers(redis.url, 1) as (one,):
        for number in range(50):
            await announce(one, f"{number}", port=7000 + number)
        await asyncio.sleep(0.05)
        async with trackers(redis.url, 1) as (late,):
            assert peers(late) == 50


@pytest.mark.interop
@pytest.mark.slow
async def test_without_its_store_each_goes_on_and_tells_later(redis, caplog):
    caplog.set_level(logging.WARNING)
    async with trackers(redis.url) as (one, other):
        await redis.kill()
        await until(lambda: not one.statistics()["store_up"])
        assert b"failure reason" not in await announce(one)
        assert peers(one) == 1
        assert peers(other) == 0
        await redis.start()
        await until(lambda: peers(other) == 1)
        await until(lambda: one.statistics()["store_up"])
    assert "the shared store is away, I go on alone" in caplog.text
    assert "the shared store is there again" in caplog.text


@pytest.mark.interop
async def test_what_others_write_there_is_checked(redis, caplog):
    async with trackers(redis.url, 1) as (one,):
        store = open_store(redis.url, 60.0, lambda _: None)
        store.send([b"nonsense"])
        working = [asyncio.create_task(work) for work in store.work()]
        await until(lambda: "news are not used" in caplog.text)
        await end_tasks(working)
        await store.close()
        assert b"failure reason" not in await announce(one)


async def test_a_store_that_is_not_there_is_named(tmp_path):
    url = f"unix://{tmp_path}/none.sock"
    with pytest.raises(TrackerError, match=r"the shared store unix://.* cannot be used"):
        async with serve_tracker(SETTINGS, 1, store=url):
            pass
    assert asyncio.all_tasks() == {asyncio.current_task()}


@pytest.mark.parametrize("url", ["http://127.0.0.1", "store", ""])
def test_what_is_no_store_is_refused(url):
    with pytest.raises(TrackerError, match="is no store"):
        open_store(url, 60.0, lambda _: None)


def test_without_the_client_it_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(TrackerError, match=r"pip install 'toast-vod\[store\]'"):
        open_store("redis://127.0.0.1", 60.0, lambda _: None)


async def test_what_the_store_is_away_too_long_for_is_dropped_the_oldest_first(tmp_path):
    store = open_store(f"unix://{tmp_path}/none.sock", 60.0, lambda _: None)
    store.send(b"%d" % number for number in range(300))
    assert store.dropped == 300 - 256
    await store.close()


def test_a_password_is_shown_to_nobody():
    with pytest.raises(TrackerError) as refused:
        open_store("ftp://user:hidden@host/0", 10.0, lambda _: None)
    assert "ftp://host/0 is no store" in str(refused.value)
    assert "hidden" not in str(refused.value)
