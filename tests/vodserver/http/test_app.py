"""The routes, as programs see them."""

import hashlib
import json
import socket
from pathlib import Path

import pytest
from bencode2 import bdecode

from vodserver.errors import ServeError


async def ask_json(client, target):
    answer = await client.ask(target)
    assert answer.status == 200
    assert answer["Content-Type"] == "application/json; charset=utf-8"
    return json.loads(answer.body)


async def test_titles_are_described_with_their_urls(store, serving, connect, pristine):
    server = await serving(store)
    client = await connect(server)

    described = await ask_json(client, "/titles/clock")

    title = pristine.title
    assert (
        described.items()
        >= {
            "id": "clock",
            "name": "clock",
            "bytes": title.film_bytes,
            "duration_seconds": title.duration,
            "piece_bytes": title.piece_bytes,
            "info_hash": title.info_hash,
            "sha256": hashlib.sha256(pristine.film.read_bytes()).hexdigest(),
            "torrent": f"{server.url}/titles/clock/torrent",
            "content": f"{server.url}/titles/clock/content",
        }.items()
    )
    assert await ask_json(client, "/titles") == [described]


async def test_a_public_url_is_used_everywhere(store, serving, connect):
    server = await serving(store, public_url="https://films.example/vod/", trackers=("http://t/a",))
    client = await connect(server)

    described = await ask_json(client, "/titles/clock")
    torrent = bdecode((await client.ask("/titles/clock/torrent")).body)

    assert described["content"] == "https://films.example/vod/titles/clock/content"
    assert torrent[b"url-list"] == described["content"].encode()
    assert torrent[b"announce"] == b"http://t/a"


async def test_the_torrent_is_had_by_id_and_by_info_hash(store, serving, connect, pristine):
    client = await connect(await serving(store))
    info_hash = pristine.title.info_hash

    by_id = await client.ask("/titles/clock/torrent")
    by_hash = await client.ask(f"/torrents/{info_hash}.torrent")
    by_upper = await client.ask(f"/torrents/{info_hash.upper()}.torrent")

    assert by_id.body == by_hash.body == by_upper.body
    assert by_id["Content-Type"] == "application/x-bittorrent"
    assert by_id["Content-Disposition"] == 'attachment; filename="clock.torrent"'


@pytest.mark.parametrize(
    "target",
    [
        "/",
        "/titles/",
        "/titles/none",
        "/titles/none/content",
        "/titles/none/torrent",
        "/titles/clock/nothing",
        "/titles/..%2f..%2fetc%2fpasswd",
        "/titles/../../etc/passwd",
        "/titles/clock%00/content",
        "/torrents/" + "0" * 40 + ".torrent",
        "/torrents/..torrent",
    ],
)
async def test_what_is_not_there_is_404(store, serving, connect, target):
    client = await connect(await serving(store))

    answer = await client.ask(target)

    assert answer.status == 404
    assert b"Traceback" not in answer.body


@pytest.mark.parametrize("target", ["/titles", "/titles/clock", "/titles/clock/content", "/status"])
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "PROPFIND"])
async def test_other_methods_are_405_with_what_is_allowed(store, serving, connect, target, method):
    client = await connect(await serving(store))

    answer = await client.ask(target, "Content-Length: 0", method=method)

    assert answer.status == 405
    assert {name.strip() for name in answer["Allow"].split(",")} == {"GET", "HEAD"}


@pytest.mark.parametrize(
    "target", ["/titles", "/titles/clock", "/titles/clock/torrent", "/status", "/healthz"]
)
async def test_head_works_on_every_route(store, serving, connect, target):
    client = await connect(await serving(store))

    answer = await client.ask(target, method="HEAD")

    assert answer.status == 200
    assert int(answer["Content-Length"]) > 0


async def test_status_tells_what_was_sent_and_what_the_disks_do(store, serving, connect, pristine):
    seed = {"bytes_sent": 77, "payload_bytes_sent": 70, "port": 5}
    client = await connect(await serving(store, seed=seed))
    film = await client.ask("/titles/clock/content")

    status = await ask_json(client, "/status")

    assert status["http_bytes_sent"] == film.wire_bytes
    assert (status["seed_bytes_sent"], status["seed_payload_bytes_sent"]) == (77, 70)
    assert status["seed"] == seed
    assert status["titles"] == 1
    assert status["bad_replicas"] == 0
    assert [disk["number"] for disk in status["disks"]] == [0, 1, 2, 3]
    assert sum(disk["read_bytes"] for disk in status["disks"]) >= pristine.title.film_bytes
    assert all(disk["queued_bytes"] == 0 for disk in status["disks"])


async def test_status_without_a_seed(store, serving, connect):
    client = await connect(await serving(store))

    status = await ask_json(client, "/status")

    assert (status["seed"], status["seed_bytes_sent"]) == (None, 0)


async def test_an_unforeseen_fault_is_a_500_that_tells_strangers_nothing(
    store, serving, connect, monkeypatch, caplog
):
    def broken():
        raise RuntimeError("secret detail")

    monkeypatch.setattr(store, "titles", broken)
    client = await connect(await serving(store))

    answer = await client.ask("/titles")

    assert answer.status == 500
    assert b"secret" not in answer.body
    assert "secret detail" in caplog.text


async def test_a_taken_port_is_one_clear_line(store, serving):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        from vodserver.http import HttpServer  # noqa: PLC0415 - the fixture takes port 0 only
        from vodserver.settings import ServeSettings  # noqa: PLC0415

        settings = ServeSettings(port=taken.getsockname()[1])
        server = HttpServer(store, settings, seed_status=None)
        with pytest.raises(ServeError, match=r"cannot serve on 127\.0\.0\.1 port \d+: .*--port"):
            await server.start()


@pytest.mark.parametrize("host", ["203.0.113.7", "no such host", "host.invalid"])
async def test_a_host_that_is_not_here_is_one_clear_line(store, serving, host):
    with pytest.raises(ServeError, match=f"cannot serve on {host}"):
        await serving(store, host=host)


@pytest.mark.skipif(not Path("/proc/net/if_inet6").exists(), reason="no IPv6 on this machine")
async def test_ipv6_urls_have_their_brackets(store, serving):
    server = await serving(store, host="::1")

    assert server.url.startswith("http://[::1]:")
