"""Streams over a real socket, and the clockwork between the engines and the clock."""

import asyncio
import dataclasses
import ssl

import pytest
from bencode2 import bdecode

from tests.vodserver.http.conftest import settled
from tests.vodserver.http.test_metrics import read
from tests.vodserver.http.test_tls import keys  # noqa: F401 - a fixture
from toast.common.errors import UsageError
from vodserver.errors import ServeUsageError
from vodserver.http.admission import Refusal, Ticket
from vodserver.http.egress import EgressCap
from vodserver.http.links import sign_path
from vodserver.http.metrics import HttpCounts
from vodserver.http.pacing import Pace
from vodserver.http.stream import SendLimit, SharedCap, Streams, check_settings, rate_asked_for
from vodserver.settings import ServeSettings
from vodserver.store.files import OpenFile

STREAM = "/titles/clock/stream"
SECRET = b"a secret of sufficient length"


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


@pytest.fixture
def film(pristine):
    return pristine.film.read_bytes()


# -- limits, in virtual time -----------------------------------------------------------------------


def drive(limit, clock, chunk, seconds):
    """Send as fast as a limit lets, for so long: bytes."""
    end, sent = clock.now + seconds, 0
    while True:
        wait = limit.wait(chunk)
        if wait > 0:
            if clock.now + wait > end:
                return sent
            clock.now += wait
            continue
        limit.sent(chunk)
        sent += chunk


def test_without_cap_and_pace_nothing_waits():
    limit = SendLimit(SharedCap(None))

    assert limit.wait(10**9) == 0.0
    assert limit.chunk_bytes(4096) == 4096


def test_a_paced_answer_goes_by_its_timetable():
    clock = Clock()
    limit = SendLimit(SharedCap(None), Pace(100_000.0), clock)

    sent = drive(limit, clock, limit.chunk_bytes(1 << 20), 20.0)

    assert sent == pytest.approx(100_000 * 25, rel=0.01)
    assert limit.sent_bytes == sent


def test_answers_share_the_cap_and_what_was_sent_in_part_is_not_asked_for_twice():
    clock = Clock()
    cap = SharedCap(EgressCap(1e6), clock)
    limits = [SendLimit(cap, None, clock) for _ in range(4)]
    sent, end = 0, clock.now + 10
    while clock.now < end:
        waits = []
        for limit in limits:
            waits.append(limit.wait(50_000))
            if waits[-1] == 0:
                limit.sent(30_000)  # the socket took no more
                sent += 30_000
        clock.now += min(waits) or 0.001

    assert sent == pytest.approx(1e7, rel=0.03)
    shares = [limit.sent_bytes for limit in limits]
    assert max(shares) - min(shares) <= 100_000


def test_who_ends_waits_no_longer():
    clock = Clock()
    cap = SharedCap(EgressCap(1e6), clock)
    first, second = SendLimit(cap, None, clock), SendLimit(cap, None, clock)
    first.wait(10**6)
    assert second.wait(10**6) > 0
    assert cap.waiting == 1

    second.close()

    assert cap.waiting == 0


# -- admission with the facts of a server ----------------------------------------------------------


@dataclasses.dataclass
class FakeDisk:
    access_seconds: float = 0.017
    rate: float = 525e6 / 8
    expected_delay_seconds: float = 0.0
    read_bytes: int = 0
    stalled: bool = False


def make_streams(disks, sent=lambda: 0, **changes):
    return Streams(
        ServeSettings(**changes),
        disks=lambda: disks,
        sent_bytes=sent,
        counts=HttpCounts(),
        clock=Clock(),
    )


def admit_all(streams, title, rate):
    tickets = []
    while isinstance(answer := streams.admit(title, 0, title.film_bytes, rate), Ticket):
        tickets.append(answer)
    return tickets, answer


def test_what_disks_were_seen_to_do_decides(pristine):
    title = pristine.title
    fast = make_streams({n: FakeDisk() for n in range(4)})
    slow = make_streams({n: FakeDisk(access_seconds=0.17) for n in range(4)})

    many, _ = admit_all(fast, title, 1e6)
    few, _ = admit_all(slow, title, 1e6)

    assert len(many) > 3 * len(few) > 0


def test_a_stalled_disk_is_none(pristine):
    disks = {n: FakeDisk(stalled=True) for n in range(4)}
    answer = make_streams(disks).admit(pristine.title, 0, 1000, 1e6)

    assert isinstance(answer, Refusal)
    assert answer.cause == "replicas"


def test_plain_requests_are_seen_and_streams_are_not_taken_for_them(pristine):
    sent = 0
    disks = {n: FakeDisk() for n in range(4)}
    streams = make_streams(disks, sent=lambda: sent)
    clock = streams._clock
    limit = streams.limit(pristine.title, 0, 10**6, 1e6)
    for _ in range(100):
        clock.now += 1.0
        sent += 3_000_000
        limit.sent(1_000_000)
        disks[0].read_bytes += 1_500_000
        situation = streams.situation(clock.now)

    assert situation.plain_rate == pytest.approx(2e6, rel=0.01)
    assert situation.misses == pytest.approx(0.5, rel=0.01)


@pytest.mark.parametrize(
    "changes",
    [
        {"stream_least_percent": 0},
        {"stream_most_percent": 50},
        {"disk_busy_percent": 101},
        {"stream_pacing": "none"},
    ],
)
def test_settings_that_cannot_be_meant_are_refused(changes):
    with pytest.raises(ServeUsageError):
        check_settings(ServeSettings(**changes))


def test_a_rate_may_be_asked_for_within_bounds(pristine):
    title, settings = pristine.title, ServeSettings()
    mean = title.film_bytes / title.duration

    assert rate_asked_for(None, title, settings) == mean
    assert rate_asked_for("100kB/s", title, settings) == 100_000
    for text in ("1kB/s", "1GB/s", "fast", "", "5", "9" * 1000 + "kB/s"):
        with pytest.raises(UsageError):
            rate_asked_for(text, title, settings)


# -- over the wire ---------------------------------------------------------------------------------


async def test_a_stream_is_the_film_and_ranges_of_it(store, film, serving, connect):
    client = await connect(await serving(store, stream_initial_seconds=60.0))

    whole = await client.ask(STREAM)
    part = await client.ask(STREAM, "Range: bytes=1000-1999")
    head = await client.ask(STREAM, method="HEAD")

    assert (whole.status, whole.body) == (200, film)
    assert (part.status, part.body) == (206, film[1000:2000])
    assert head["Content-Length"] == str(len(film))
    assert whole["ETag"] == head["ETag"]


@pytest.mark.slow
@pytest.mark.parametrize("by_time_map", [False, True])
async def test_a_stream_goes_no_faster_than_the_film(store, serving, connect, by_time_map):
    """At nearly four times its rate: a second's worth at once, and another second for the rest."""
    server = await serving(store, stream_initial_seconds=1.0, stream_by_time_map=by_time_map)
    client = await connect(server)
    (title,) = store.titles()
    rate = 3.99 * title.film_bytes / title.duration
    asked = f"{STREAM}?rate={int(rate * 8)}bps"
    began = asyncio.get_running_loop().time()

    answer = await client.ask(asked, f"Range: bytes=0-{int(2 * rate) - 1}")

    took = asyncio.get_running_loop().time() - began
    assert len(answer.body) == int(2 * rate)
    assert (0.5 if by_time_map else 0.95) < took < 2.5


@pytest.mark.parametrize("query", ["rate=fast", "rate=1bps", "rate=100GB/s", "rate="])
async def test_a_rate_that_is_none_is_one_clear_line(store, serving, connect, query):
    answer = await (await connect(await serving(store))).ask(f"{STREAM}?{query}")

    assert answer.status == 400
    assert answer.body.count(b"\n") == 1


async def test_one_too_many_is_told_when_to_come_back_and_may_then(store, serving, connect):
    server = await serving(store, streams_limit=1)
    first, second = await connect(server), await connect(server)
    first.writer.write(f"GET {STREAM} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    await first.reader.readuntil(b"\r\n\r\n")

    refused = await second.ask(STREAM)

    assert refused.status == 503
    assert 1 <= int(refused["Retry-After"]) <= 120
    assert refused.body.count(b"\n") == 1
    assert (await second.ask("/titles/clock/content", "Range: bytes=0-9")).status == 206
    first.writer.transport.abort()
    async with asyncio.timeout(5):
        while (await server.status())["streams"]:  # noqa: ASYNC110 - counters wake nobody
            await asyncio.sleep(0.005)
    assert (await second.ask(STREAM, "Range: bytes=0-9")).status == 206
    assert (await server.status())["streams_refused"] == 1


async def test_the_metrics_tell_of_all_that(store, serving, connect):
    client = await connect(await serving(store, streams_limit=0, egress_rate=1e9))
    await client.ask(STREAM)
    await client.ask("/titles/clock/content", "Range: bytes=0-99")
    await client.ask("/nothing")

    answer = await client.ask("/metrics")
    values, types = read(answer.body.decode())

    assert answer["Content-Type"].startswith("text/plain; version=0.0.4")
    assert values["vod_streams_refused_total", (("cause", "streams"),)] == 1
    content = (("route", "/titles/{id}/content"),)
    assert values["vod_http_content_bytes_total", content] == 100
    assert values["vod_http_responses_total", (*content, ("status", "206"))] == 1
    assert values["vod_http_responses_total", (("route", ""), ("status", "404"))] == 1
    assert values["vod_disk_there", (("disk", "0"),)] == 1
    assert values["vod_egress_cap_bytes", ()] == 1e9
    assert values["vod_titles", ()] == 1
    assert types["vod_http_sent_bytes_total"] == "counter"


@pytest.mark.slow
async def test_the_egress_cap_holds_for_plain_requests_together(store, film, serving, connect):
    """Five whole films at a cap of two films a second take more than two seconds."""
    server = await serving(store, egress_rate=2.0 * len(film))
    clients = [await connect(server) for _ in range(5)]
    began = asyncio.get_running_loop().time()

    answers = await asyncio.gather(*(c.ask("/titles/clock/content") for c in clients))

    took = asyncio.get_running_loop().time() - began
    assert all(answer.body == film for answer in answers)
    assert 2.2 < took < 4.0


@pytest.fixture
def secrets(tmp_path):
    path = tmp_path / "secrets"
    path.write_bytes(SECRET)
    path.chmod(0o600)
    return path


@pytest.mark.parametrize("part", ["content", "stream", "torrent"])
async def test_with_signed_links_only_a_link_opens(store, serving, connect, secrets, part):
    server = await serving(store, link_secrets=secrets, require_signed=True)
    client = await connect(server)
    path = f"/titles/clock/{part}"
    good = sign_path(SECRET, path, 4_000_000_000, "127.0.0.0/8")
    other = sign_path(SECRET, path, 4_000_000_000, "192.0.2.0/24")

    assert (await client.ask(f"{path}?{good}", "Range: bytes=0-99")).status in {200, 206}
    for query in ("", f"?{other}", f"?{good}x", f"?{sign_path(SECRET, path, 5)}"):
        for method in ("GET", "HEAD"):
            answer = await client.ask(path + query, "Range: bytes=0-99", method=method)
            assert answer.status == 403
            assert answer.body.count(b"\n") == (method == "GET")
    assert (await client.ask("/titles")).status == 200


async def test_the_torrent_of_a_signed_link_leads_to_the_film(
    store, film, serving, connect, secrets
):
    (title,) = store.titles()
    server = await serving(store, link_secrets=secrets, require_signed=True)
    client = await connect(server)
    for path in ("/titles/clock/torrent", f"/torrents/{title.info_hash}.torrent"):
        link = f"{path}?{sign_path(SECRET, path, 4_000_000_000)}"
        url = bdecode((await client.ask(link)).body)[b"url-list"].decode()

        answer = await client.ask(url.removeprefix(server.url))

        assert answer.body == film


async def test_secrets_are_read_again_when_told(store, serving, connect, secrets, caplog):
    server = await serving(store, link_secrets=secrets, require_signed=True)
    client = await connect(server)
    path = "/titles/clock/torrent"
    fresh = f"{path}?{sign_path(SECRET + b' renewed', path, 4_000_000_000)}"
    assert (await client.ask(fresh)).status == 403
    secrets.write_bytes(SECRET + b" renewed")
    server.reload()
    assert (await client.ask(fresh)).status == 200

    secrets.chmod(0o644)
    server.reload()

    assert "chmod 600" in caplog.text
    assert (await client.ask(fresh)).status == 200


@pytest.fixture(params=["tells", "says nothing"])
def file_system(request, monkeypatch):
    """One that says what it has in memory (RWF_NOWAIT), and one that does not."""
    if request.param != "tells":
        monkeypatch.setattr(OpenFile, "read_now", lambda *_: None)


@pytest.mark.usefixtures("file_system")
async def test_films_go_out_over_tls_as_they_are(store, film, serving, keys):  # noqa: F811
    certificate, key = keys["one"]
    server = await serving(store, tls_cert=certificate, tls_key=key)
    assert server.url.startswith("https://127.0.0.1:")
    context = ssl.create_default_context(cafile=certificate)
    port = int(server.url.rsplit(":", 1)[1])
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)

    writer.write(b"GET /titles/clock/content HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    answer = await asyncio.wait_for(reader.read(), 10)
    writer.close()

    assert answer.partition(b"\r\n\r\n")[2] == film


@pytest.mark.parametrize("changes", [{"tls_cert": "x"}, {"tls_key": "x"}, {"require_signed": True}])
async def test_half_of_what_is_needed_is_refused(store, serving, changes):
    with pytest.raises(ServeUsageError, match="--"):
        await serving(store, **changes)


async def test_the_access_log_has_every_answer(store, serving, connect, tmp_path):
    path = tmp_path / "access.log"
    server = await serving(store, access_log=str(path))
    client = await connect(server)
    await client.ask("/titles/clock/content", "Range: bytes=0-99", "User-Agent: player/1")
    await client.ask("/titles/clock/content", "Range: bytes=0-99,200-299")
    await client.ask('/no"thing?a=1', "Referer: http://x/")
    await client.ask(STREAM, "Range: bytes=0-49")
    await server.close()

    lines = [line.split("] ")[1] for line in path.read_text().splitlines()]
    assert lines[0] == '"GET /titles/clock/content HTTP/1.1" 206 100 "-" "player/1"'
    assert lines[1].startswith('"GET /titles/clock/content HTTP/1.1" 206 ')
    assert lines[2].startswith('"GET /no\\x22thing?a=1 HTTP/1.1" 404 ')
    assert lines[2].endswith('"http://x/" "-"')
    assert lines[3].startswith('"GET /titles/clock/stream HTTP/1.1" 206 50 ')


async def test_who_leaves_in_the_midst_is_noted_and_is_no_fault(
    store, serving, connect, tmp_path, caplog
):
    path = tmp_path / "access.log"
    server = await serving(store, access_log=str(path), stream_initial_seconds=1.0)
    client = await connect(server)
    client.writer.write(f"GET {STREAM} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    await client.reader.readexactly(10_000)
    client.writer.transport.abort()
    await settled(server, lambda s: s.connections == 0)
    await server.close()

    (line,) = path.read_text().splitlines()
    assert " 499 " in line
    assert int(line.split(" 499 ")[1].split()[0]) >= 9000
    assert "Traceback" not in caplog.text
