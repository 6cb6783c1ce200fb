"""docs/vodserver.md leaves nothing out and states the defaults that the code has."""

import dataclasses
import re
from pathlib import Path

import aiohttp
import pytest

from vodserver.cli import cli
from vodserver.http.app import HttpServer
from vodserver.settings import ServeSettings
from vodserver.store.reading import DiskStatistics

DOC = (Path(__file__).parents[2] / "docs" / "vodserver.md").read_text()


@pytest.mark.parametrize("field", dataclasses.fields(ServeSettings), ids=lambda f: f.name)
def test_every_setting_is_documented_with_its_default(field):
    row = DOC.split("## Settings")[1].split(f"\n| `{field.name}` |")[1].splitlines()[0]
    _, default = (cell.strip() for cell in row.split("|")[:2])
    words = {None: ("as bound", "that of HTTP", "no limit", "none", "a quarter"), (): ("none",)}
    words |= {True: ("yes",), False: ("no",)}

    if isinstance(field.default, bool | tuple | None):
        assert default in words[field.default]
    else:
        assert default == (
            f"{field.default:g}" if isinstance(field.default, float) else str(field.default)
        )


@pytest.mark.parametrize("command", cli.commands.values(), ids=lambda c: c.name)
def test_every_command_and_option_is_documented(command):
    assert f"vodserver {command.name}" in DOC
    for parameter in command.params:
        for option in (*parameter.opts, *parameter.secondary_opts):
            if option.startswith("--") and option != "--help":
                assert option in DOC


async def test_every_route_is_documented(pristine):
    with pristine.open() as store:
        app = HttpServer(store, ServeSettings(), seed_status=None)._application()
    routes = {resource.canonical for resource in app.router.resources()}

    assert routes == set(re.findall(r"^\| `(/[^`]*)` \|", DOC, flags=re.MULTILINE))


@pytest.mark.parametrize("field", dataclasses.fields(DiskStatistics), ids=lambda f: f.name)
def test_every_disk_counter_is_documented(field):
    assert f"`{field.name}`" in DOC


async def test_every_field_that_a_program_gets_is_documented(pristine):
    async def seed_status():
        return {"bytes_sent": 1, "payload_bytes_sent": 1}

    with pristine.open() as store:
        server = HttpServer(store, ServeSettings(port=0), seed_status=seed_status)
        await server.start()
        async with aiohttp.ClientSession(server.url) as http:
            status = await (await http.get("/status")).json()
            (title,) = await (await http.get("/titles")).json()
        await server.close()

    for name in (*status, *status["disks"][0], *title):
        assert f"`{name}`" in DOC
