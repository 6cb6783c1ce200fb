"""Films over a real socket: the right bytes of them, and honest refusals."""

import asyncio
import errno
import hashlib
import os
import random
import socket
from pathlib import Path

import pytest

from tests.vodserver.conftest import flip_byte
from tests.vodserver.http.conftest import settled

CONTENT = "/titles/clock/content"


@pytest.fixture
def film(pristine):
    return pristine.film.read_bytes()


async def test_the_whole_film_arrives(store, film, serving, connect, pristine):
    client = await connect(await serving(store))

    answer = await client.ask(CONTENT)

    assert answer.status == 200
    assert answer.body == film
    assert answer["ETag"] == f'"{pristine.title.info_hash}"'
    assert answer["Accept-Ranges"] == "bytes"
    assert answer["Content-Type"] == "video/mp4"
    assert "Content-Range" not in answer.headers


@pytest.mark.parametrize("fast", [True, False])
async def test_a_disk_that_fails_in_the_middle_of_an_answer_is_made_up_for(
    home, serving, connect, monkeypatch, fast
):
    """Every extent on it fails when it is sent, and is noted as bad; the answer is whole."""
    film = home.film.read_bytes()
    real = os.sendfile

    def sendfile(fd, file, offset, count):
        if Path(f"/proc/self/fd/{file}").readlink().is_relative_to(home.disks[1]):
            raise OSError(errno.EIO, "Input/output error")
        return real(fd, file, offset, count)

    monkeypatch.setattr(os, "sendfile", sendfile)
    with home.open() as store:
        client = await connect(await serving(store, chunk_bytes=50_000))
        for _ in range(3):
            span = [f"Range: bytes=0-{len(film) - 1}"] if fast else []
            assert (await client.ask(CONTENT, *span)).body == film
        bad = store.bad_replicas()
        assert bad
        assert {number for _, _, number in bad} == {1}


async def test_random_ranges_over_one_connection_are_the_film_s_slices(
    store, film, serving, connect, pristine
):
    """With chunks smaller than an extent and not aligned with it, so that seams are crossed."""
    client = await connect(await serving(store, chunk_bytes=100_000))
    rng = random.Random(4)
    seams = [extent.number * pristine.title.extent_bytes for extent in pristine.title.extents]
    starts = [rng.randrange(len(film)) for _ in range(15)] + [seam - 1 for seam in seams[1:]]

    for start in starts:
        last = min(len(film) - 1, start + rng.randrange(300_000))
        answer = await client.ask(CONTENT, f"Range: bytes={start}-{last}")

        assert answer.status == 206
        assert answer["Content-Range"] == f"bytes {start}-{last}/{len(film)}"
        assert answer.body == film[start : last + 1]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (["Range: bytes=0-9"], 206),
        (["Range: bytes=-9"], 206),
        (["range: BYTES=0-9,"], 206),
        (["Range: bytes=99999999-"], 416),
        (["Range: bytes=-0"], 416),
        (["Range: lines=0-9"], 200),
        (["Range: bytes=0-1,3-4"], 206),  # joined: so small a gap costs less than a part
        (["Range: bytes=0-1", "Range: bytes=3-4"], 200),  # two lines are one list
        (["Range: bytes=0-9", 'If-Range: "other"'], 200),
        (["Range: bytes=0-9", "If-Range: {etag}"], 206),
        (["Range: bytes=0-9", "If-Range: {modified}"], 206),
        (["Range: bytes=0-9", "If-Range: W/{etag}"], 200),
        (["If-None-Match: {etag}"], 304),
        (['If-None-Match: "a"', "If-None-Match: {etag}"], 304),
        (["If-Modified-Since: {modified}"], 304),
        (['If-Match: "other"', "Range: bytes=0-9"], 412),
    ],
)
async def test_the_rules_hold_on_the_wire_and_the_connection_lives_on(
    store, serving, connect, headers, status
):
    client = await connect(await serving(store))
    plain = await client.ask(CONTENT, method="HEAD")
    values = {"etag": plain["ETag"], "modified": plain["Last-Modified"]}

    answer = await client.ask(CONTENT, *(line.format(**values) for line in headers))

    assert answer.status == status
    assert answer["ETag"] == plain["ETag"]
    assert "Date" in {name.title() for name in answer.headers}
    if status == 416:
        assert answer["Content-Range"] == f"bytes */{store.titles()[0].film_bytes}"
    if status in {304, 412, 416}:
        assert answer.body == b""
    assert (await client.ask(CONTENT, "Range: bytes=4-7")).body == b"ftyp"


@pytest.mark.parametrize("headers", [[], ["Range: bytes=0-9"], ["Range: bytes=99999999-"]])
async def test_head_is_the_get_without_its_content(store, film, serving, connect, headers):
    client = await connect(await serving(store))

    answer = await client.ask(CONTENT, *headers, method="HEAD")

    assert answer.status == 200
    assert answer["Content-Length"] == str(len(film))
    assert "content-range" not in answer.headers
    assert (await client.ask("/healthz")).body == b"ok\n"  # nothing stood between the answers


async def test_a_rotten_replica_is_never_sent(home, serving, connect):
    film = home.film.read_bytes()
    for extent in home.title.extents:
        flip_byte(home.replica(extent.number, extent.number % 2), extent.size // 3)
    with home.open() as store:
        server = await serving(store)
        client = await connect(server)

        assert (await client.ask(CONTENT)).body == film
        await server.close()


async def test_a_film_that_cannot_be_read_is_503_not_garbage(home, serving, connect):
    for copy in (0, 1):
        home.replica(0, copy).unlink()
    with home.open() as store:
        server = await serving(store)
        client = await connect(server)

        answer = await client.ask(CONTENT)

        assert answer.status == 503
        assert b"extent 0 of 'clock' cannot be read" in answer.body
        await server.close()


async def test_a_film_that_breaks_off_is_cut_not_filled_up(home, serving, connect):
    """The length is promised before the fault is met: the connection ends short of it."""
    film = home.film.read_bytes()
    for copy in (0, 1):
        home.replica(3, copy).unlink()
    good = 3 * home.title.extent_bytes
    with home.open() as store:
        server = await serving(store, chunk_bytes=64 * 1024)
        client = await connect(server)
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)) as cut:
            await client.ask(CONTENT)
        await server.close()

    if isinstance(cut.value, asyncio.IncompleteReadError):
        assert len(cut.value.partial) <= good
        assert film.startswith(cut.value.partial)


async def small_buffers(server):
    """A socket whose kernel takes little, so that a lazy reader is felt soon."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.setblocking(False)
    host, port = server.url.removeprefix("http://").split(":")
    await asyncio.get_running_loop().sock_connect(sock, (host, int(port)))
    return sock


@pytest.mark.slow
async def test_a_client_that_does_not_read_is_cut_and_costs_little_memory(endless, serving):
    """64 MB are promised; what is read ahead of the client stays within its buffers."""
    store, film = endless
    server = await serving(store, send_timeout_seconds=0.2)
    sock = await small_buffers(server)
    request = f"GET {CONTENT} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
    await asyncio.get_running_loop().sock_sendall(sock, request)

    await settled(server, lambda s: film.read_bytes and not s.connections)

    assert film.read_bytes < 16_000_000
    assert server.statistics().bytes_sent <= film.read_bytes + 1000
    sock.close()
    await server.close()


async def test_many_viewers_at_a_time_all_get_the_film(store, film, serving, connect):
    server = await serving(store)
    clients = [await connect(server) for _ in range(10)]

    answers = await asyncio.gather(*(client.ask(CONTENT) for client in clients))

    wanted = hashlib.sha256(film).digest()
    assert all(hashlib.sha256(answer.body).digest() == wanted for answer in answers)


async def test_a_client_that_goes_away_in_the_midst_harms_nobody(store, film, serving, connect):
    server = await serving(store)
    leaving, staying = await connect(server), await connect(server)
    leaving.writer.write(f"GET {CONTENT} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    await leaving.reader.readexactly(1000)
    leaving.writer.transport.abort()

    assert (await staying.ask(CONTENT)).body == film
