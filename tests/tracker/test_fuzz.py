"""Strangers send anything at all: mutated datagrams and requests, a million of them with --full."""

import random
import struct
from pathlib import Path
from resource import getpagesize

import bencode2
import numpy as np
import pytest

from tracker import udp_codec
from tracker.connection_ids import SECRET_BYTES, ConnectionIds
from tracker.http import HttpAnswers
from tracker.messages import pack_address
from tracker.passkeys import Passkeys
from tracker.service import Service
from tracker.settings import TrackerSettings
from tracker.swarm import family_of
from tracker.udp_answers import MOST_ANSWER_BYTES, UdpAnswers
from tracker.udp_codec import UdpAnnounce

pytestmark = pytest.mark.slow

LIMITS = TrackerSettings(max_peers=2000, max_peers_per_torrent=200, max_torrents=50)
SOURCES = [
    pack_address(text)
    for text in ("198.51.100.1", "198.51.100.2", "127.0.0.1", "2001:db8::1", "::1", "203.0.113.9")
]
MOST_HTTP_BYTES = 40_000  # 200 peers as dictionaries


def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * getpagesize()


def mutated(rng, data):
    """One to four changes: a byte, a cut, a part doubled or lost, a number at its limits."""
    data = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        place = rng.randrange(len(data) + 1)
        match rng.randrange(5):
            case 0 if data:
                data[place % len(data)] = rng.randrange(256)
            case 1:
                del data[place:]
            case 2:
                data[place:place] = data[place : place + rng.randint(1, 40)]
            case 3:
                del data[place : place + rng.randint(1, 8)]
            case _:
                data[place : place + 4] = rng.choice((b"\0" * 4, b"\xff" * 4, b"\x7f\xff\xff\xff"))
    return bytes(data)


class World:
    """A tracker with some peers, and its own clock."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.now = 1000.0
        self.service = Service(LIMITS, np.random.default_rng(seed), 0.0)
        self.service.swarms.permit(frozenset(bytes([number]) * 20 for number in range(60)))
        self.udp = UdpAnswers(self.service, ConnectionIds(bytes(SECRET_BYTES)))
        self.http = HttpAnswers(self.service, lambda: self.now, lambda: {"peers": 1})

    def tick(self):
        self.now += self.rng.choice((0.0, 0.0, 0.001, 1.0))
        self.service.passkeys = None if self.rng.random() < 0.9 else Passkeys(b"x" * 16)

    def datagram(self, connection_id):
        rng = self.rng
        film = bytes([rng.randrange(70)]) * 20
        wish = UdpAnnounce(
            film,
            rng.randbytes(20),
            0,
            rng.choice((0, 9)),
            0,
            rng.randrange(4),
            0,
            0,
            -1,
            rng.randrange(65536),
        )
        data = f"/announce?playhead={rng.random() * 9000:.1f}&x=y".encode()
        options = udp_codec.encode_options(data) if rng.random() < 0.3 else b""
        return rng.choice(
            (
                udp_codec.encode_connect_request(5),
                udp_codec.encode_announce_request(connection_id, 5, wish, options),
                udp_codec.encode_announce_request(connection_id, 5, wish, options),
                udp_codec.encode_scrape_request(connection_id, 5, [film] * rng.randint(1, 60)),
            )
        )

    def request(self):
        rng = self.rng
        film = "".join(f"%{byte:02x}" for byte in [rng.randrange(70)] * 20)
        path = rng.choice(("announce", "announce", "announce", "scrape", "status", "metrics", ""))
        return (
            f"GET /{path}?info_hash={film}&peer_id={rng.randrange(10**20):020}"
            f"&port={rng.randrange(70000)}&left={rng.randrange(3)}"
            f"&event={rng.choice(('started', 'stopped', 'completed', ''))}"
            f"&compact={rng.randrange(2)}&numwant={rng.choice((-1, 0, 50, 10**9))}"
            f"&ip=203.0.113.{rng.randrange(300)}&playhead={rng.random() * 9000:.1f} HTTP/1.1\r\n"
            "Host: t\r\nConnection: keep-alive"
        ).encode()


def run_udp(world, count):
    """Answers to mutated datagrams; how many had proved themselves, and the worst amplification."""
    proved, worst = 0, 0.0
    for _ in range(count):
        world.tick()
        address = world.rng.choice(SOURCES)
        source = (address, family_of(address))
        given = world.udp.answer(udp_codec.encode_connect_request(1), 16, source, world.now)
        connection_id = struct.unpack(">IIQ", given)[2]
        honest = world.rng.random() < 0.5
        sent = world.datagram(connection_id if honest else world.rng.getrandbits(64))
        sent = mutated(world.rng, sent) if world.rng.random() < 0.9 else sent
        answer = world.udp.answer(bytearray(sent), len(sent), source, world.now)
        assert answer is None or 8 <= len(answer) <= MOST_ANSWER_BYTES
        if sent[:8] == connection_id.to_bytes(8, "big"):
            proved += 1
        elif answer is not None:
            worst = max(worst, len(answer) / len(sent))
    return proved, worst


def run_http(world, count):
    """Answers to mutated requests; how many were no failure."""
    good = 0
    for _ in range(count):
        world.tick()
        head = world.request()
        head = mutated(world.rng, head) if world.rng.random() < 0.9 else head
        answer, keep_open = world.http.respond(head, world.rng.choice(SOURCES))
        top, _, body = answer.partition(b"\r\n\r\n")
        assert len(answer) < MOST_HTTP_BYTES
        status = top[:12]
        assert status == b"HTTP/1.1 200" or (status[:9] == b"HTTP/1.1 " and not keep_open)
        if status == b"HTTP/1.1 200" and body[:1] == b"d":
            good += b"failure reason" not in bencode2.bdecode(body)
    return good


@pytest.mark.timeout(1200)
def test_strangers_cannot_break_amplify_or_fill(full, figures):
    each = 500_000 if full else 4_000
    world = World(1)
    run_udp(world, each // 10)
    run_http(world, each // 10)
    before = resident()
    proved, worst = run_udp(world, each)
    good = run_http(world, each)
    grown = resident() - before
    assert proved > each / 10
    assert good > each / 20
    assert worst <= 1.0
    assert grown < 20_000_000
    assert world.service.swarms.peers <= LIMITS.max_peers
    assert world.service.swarms.torrents <= LIMITS.max_torrents
    figures |= {
        "fuzz_datagrams": each,
        "fuzz_requests": each,
        "fuzz_proved": proved,
        "fuzz_answered_requests": good,
        "fuzz_worst_amplification_unproved": round(worst, 3),
        "fuzz_resident_growth_mb": round(grown / 1e6, 2),
        "fuzz_escaped_exceptions": 0,
    }
