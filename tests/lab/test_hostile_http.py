"""Strangers who mean ill, against the real server: it bounds them, and serves the others on.

While all of this goes on, an honest client asks for one range after the other over a connection of
its own and compares every byte; the last test reads what came of it. The slow ones are let in at
the beginning and looked after at the end, so that their time-outs cost no time of their own.
"""

import contextlib
import http.client
import random
import re
import resource
import select
import socket
import threading
import time
from dataclasses import dataclass, field

import pytest

from tests.interop.film_server import big_film, film_server
from vodserver.settings import ServeSettings

pytestmark = [pytest.mark.lab, pytest.mark.slow, pytest.mark.timeout(180)]

SETTINGS = ServeSettings()
SLOW_ONES = 150
NEVER_READ = 40
MB = 1e6


@pytest.fixture(scope="module", autouse=True)
def many_files():
    """As many descriptors as this process may have: it plays ten thousand strangers."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield hard
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture(scope="module")
def server(tmp_path_factory, many_files):
    with film_server(tmp_path_factory.mktemp("server"), big_film(tmp_path_factory)) as server:
        yield server


@dataclass
class Honest:
    """An honest client, in a thread: some ranges a second, each compared with the film."""

    server: object
    data: bytes
    seconds: list[float] = field(default_factory=list)
    wrong: int = 0
    failures: list[str] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event)

    def run(self):
        rng = random.Random(3)
        host, port = self.server.address
        connection = http.client.HTTPConnection(host, port, timeout=20)
        with contextlib.closing(connection):
            while not self.ended.wait(0.05):
                start = rng.randrange(len(self.data) - 400_000)
                span = f"bytes={start}-{start + 399_999}"
                begun = time.monotonic()
                try:
                    connection.request("GET", self.server.path, headers={"Range": span})
                    answer = connection.getresponse()
                    body = answer.read()
                except OSError as error:
                    self.failures.append(repr(error))
                    return
                self.seconds.append(time.monotonic() - begun)
                if answer.status != 206:
                    self.failures.append(str(answer.status))
                elif body != self.data[start : start + 400_000]:
                    self.wrong += 1


@pytest.fixture(scope="module")
def honest(server):
    client = Honest(server, server.film.read_bytes())
    thread = threading.Thread(target=client.run)
    thread.start()
    yield client
    client.ended.set()
    thread.join()


@pytest.fixture(scope="module", autouse=True)
def memory(server, honest):
    """The server's resident memory before anybody was hostile, bytes."""
    while len(honest.seconds) < 10 and not honest.failures:
        time.sleep(0.05)
    return server.rss_bytes()


def stranger(server, number=0, *, receive_bytes=None):
    """A connection from one of many loopback addresses."""
    sock = socket.socket()
    sock.settimeout(10)
    if receive_bytes is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    sock.setsockopt(socket.IPPROTO_IP, socket.IP_BIND_ADDRESS_NO_PORT, 1)
    sock.bind((f"127.66.{number // 200 % 200}.{number % 200 + 1}", 0))
    sock.connect(server.address)
    return sock


def tell(server, request, *, patience=3.0):
    """Everything that a server answers to these bytes, and whether it then closed."""
    received = b""
    with stranger(server) as sock:
        sock.settimeout(patience)
        try:
            sock.sendall(request)
            while part := sock.recv(2**16):
                received += part
        except TimeoutError:
            return received, False
        except ConnectionError:
            pass  # cut while more of the request was on its way
    return received, True


def statuses(received):
    """The status of each answer in a stream of them; no content here holds a status line."""
    return [int(status) for status in re.findall(rb"HTTP/1\.[01] (\d{3}) ", received)]


@dataclass(frozen=True)
class SlowOnes:
    """Half requests, and when they were begun."""

    socks: list
    begun: float


@pytest.fixture(scope="module", autouse=True)
def slow_ones(server, honest):
    """Connections that send a request a byte at a time and never end it (slowloris)."""
    begun = time.monotonic()
    socks = [stranger(server, number) for number in range(SLOW_ONES)]
    starts = (
        b"",
        b"G",
        b"GET /titles HTTP/1.1\r\nHost: x\r\nX: ",
        b"GET /titles/film/content HTTP/1.1\r\nHost: x\r\nRange: bytes=0-",
    )
    for number, sock in enumerate(socks):
        sock.sendall(starts[number % len(starts)])
    ended = threading.Event()

    def dribble():
        while not ended.wait(1.0):
            for sock in socks[2::4]:
                with contextlib.suppress(OSError):
                    sock.send(b"x")

    thread = threading.Thread(target=dribble)
    thread.start()
    yield SlowOnes(socks, begun)
    ended.set()
    thread.join()
    for sock in socks:
        sock.close()


PATHS = [
    b"/../../../../etc/passwd",
    b"/titles/../../../../etc/passwd",
    b"/titles/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
    b"/titles/..%2f..%2f..%2fetc%2fpasswd/content",
    b"/titles/%252e%252e%252f%252e%252e%252fetc%252fpasswd/content",
    b"/titles/..%5c..%5cetc%5cpasswd/content",
    b"/titles/..\\..\\etc\\passwd/content",
    b"/titles/%c0%ae%c0%ae%c0%af/content",
    b"/titles/film/content/../../../store/catalog.sqlite",
    b"/titles/film%00/content",
    b"/titles/%00/content",
    b"/titles/film\x00/content",
    b"/titles/./film/./content/.",
    b"/titles//content",
    b"/titles/%ff%fe/content",
    b"/titles/" + b"f" * 3000 + b"/content",
    b"/torrents/..%2f..%2fstore%2fcatalog.sqlite.torrent",
    b"//etc/passwd",
    b"file:///etc/passwd",
    b"http://[::1/titles",
    b"http://x/../../etc/passwd",
    b"http://x:99999/etc/passwd",
    b"*",
    b"?/etc/passwd",
    b"etc/passwd",
]


@pytest.mark.parametrize("path", PATHS, ids=[repr(path)[2:40] for path in PATHS])
def test_no_path_leads_out(server, path):
    received, _ = tell(
        server, b"GET " + path + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    )

    assert len(statuses(received)) == 1
    assert 400 <= statuses(received)[0] < 500
    assert b"root:" not in received
    assert b"SQLite" not in received
    assert b"Traceback" not in received


def test_a_target_in_absolute_form_is_the_path_in_it(server):
    """RFC 9112, 3.2.2: a server must accept it."""
    head = f"GET {server.content_url} HTTP/1.1\r\nHost: x\r\nRange: bytes=0-0\r\n"

    received, _ = tell(server, head.encode() + b"Connection: close\r\n\r\n")

    assert statuses(received) == [206]


HOST = b"Host: x\r\nConnection: close\r\n"
MALFORMED = {
    "line too long": b"GET /" + b"x" * 100_000 + b" HTTP/1.1\r\n" + HOST + b"\r\n",
    "field too long": b"GET /titles HTTP/1.1\r\n" + HOST + b"X: " + b"y" * 1_000_000 + b"\r\n\r\n",
    "name too long": b"GET /titles HTTP/1.1\r\n" + HOST + b"n" * 100_000 + b": y\r\n\r\n",
    "too many fields": b"GET /titles HTTP/1.1\r\n" + HOST + b"X: y\r\n" * 20_000 + b"\r\n",
    "no end of fields": b"GET /titles HTTP/1.1\r\n" + b"X: y\r\n" * 200_000,
    "space in the method": b"GE T /titles HTTP/1.1\r\n" + HOST + b"\r\n",
    "NUL in the method": b"G\x00T /titles HTTP/1.1\r\n" + HOST + b"\r\n",
    "a long method": b"G" * 50_000 + b" /titles HTTP/1.1\r\n" + HOST + b"\r\n",
    "NUL in a field": b"GET /titles HTTP/1.1\r\n" + HOST + b"X: a\x00b\r\n\r\n",
    "bare CR in a field": b"GET /titles HTTP/1.1\r\n" + HOST + b"X: a\rY: b\r\n\r\n",
    "space before the colon": b"GET /titles HTTP/1.1\r\n" + HOST + b"Range : bytes=0-1\r\n\r\n",
    "a field without a colon": b"GET /titles HTTP/1.1\r\n" + HOST + b"nothing\r\n\r\n",
    "no version": b"GET /titles\r\n\r\n",
    "another protocol": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(200) + b"\r\n\r\n",
    "version 9": b"GET /titles HTTP/9.9x\r\n" + HOST + b"\r\n",
    "noise": random.Random(1).randbytes(20_000) + b"\r\n\r\n",
}


@pytest.mark.parametrize("what", MALFORMED)
def test_what_is_no_request_is_refused_and_its_connection_closed(server, what):
    """RFC 9112, 2.2 and 3: 400, 431 or 414; to be cut before all was said is right too."""
    received, closed = tell(server, MALFORMED[what])

    assert closed
    assert len(statuses(received)) <= 1
    assert all(400 <= status < 500 or status == 505 for status in statuses(received))
    assert b"Traceback" not in received


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "get"])
def test_other_methods_are_told_which_there_are(server, method):
    """RFC 9110, 15.5.6: with Allow. TRACE never echoes what it was sent."""
    head = f"{method} {server.path} HTTP/1.1\r\nX-Mine: 5711\r\nContent-Length: 0\r\n".encode()

    received, _ = tell(server, head + HOST + b"\r\n")

    (status,) = statuses(received)
    if method == "OPTIONS" and status < 300:
        return  # a browser asks so before it reads across origins
    assert status in ({405} if method.isupper() else {400, 405, 501})
    if status == 405:
        assert b"\r\nAllow: " in received
    assert b"5711" not in received


HIDDEN = b"GET /healthz HTTP/1.1\r\nHost: hidden\r\n\r\n"
LENGTHS = f"Content-Length: {len(HIDDEN)}\r\n".encode()
SMUGGLED = {
    "length and coding": LENGTHS + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "coding and length": b"Transfer-Encoding: chunked\r\n" + LENGTHS + b"\r\n0\r\n\r\n",
    "two lengths": b"Content-Length: 0\r\n" + LENGTHS + b"\r\n",
    "lengths in a list": b"Content-Length: 0, %d\r\n\r\n" % len(HIDDEN),
    "a length with a sign": b"Content-Length: +0\r\n\r\n",
    "a negative length": b"Content-Length: -1\r\n\r\n",
    "a length in hex": b"Content-Length: 0x0\r\n\r\n",
    "a length with a space": b"Content-Length: 1 0\r\n\r\n",
    "no length at all": b"Content-Length: \r\n\r\n",
    "an unknown coding": b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "chunked is not last": b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    "chunked twice": b"Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
    "coding after vertical tab": b"Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n",
    "coding before a space": b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    "a folded coding": b"Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n",
    "a chunk of no size": b"Transfer-Encoding: chunked\r\n\r\n\r\n\r\n",
    "a chunk size with a sign": b"Transfer-Encoding: chunked\r\n\r\n+0\r\n\r\n",
    "a chunk size in 0x": b"Transfer-Encoding: chunked\r\n\r\n0x0\r\n\r\n",
    "a chunk too large": b"Transfer-Encoding: chunked\r\n\r\n" + b"f" * 40 + b"\r\n",
    "a line feed for a chunk": b"Transfer-Encoding: chunked\r\n\r\n0\n\n",
}


@pytest.mark.parametrize("method", [b"GET", b"POST"])
@pytest.mark.parametrize("what", SMUGGLED)
def test_no_request_is_smuggled_in_another_one(server, what, method):
    """RFC 9112, 6.3: where two could disagree on a request's end, nothing after it is answered."""
    head = method + b" /titles HTTP/1.1\r\nHost: x\r\n"

    received, closed = tell(server, head + SMUGGLED[what] + HIDDEN, patience=12)

    assert closed
    assert len(statuses(received)) <= 1
    assert b"ok\n" not in received.partition(b"\r\n\r\n")[2]


def test_pipelined_requests_are_answered_in_order(server):
    """RFC 9112, 9.3.2."""
    heads = [
        b"GET %b HTTP/1.1\r\nHost: x\r\nRange: bytes=%d-%d\r\n" % (server.path.encode(), at, at)
        for at in (5, 6, 7)
    ]

    received, _ = tell(server, b"\r\n".join(heads) + b"Connection: close\r\n\r\n")

    assert statuses(received) == [206, 206, 206]
    spans = [line for line in received.split(b"\r\n") if line.startswith(b"Content-Range")]
    assert [span.split()[2].partition(b"-")[0] for span in spans] == [b"5", b"6", b"7"]


def wait_connections(server, most, seconds):
    """Wait until the server counts at most so many connections."""
    deadline = time.monotonic() + seconds
    while (count := server.status()["http_connections"]) > most:
        assert time.monotonic() < deadline, f"{count} connections are still open"
        time.sleep(0.1)


def test_those_who_never_read_cost_little_and_are_cut_in_the_end(
    server, honest, memory, figures, full
):
    """Each asks for all of the film and takes nothing of it; cut by the time-out (with --full)."""
    before = server.rss_bytes()
    socks = [stranger(server, number, receive_bytes=4096) for number in range(NEVER_READ)]
    try:
        for sock in socks:
            sock.sendall(f"GET {server.path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        seen = len(honest.seconds)
        while len(honest.seconds) < seen + 10 and not honest.failures:
            time.sleep(0.05)
        grown = server.rss_bytes() - before
        figures["never_read_mb_each"] = round(grown / NEVER_READ / MB, 3)
        assert grown < NEVER_READ * 3 * SETTINGS.chunk_bytes
        if full:
            begun = time.monotonic()
            # The slow ones are cut meanwhile: the honest one is left, and who asks for the status.
            wait_connections(server, 2, SETTINGS.send_timeout_seconds + 15)
            figures["never_read_cut_after_seconds"] = round(time.monotonic() - begun, 1)
    finally:
        for sock in socks:
            sock.close()


def has_something(sock):
    """Whether there is something to read of a connection, its end among that."""
    poll = select.poll()  # select(2) knows no descriptor above 1023
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(0))


def test_a_crowd_of_idle_connections_is_bounded_and_others_are_served_on(
    server, honest, figures, full, many_files
):
    """As far as the limit they are let in, beyond it told to come back (503)."""
    crowd = 10_000 if full else 1_000
    if many_files < crowd + 500:
        pytest.skip(f"this process may have {many_files} descriptors only: ulimit -n")
    before = server.status()
    rss_before = server.rss_bytes()
    alone = sorted(honest.seconds)[len(honest.seconds) // 2]
    socks, told, refused = [], 0, 0
    seen = len(honest.seconds)
    begun = time.monotonic()
    try:
        for number in range(crowd):
            socks.append(stranger(server, number))  # noqa: PERF401 - closed if one fails
        took = time.monotonic() - begun
        while len(honest.seconds) < seen + 20 and not honest.failures:
            time.sleep(0.05)
        for sock in socks:
            if has_something(sock):
                with contextlib.suppress(ConnectionError):
                    told += statuses(sock.recv(200)) == [503]
                refused += 1
        rss = server.rss_bytes()
        during = sorted(honest.seconds[seen:])
        held = crowd - refused
        figures["idle_connections"] = crowd
        figures["idle_held"] = held
        figures["idle_refused"] = refused
        figures["idle_connect_seconds"] = round(took, 2)
        figures["idle_kb_each"] = round((rss - rss_before) / max(1, held) / 1000, 1)
        figures["honest_ms_before_idle"] = round(alone * 1000, 2)
        figures["honest_ms_during_idle"] = round(during[len(during) // 2] * 1000, 2)
    finally:
        for sock in socks:
            sock.close()
    assert honest.failures == []
    assert held <= SETTINGS.http_connections
    assert told == refused
    if not full:
        assert refused == 0
    assert rss - rss_before < 60_000 * held + 20 * MB
    assert during[len(during) // 2] < max(0.1, 5 * alone)
    wait_connections(server, before["http_connections"], 10)
    received, _ = tell(server, b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n")
    assert statuses(received) == [200]


def test_the_server_takes_as_many_descriptors_as_it_may(tmp_path, small_film, many_files):
    """Begun as most shells begin programs, with 1024, it serves beside 1,300 connections."""
    if many_files < 3_000:
        pytest.skip(f"this process may have {many_files} descriptors only: ulimit -n")
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, many_files))
    try:
        with film_server(tmp_path, small_film) as server:
            resource.setrlimit(resource.RLIMIT_NOFILE, (many_files, many_files))
            with contextlib.ExitStack() as crowd:
                for number in range(1_300):
                    crowd.enter_context(stranger(server, number))
                received, _ = tell(server, b"GET /healthz HTTP/1.1\r\n" + HOST + b"\r\n")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (many_files, many_files))
    assert statuses(received) == [200]


def test_half_requests_are_cut_in_time(server, slow_ones, figures):
    """However slowly they come on: a new connection has so long to make its request, all in all."""
    deadline = slow_ones.begun + SETTINGS.header_timeout_seconds + 5
    waiting = slow_ones.socks
    while waiting := [sock for sock in waiting if not has_something(sock)]:
        if time.monotonic() > deadline:
            break
        time.sleep(0.2)
    for sock in slow_ones.socks:
        with contextlib.suppress(ConnectionError):
            assert sock in waiting or sock.recv(2**16) == b""
    figures["slowloris_connections"] = SLOW_ONES
    figures["slowloris_left"] = len(waiting)
    assert len(waiting) == 0


def test_nothing_was_amiss_for_the_honest_client_nor_for_the_server(
    server, honest, memory, figures
):
    """Every byte right, no answer late; and the memory is given back, or nearly."""
    wait_connections(server, 2, 10)
    rss = server.rss_bytes()
    figures["honest_answers"] = len(honest.seconds)
    figures["honest_wrong_bytes"] = honest.wrong
    figures["honest_failures"] = len(honest.failures)
    figures["honest_slowest_seconds"] = round(max(honest.seconds), 3)
    figures["hostile_rss_mb_before"] = round(memory / MB, 1)
    figures["hostile_rss_mb_after"] = round(rss / MB, 1)
    assert honest.failures == []
    assert honest.wrong == 0
    assert max(honest.seconds) < 2.0
    assert rss < memory + 80 * MB
