"""The guard at the door of an application, over real sockets."""

import contextlib

import aiohttp
import pytest
from aiohttp import web

from toast.gateway import AccessRules, Door, GatewaySettings, film_key, install_guard
from toast.gateway.guard import is_from_this_machine

PAGE = {"Origin": "http://localhost:3000"}


@contextlib.asynccontextmanager
async def guarded(host="127.0.0.1", refuse=None):
    """An application with one handler that answers at once and one that streams."""

    async def plain(request):
        return web.json_response({"local": is_from_this_machine(request)})

    async def streamed(request):
        response = web.StreamResponse()
        await response.prepare(request)
        await response.write(b"streamed")
        return response

    application = web.Application()
    application.router.add_get("/plain", plain)
    application.router.add_get("/streamed", streamed)
    install_guard(application, AccessRules(host), refuse)
    async with (
        Door(application, host=host, port=0, settings=GatewaySettings()) as door,
        aiohttp.ClientSession(door.url) as client,
    ):
        yield client


@pytest.mark.parametrize(
    "fields",
    [
        {"Host": "rebound.example"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
    ],
)
@pytest.mark.parametrize("path", ["/plain", "/streamed", "/nothing"])
async def test_strangers_reach_no_handler_and_may_read_nothing(path, fields):
    async with guarded() as client, client.get(path, headers=fields) as answer:
        assert answer.status == 403
        assert "Access-Control-Allow-Origin" not in answer.headers
        assert len((await answer.text()).splitlines()) == 1


@pytest.mark.parametrize(("path", "status"), [("/plain", 200), ("/streamed", 200), ("/no", 404)])
async def test_pages_of_this_machine_may_read_every_answer(path, status):
    async with guarded() as client:
        async with client.get(path, headers=PAGE) as answer:
            assert answer.status == status
            assert answer.headers["Access-Control-Allow-Origin"] == PAGE["Origin"]
            assert "Content-Range" in answer.headers["Access-Control-Expose-Headers"]
        async with client.get(path) as answer:
            assert answer.status == status
            assert "Access-Control-Allow-Origin" not in answer.headers


async def test_an_application_words_its_refusals_itself():
    def refuse(request, why):
        return web.json_response({"error": why, "path": request.path}, status=403)

    async with (
        guarded(refuse=refuse) as client,
        client.get("/plain", headers={"Origin": "null"}) as answer,
    ):
        assert answer.status == 403
        said = await answer.json()
    assert said["path"] == "/plain"
    assert "other sites" in said["error"]


@pytest.mark.parametrize(
    ("bound", "client_host", "local"),
    [("0.0.0.0", "127.0.0.1", True), ("0.0.0.0", "198.18.0.1", False), ("::", "[::1]", True)],
)
async def test_where_a_connection_came_in_is_known(own_address, bound, client_host, local):
    """Also behind a wildcard, and for IPv4 on an IPv6 socket."""
    assert own_address == "198.18.0.1"
    application = web.Application()

    async def plain(request):
        return web.json_response({"local": is_from_this_machine(request)})

    application.router.add_get("/", plain)
    door = Door(application, host=bound, port=0, settings=GatewaySettings())
    async with (
        door,
        aiohttp.ClientSession() as client,
        client.get(f"http://{client_host}:{door.port}/") as answer,
    ):
        assert (await answer.json())["local"] is local


def test_a_key_opens_one_film_of_one_house():
    one = film_key(b"secret", "a" * 40)
    assert one == film_key(b"secret", "a" * 40)
    assert one != film_key(b"secret", "b" * 40)
    assert one != film_key(b"other", "a" * 40)
    assert len(one) == 32
    int(one, 16)
