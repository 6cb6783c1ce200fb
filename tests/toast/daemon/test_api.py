"""The API over real sockets: each route is documented, each documented route answers as it says."""

import asyncio
import base64
import io
import json
import re

import aiohttp
import pytest

from tests.toast.daemon.conftest import torrent
from toast.daemon.metrics import METRICS
from toast.daemon.openapi import make_openapi
from toast.daemon.operations import OPERATIONS, SCHEMAS

JSON_TYPES = {
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "array": list,
    "object": dict,
    "null": type(None),
}


def assert_fits(value, schema, where="answer"):
    """A value is as the schema says, and has no property that the schema does not name."""
    if "$ref" in schema:
        schema = SCHEMAS[schema["$ref"].rpartition("/")[2]]
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    fits = any(isinstance(value, JSON_TYPES[kind]) for kind in kinds)
    assert fits, f"{where} is {value!r}, not {kinds}"
    assert value in schema.get("enum", [value]), where
    if "pattern" in schema:
        assert re.search(schema["pattern"], value), where
    if isinstance(value, dict):
        assert set(value) == set(schema["properties"]), where
        for name, part in value.items():
            assert_fits(part, schema["properties"][name], f"{where}.{name}")
    if isinstance(value, list):
        for part in value:
            assert_fits(part, schema["items"], f"{where}[]")


@pytest.fixture
async def opened(house):
    return await house.open()


async def test_the_document_and_the_routes_are_the_same(opened):
    document = make_openapi("1")
    documented = {
        (method.upper(), path) for path, methods in document["paths"].items() for method in methods
    }
    routes = {
        (route.method, re.sub(r":\[[^\]]*\]\{40\}", "", route.resource.canonical))
        for route in opened.service.routes()
        if route.method != "HEAD"
    }
    ours = {
        (method, path)
        for method, path in routes
        if path.startswith("/api/") or path in {"/metrics", "/healthz"}
    }
    assert ours == documented
    assert {op.name for op in OPERATIONS} == {
        operation["operationId"]
        for methods in document["paths"].values()
        for operation in methods.values()
    }


BODIES = {
    "add_film": torrent(2),
    "change_film": {"priority": 3},
    "report_position": {"position_seconds": 1.0},
    "change_settings": {"most_active": 1},
}


async def test_every_documented_operation_answers_as_it_says(opened):
    film_id = (await opened.add(torrent()))["id"]
    for operation in sorted(OPERATIONS, key=lambda op: op.method == "DELETE"):
        body = BODIES.get(operation.name)
        options = {"data": body} if isinstance(body, bytes) else {"json": body} if body else {}
        kind = {"Content-Type": "application/x-bittorrent"} if isinstance(body, bytes) else {}
        path = operation.full_path.replace("{id}", film_id)
        async with opened.http.request(operation.method, path, headers=kind, **options) as got:
            assert got.status == operation.status, operation.name
            if operation.status != 204:
                assert got.content_type == operation.kind, operation.name
            if operation.answer is not None:
                assert_fits(await got.json(), SCHEMAS[operation.answer], operation.name)


async def test_every_operation_needs_the_token(opened):
    async with aiohttp.ClientSession(opened.service.url) as stranger:
        for operation in OPERATIONS:
            path = operation.full_path.replace("{id}", "ab" * 20)
            async with stranger.request(operation.method, path) as got:
                assert got.status == (200 if operation.public else 401), operation.name
        for token in ("wrong", opened.service.token.text[:-1], ""):
            async with stranger.get(
                "/api/v1/status", headers={"Authorization": f"Bearer {token}"}
            ) as got:
                assert got.status == 401
                assert "token" in (await got.json())["error"]


async def test_a_browser_gets_a_cookie_for_the_token_once(opened):
    token = opened.service.token.text
    jar = aiohttp.CookieJar(unsafe=True)  # cookies of an address, too
    async with aiohttp.ClientSession(opened.service.url, cookie_jar=jar) as browser:
        async with browser.get("/") as got:
            assert got.status == 401
        async with browser.get("/?token=wrong", allow_redirects=False) as got:
            assert got.status == 401
            assert "Set-Cookie" not in got.headers
        async with browser.get(f"/?token={token}", allow_redirects=False) as got:
            assert (got.status, got.headers["Location"]) == (303, "/")
            assert "HttpOnly" in got.headers["Set-Cookie"]
            assert "SameSite=Strict" in got.headers["Set-Cookie"]
            assert token not in got.headers["Set-Cookie"]
        async with browser.get("/") as got:
            assert got.status == 200
            assert got.content_type == "text/html"
        async with browser.get("/api/v1/status") as got:
            assert got.status == 200


async def test_pages_of_the_web_are_refused_even_with_the_token(opened):
    strange = [
        {"Host": "films.example"},
        {"Origin": "https://films.example"},
        {"Sec-Fetch-Site": "cross-site"},
    ]
    for headers in strange:
        for path in ("/status", "/films"):
            assert (await opened.ask("GET", path, headers=headers))[0] == 403


BAD_REQUESTS = [
    ("POST", "/films", {}, 400),
    ("POST", "/films", {"source": 7}, 400),
    ("POST", "/films", {"source": ""}, 400),
    ("POST", "/films", {"source": "x" * 9000}, 400),
    ("POST", "/films", {"source": "/no/such.torrent"}, 422),
    ("POST", "/films", {"source": "ftp://example.org/film"}, 422),
    ("POST", "/films", {"source": "http://127.0.0.1:9/film"}, 422),
    ("POST", "/films", {"source": "magnet:?xt=nothing"}, 422),
    ("POST", "/films", {"source": "/x", "mode": "steal"}, 400),
    ("POST", "/films", {"source": "/x", "behaviour": 1}, 400),
    ("POST", "/films", {"source": "/x", "colour": "red"}, 400),
    ("POST", "/films", b"no torrent", 422),
    ("POST", "/films", b"", 422),
    ("POST", "/films", [], 400),
    ("GET", f"/films/{'ab' * 20}", None, 404),
    ("PATCH", f"/films/{'ab' * 20}", {"paused": True}, 404),
    ("DELETE", f"/films/{'ab' * 20}", None, 404),
    ("GET", f"/films/{'ab' * 20}/pieces", None, 404),
    ("PATCH", "/films/FILM", {"paused": "yes"}, 400),
    ("PATCH", "/films/FILM", {"priority": 1.5}, 400),
    ("PATCH", "/films/FILM", {"priority": 9999}, 400),
    ("PATCH", "/films/FILM", {"behaviour": "leech"}, 400),
    ("PATCH", "/films/FILM", {"position_seconds": -1}, 400),
    ("PATCH", "/films/FILM", {"id": "x"}, 400),
    ("POST", "/films/FILM/position", {}, 400),
    ("POST", "/films/FILM/position", {"position_seconds": "1"}, 400),
    ("POST", "/films/FILM/position", {"position_seconds": 1, "rate": 99}, 400),
    ("POST", "/films/FILM/position", {"position_seconds": 1, "paused": 0}, 400),
    ("POST", "/films/FILM/position", {"position_seconds": 1, "mood": "good"}, 400),
    ("PATCH", "/settings", {"most_active": -1}, 400),
    ("PATCH", "/settings", {"most_active": True}, 400),
    ("PATCH", "/settings", {"most_active": None}, 400),
    ("PATCH", "/settings", {"upload_rate": 0}, 400),
    ("PATCH", "/settings", {"upload_rate": 10**400}, 400),
    ("PATCH", "/settings", {"disk_bytes": 1.5}, 400),
    ("PATCH", "/settings", {"schedule": "never"}, 400),
    ("PATCH", "/settings", {"behaviour": "leech"}, 400),
    ("PATCH", "/settings", {"colour": "red"}, 400),
]


async def test_bad_requests_are_refused_in_one_line_and_change_nothing(opened):
    film = await opened.add(torrent())
    rules = opened.library.rules
    for method, path, body, status in BAD_REQUESTS:
        got, answer = await opened.ask(method, path.replace("FILM", film["id"]), body)
        assert got == status, (method, path, body, answer)
        assert_fits(answer, SCHEMAS["Error"])
        assert "\n" not in answer["error"]
    assert [each.id for each in opened.library.films()] == [film["id"]]
    assert opened.library.rules == rules


BAD_BODIES = [
    ("application/json", b"{", 400),
    ("application/json", b"[" * 60_000, 400),
    ("application/json", b'"' + b"x" * 70_000 + b'"', 413),
    ("text/plain", b"{}", 415),
    ("application/x-www-form-urlencoded", b"source=x", 415),
    ("application/x-bittorrent", b"d" * (17 << 20), 413),
]


async def test_bodies_are_bounded_and_of_a_kind_that_forms_cannot_send(opened):
    for kind, body, status in BAD_BODIES:
        got, answer = await opened.ask(
            "POST", "/films", headers={"Content-Type": kind}, data=io.BytesIO(body)
        )
        assert (got, set(answer)) == (status, {"error"}), kind


async def test_a_film_is_here_once(opened):
    await opened.add(torrent())
    status, answer = await opened.ask("POST", "/films", torrent())
    assert (status, answer["error"]) == (409, "film-0.mp4 is here already")


async def test_the_number_of_films_is_bounded(house):
    await house.open(most_films=2)
    await house.add(torrent(0))
    await house.add(torrent(1))
    status, answer = await house.ask("POST", "/films", torrent(2))
    assert status == 507
    assert "remove some" in answer["error"]


async def read_event(stream):
    """(name, data) of the next event of a stream."""
    async with asyncio.timeout(10):
        while (line := await stream.readline()).startswith(b":") or line == b"\n":
            pass
        name = line.decode().removeprefix("event: ").strip()
        data = (await stream.readline()).decode().removeprefix("data: ")
    return name, json.loads(data)


async def wait_event(stream, name):
    while True:
        event, data = await read_event(stream)
        if event == name:
            return data


async def test_events_tell_what_is_and_then_what_changes(opened):
    running = asyncio.create_task(opened.service.run())
    film = await opened.add(torrent())
    async with opened.http.get("/api/v1/events") as got:
        assert [each["id"] for each in await wait_event(got.content, "films")] == [film["id"]]
        assert_fits(await wait_event(got.content, "status"), SCHEMAS["Status"])
        await opened.ask("PATCH", f"/films/{film['id']}", {"paused": True})
        while (await wait_event(got.content, "films"))[0]["state"] != "paused":
            pass
        await opened.ask("DELETE", f"/films/{film['id']}")
        assert await wait_event(got.content, "removed") == {"id": film["id"]}
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_subscribers_are_bounded(house):
    await house.open(most_subscribers=2)
    async with house.http.get("/api/v1/events"), house.http.get("/api/v1/events"):
        assert (await house.ask("GET", "/events"))[0] == 409
    async with asyncio.timeout(10):
        while (await house.ask("GET", "/status"))[0] != 200:
            pass


async def test_who_does_not_read_is_let_go(opened):
    events = opened.service.events
    queue = events.subscribe()
    for number in range(100):
        events.tell("removed", {"id": number})
    assert events.subscribers == 0
    waiting = [queue.get_nowait() for _ in range(queue.qsize())]
    assert len(waiting) <= 64
    assert waiting[-1] is None


async def test_pieces_are_one_byte_each(opened):
    film = await opened.add(torrent())
    _, pieces = await opened.ask("GET", f"/films/{film['id']}/pieces")
    assert base64.b64decode(pieces["sources"]) == bytes(pieces["pieces"]) == bytes(19)


async def test_metrics_are_those_that_are_known_and_say_what_they_are(opened):
    await opened.add(torrent())
    async with opened.http.get("/metrics") as got:
        text = await got.text()
    shown = set(re.findall(r"^# TYPE (\w+) (?:counter|gauge)$", text, re.MULTILINE))
    assert shown == set(METRICS) - {"toast_offload_ratio"}, "nothing came yet: no share of it"
    samples = [line for line in text.splitlines() if not line.startswith("#")]
    assert 'toast_films{state="queued"} 1' in samples
    assert all(re.fullmatch(r'\w+(\{\w+="[\w-]+"\})? [-+.e\d]+', line) for line in samples)
    for name, metric in METRICS.items():
        assert metric.kind == ("counter" if name.endswith("_total") else "gauge")


async def test_health_is_told_by_the_films_being_looked_at(opened):
    async with opened.http.get("/healthz") as got:
        assert (got.status, await got.text()) == (200, "ok\n")
    opened.library.looked_at -= 3600
    async with opened.http.get("/healthz") as got:
        assert got.status == 503


async def test_the_docs_page_asks_nobody_for_anything(opened):
    async with opened.http.get("/api/v1/docs") as got:
        page, policy = await got.text(), got.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert re.findall(r"(?:src|href)=\"(?!#)([^\"]*)\"", page) == ["openapi.json"]
    assert all(operation.full_path in page for operation in OPERATIONS)
    assert all(f'id="{name}"' in page for name in SCHEMAS)


async def test_positions_are_remembered_and_the_end_counts_as_watched(opened):
    film_id = (await opened.add(torrent(seconds=100.0)))["id"]
    for position, watched in ((40.0, False), (91.0, True), (10.0, True)):
        body = {"position_seconds": position, "paused": False, "rate": 1.0}
        assert (await opened.ask("POST", f"/films/{film_id}/position", body))[0] == 204
        _, film = await opened.ask("GET", f"/films/{film_id}")
        assert (film["position_seconds"], film["watched"]) == (position, watched)
