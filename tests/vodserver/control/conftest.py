"""An empty store, its control server, and operations that only tests have."""

import asyncio
import json

import pytest

from vodserver.control import OPERATIONS, ControlServer, operation
from vodserver.control.address import connect
from vodserver.errors import StoreUsageError
from vodserver.store import create_store, open_store


@pytest.fixture
def store_path(tmp_path):
    create_store(tmp_path / "store", [tmp_path / "a", tmp_path / "b"])
    return tmp_path / "store"


@pytest.fixture
def log(monkeypatch):
    """Operations for the test: what they did is in the list."""
    known = dict(OPERATIONS)
    done = []

    @operation("count", mutates=False)
    async def count(store, arguments, progress):
        for n in range(arguments["to"]):
            progress({"n": n})
        return {"disks": len(store.disk_rows)}

    @operation("wait")
    async def wait(store, arguments, progress):
        try:
            progress({"waiting": True})
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0)  # cleaning up may take a turn of the loop
            done.append("cleaned up")
            raise
        return {}

    @operation("refuse", mutates=False)
    async def refuse(store, arguments, progress):
        raise StoreUsageError("not like\nthis")

    @operation("fail", mutates=False)
    async def fail(store, arguments, progress):
        raise OSError("inner matters")

    @operation("status", mutates=False)
    async def status(store, arguments, progress):
        return {"titles": len(store.titles())}

    yield done
    OPERATIONS.clear()
    OPERATIONS.update(known)


@pytest.fixture
async def served(store_path, log):
    """The path of a store that a control server in this loop has open."""

    async def facts():
        return {"url": "http://films.example"}

    with open_store(store_path) as store:
        server = ControlServer(store, status=facts)
        await server.start()
        yield store_path
        await server.close()


class Talk:
    """A client that may say anything."""

    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer

    @classmethod
    async def open(cls, path):
        plug = connect(path)
        plug.setblocking(False)
        return cls(*await asyncio.open_unix_connection(sock=plug, limit=2**20))

    async def say(self, line):
        if not isinstance(line, bytes):
            line = json.dumps(line).encode() + b"\n"
        self.writer.write(line)
        await self.writer.drain()

    async def hear(self):
        line = await asyncio.wait_for(self.reader.readline(), 5)
        return json.loads(line) if line else None

    async def close(self):
        self.writer.close()
        await self.writer.wait_closed()


@pytest.fixture
def talk():
    return Talk.open
