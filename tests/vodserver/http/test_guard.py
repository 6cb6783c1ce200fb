"""What every request passes: limits, who may read the answer, and what strangers are told."""

import asyncio
import dataclasses

import pytest

from tests.vodserver.http.conftest import settled

CONTENT = "/titles/clock/content"
ROUTES = [
    *("/titles", "/titles/clock", CONTENT, "/titles/clock/stream", "/titles/clock/torrent"),
    *("/status", "/metrics", "/healthz"),
]


@pytest.mark.parametrize("target", [*ROUTES, "/nothing"])
async def test_every_answer_may_be_read_from_everywhere_and_names_no_version(
    store, serving, connect, target
):
    client = await connect(await serving(store))
    for method in ("GET", "HEAD", "DELETE"):
        answer = await client.ask(target, "Range: bytes=0-9", method=method)

        assert answer["Server"] == "vodserver"
        assert answer["Access-Control-Allow-Origin"] == "*"
        assert "Content-Range" in answer["Access-Control-Expose-Headers"]
        assert "Access-Control-Allow-Credentials".lower() not in answer.headers


async def test_the_fast_path_says_the_same(store, serving, connect):
    """One range of a film takes it; with a field that needs thought, the long way is taken."""
    server = await serving(store)
    fast = await (await connect(server)).ask(CONTENT, "Range: bytes=0-9")
    slow = await (await connect(server)).ask(CONTENT, "Range: bytes=0-9", "X-Odd: 1")

    for answer in (fast, slow):
        del answer.headers["date"]
    assert fast.headers == slow.headers
    assert fast.body == slow.body


async def test_a_browser_may_ask_what_a_page_may_ask_for(store, serving, connect):
    client = await connect(await serving(store))
    asked = ("Origin: https://player.example", "Access-Control-Request-Method: GET")

    answer = await client.ask(CONTENT, *asked, method="OPTIONS")

    assert answer.status == 204
    assert answer["Access-Control-Allow-Methods"] == "GET, HEAD"
    assert "Range" in answer["Access-Control-Allow-Headers"]
    assert (await client.ask(CONTENT, asked[0], method="OPTIONS")).status == 405


@pytest.mark.parametrize("fields", [("Content-Length: 5",), ("Transfer-Encoding: chunked",)])
async def test_a_body_is_refused_and_not_read(store, serving, connect, fields):
    server = await serving(store)
    client = await connect(server)

    answer = await client.ask("/titles", *fields)

    assert answer.status == 413
    await settled(server, lambda s: s.connections == 0)


@pytest.mark.parametrize(
    "request_lines",
    [
        ("/" + "a" * 5000,),
        ("/titles", "X-Long: " + "a" * 9000),
        ("/titles", *(f"X-{n}: 1" for n in range(200))),
        ("/titles", "Content-Length: -1"),
        ("/titles", "no field"),
    ],
    ids=["line", "field", "fields", "length", "nonsense"],
)
async def test_what_is_too_long_or_no_request_gets_one_plain_line(
    store, serving, connect, caplog, request_lines
):
    server = await serving(store)
    client = await connect(server)

    answer = await client.ask(*request_lines)

    assert answer.status == 400
    assert answer.body == b"this is no request\n"
    assert answer["Server"] == "vodserver"
    assert caplog.text == ""
    await settled(server, lambda s: s.connections == 0)


async def test_one_client_may_not_have_all_connections(store, serving, connect):
    server = await serving(store, client_connections=1)
    first = await connect(server)
    assert (await first.ask("/healthz")).status == 200

    second = await connect(server)
    refused = await asyncio.wait_for(second.read_answer(), 5)

    assert refused.status == 503
    await first.close()
    await settled(server, lambda s: s.connections == 0)
    assert (await (await connect(server)).ask("/healthz")).status == 200


async def test_health_is_lost_with_the_last_title_that_is_whole(home, serving, connect):
    with home.open() as store:
        client = await connect(await serving(store))
        assert (await client.ask("/healthz")).body == b"ok\n"
        (title,) = store.titles()
        nowhere = dataclasses.replace(title.extents[2], disks=(77,))
        store.include(
            dataclasses.replace(title, extents=(*title.extents[:2], nowhere, *title.extents[3:]))
        )

        answer = await client.ask("/healthz")

        assert answer.status == 503
        assert (
            answer.body == b"no title can be served: of each, a part is on no disk that is there\n"
        )
        store.exclude(title.id)
        assert (await client.ask("/healthz")).status == 200
