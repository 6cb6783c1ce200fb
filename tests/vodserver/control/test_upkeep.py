"""The operations of upkeep, asked for by anyone who can write to the socket."""

import asyncio

import pytest

from vodserver.control import OPERATIONS
from vodserver.control.server import ControlServer
from vodserver.errors import ControlUsageError, StoreUsageError
from vodserver.store import open_store


def nothing(_):
    pass


async def run(path, name, arguments):
    with open_store(path) as store:
        return await OPERATIONS[name].function(store, arguments, nothing)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("disk add", {}),
        ("disk add", {"path": 5}),
        ("disk add", {"path": "not/absolute"}),
        ("disk add", {"path": "/tmp/a\0b"}),
        ("disk drain", {}),
        ("disk drain", {"number": "0"}),
        ("disk drain", {"number": True}),
        ("disk drain", {"number": -1}),
        ("disk drain", {"number": 10**30}),
        ("disk drain", {"number": 0, "cancel": "yes"}),
        ("disk replace", {"number": 0}),
        ("disk replace", {"number": 0, "path": ""}),
        ("disk replace", {"number": 99, "path": "/nowhere"}),
        ("rebalance", {"tolerance": -0.1}),
        ("rebalance", {"tolerance": 2}),
        ("rebalance", {"tolerance": "wide"}),
        ("scrub", {"rate": 0}),
        ("scrub", {"rate": -5.0}),
        ("scrub", {"rate": "fast"}),
        ("scrub", {"restart": 1}),
    ],
)
async def test_arguments_that_make_no_sense_are_refused_in_words(store_path, name, arguments):
    with pytest.raises((ControlUsageError, StoreUsageError)) as caught:
        await run(store_path, name, arguments)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("name", ["status", "disk list", "scrub", "rebalance"])
async def test_an_empty_store_is_no_trouble(store_path, name):
    assert await run(store_path, name, {})


async def test_what_only_reads_goes_beside_what_changes(store_path):
    assert {name for name, each in OPERATIONS.items() if not each.mutates} >= {
        "status",
        "disk list",
        "scrub",
    }
    assert {name for name, each in OPERATIONS.items() if each.mutates} >= {
        "disk add",
        "disk drain",
        "disk replace",
        "rebalance",
    }


async def test_the_status_of_a_served_store_says_so(store_path, talk):
    with open_store(store_path) as store:
        server = ControlServer(store)
        await server.start()
        client = await talk(store_path)
        await client.say({"operation": "status"})
        async with asyncio.timeout(10):
            answer = await client.hear()
        await client.close()
        await server.close()
    assert answer["result"]["server"] == {"operation": None}
    assert [disk["state"] for disk in answer["result"]["disks"]] == ["ok", "ok"]
