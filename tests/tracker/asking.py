"""Asking a tracker as its clients do."""

import asyncio
from urllib.parse import quote_from_bytes

import aiohttp
import bencode2
from yarl import URL

HASH = bytes(range(20))


async def announce(server, name="a", extra="", *, port=7001):
    """Announce over HTTP; the answer as a dictionary."""
    query = (
        f"info_hash={quote_from_bytes(HASH, safe='')}&peer_id={name:->20}&port={port}&left=9{extra}"
    )
    url = URL(f"{server.announce_url}?{query}", encoded=True)
    async with aiohttp.ClientSession() as client, client.get(url) as answer:
        return bencode2.bdecode(await answer.read())


async def until(condition):
    """Wait for what comes by itself."""
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110  (what is waited for is a file, or a log)
            await asyncio.sleep(0.01)
