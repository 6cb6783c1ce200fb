import struct

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tracker import udp_codec
from tracker.connection_ids import SECRET_BYTES, ConnectionIds
from tracker.messages import SwarmCounts, pack_address
from tracker.passkeys import Passkeys
from tracker.service import Service
from tracker.settings import TrackerSettings
from tracker.swarm import family_of
from tracker.udp_answers import MOST_ANSWER_BYTES, UdpAnswers
from tracker.udp_codec import UdpAnnounce

FILM = b"f" * 20
NOW = 1000.0  # long after the start: intervals are what the settings say
V4, V6 = pack_address("198.51.100.1"), pack_address("2001:db8::1")
WISH = UdpAnnounce(FILM, b"p" * 20, 0, 100, 0, 2, 0, 0, -1, 6881)


class Client:
    """One address that talks to a tracker."""

    def __init__(self, answers, address, now=NOW):
        self.answers, self.address, self.now = answers, address, now
        answer = self.raw(udp_codec.encode_connect_request(5))
        self.connection_id = struct.unpack(">IIQ", answer)[2]

    def raw(self, datagram):
        # The buffer is longer than the datagram and full of what came before.
        buffer = bytearray(datagram + b"\xff" * 100)
        source = (self.address, family_of(self.address))
        return self.answers.answer(buffer, len(datagram), source, self.now)

    def announce(self, options=b"", **changes):
        wish = WISH._replace(**changes)
        request = udp_codec.encode_announce_request(self.connection_id, 5, wish, options)
        return self.raw(request)

    def told(self, options=b"", **changes):
        """Interval, leechers, seeders and the endpoints of an answer."""
        answer = self.announce(options, **changes)
        action, transaction, *numbers = udp_codec.ANNOUNCE_HEAD.unpack_from(answer)
        assert (action, transaction) == (1, 5), answer
        width = len(self.address) + 2
        packed = answer[udp_codec.ANNOUNCE_HEAD.size :]
        assert len(packed) % width == 0
        starts = range(0, len(packed), width)
        return *numbers, {bytes(packed[start : start + width]) for start in starts}


def make(**limits):
    service = Service(TrackerSettings(**limits), np.random.default_rng(1), 0.0)
    return UdpAnswers(service, ConnectionIds(bytes(SECRET_BYTES))), service


def host(number, ipv6=False):
    tail = number.to_bytes(2, "big")
    return bytes.fromhex("20010db8") + tail + bytes(10) if ipv6 else bytes([198, 51]) + tail


@pytest.mark.parametrize("address", [V4, V6], ids=["IPv4", "IPv6"])
def test_two_clients_meet(address):
    """BEP 15: 6 bytes for each peer over IPv4, 18 over IPv6."""
    answers, _ = make()
    assert Client(answers, address).told() == (30, 1, 0, set())
    other = Client(answers, host(9, ipv6=len(address) == 16))
    assert other.told(port=258, left=0, peer_id=b"q" * 20) == (30, 1, 1, {address + b"\x1a\xe1"})
    assert Client(answers, address).told(event=0)[3] == {other.address + b"\x01\x02"}


def test_each_family_hears_of_its_own():
    """BEP 15: the answer's form is that of the packets that carry it."""
    answers, _ = make()
    Client(answers, V4).announce()
    assert Client(answers, V6).told() == (30, 2, 0, set())


def test_events_and_counts():
    answers, service = make()
    client = Client(answers, V4)
    client.announce(event=2)
    client.announce(event=1, left=0)
    assert service.swarms.scrape([FILM], NOW) == {FILM: SwarmCounts(1, 0, 1)}
    assert client.told(event=3) == (30, 0, 0, set())
    assert service.swarms.peers == 0


def test_scrape_answers_in_the_order_of_the_request_and_zero_for_unknown():
    answers, _ = make()
    client = Client(answers, V4)
    client.announce(event=1, left=0)
    request = udp_codec.encode_scrape_request(client.connection_id, 5, [b"x" * 20, FILM])
    assert client.raw(request) == struct.pack(">8I", 2, 5, 0, 0, 0, 1, 1, 0)


@pytest.mark.parametrize(
    ("numwant", "given"), [(-1, 50), (-(2**31), 50), (0, 0), (7, 7), (2**31 - 1, 200)]
)
def test_numwant(numwant, given):
    answers, _ = make()
    for number in range(300):
        Client(answers, host(number)).announce(numwant=0)
    assert len(Client(answers, V4).told(numwant=numwant)[3]) == given


@pytest.mark.parametrize("ipv6", [False, True])
def test_the_largest_answer_fits_one_packet(ipv6):
    answers, _ = make(max_numwant=1000)
    for number in range(300):
        Client(answers, host(number, ipv6)).announce(numwant=0)
    assert len(Client(answers, V6 if ipv6 else V4).announce(numwant=1000)) in range(
        MOST_ANSWER_BYTES - 18, MOST_ANSWER_BYTES + 1
    )


def test_the_playhead_comes_as_url_data():
    """BEP 41: path and query of the announce URL follow the request."""
    answers, _ = make()
    for number in range(100):
        options = udp_codec.encode_options(f"/announce?playhead={number}".encode())
        Client(answers, host(number)).announce(options, numwant=0)
    asker = udp_codec.encode_options(b"/announce?playhead=40.5")
    found = Client(answers, V4).told(asker, numwant=4, peer_id=b"q" * 20)[3]
    assert len(found) == 4
    assert {host(41) + b"\x1a\xe1", host(42) + b"\x1a\xe1"} <= found


@pytest.mark.parametrize(
    ("options", "reason"),
    [(b"\x02\x20short", b"cut short"), (b"\x02\x0d?playhead=now", b"playhead must be")],
)
def test_bad_options_are_refused(options, reason):
    answers, service = make()
    answer = Client(answers, V4).announce(options)
    assert answer[:8] == bytes.fromhex("0000000300000005")
    assert reason in answer
    assert (service.counters.failures, service.swarms.peers) == (1, 0)


def test_unknown_actions_are_refused():
    answers, _ = make()
    client = Client(answers, V4)
    for action in (3, 9):
        answer = client.raw(udp_codec.HEAD.pack(client.connection_id, action, 5))
        assert answer.startswith(bytes.fromhex("0000000300000005"))


def test_a_busy_address_is_refused_and_others_are_not():
    answers, service = make(max_requests_per_address=3)
    busy = Client(answers, V4)
    for _ in range(3):
        busy.told()
    assert b"too many requests" in busy.announce()
    assert service.counters.rate_refusals == 1
    Client(answers, host(1)).told()
    busy.now += 10.0
    busy.told()


def test_what_comes_is_counted():
    answers, service = make()
    client = Client(answers, V4)
    client.announce()
    client.raw(b"short")
    client.raw(udp_codec.HEAD.pack(1, 0, 5))  # a connect without the protocol's number
    client.raw(udp_codec.HEAD.pack(1, 1, 5))
    counters = service.counters
    assert (counters.udp_connects, counters.udp_announces, counters.announces) == (1, 1, 1)
    assert (counters.udp_ignored, counters.udp_unproved, counters.failures) == (2, 1, 0)


VALID = udp_codec.encode_announce_request(7, 5, WISH)


@settings(deadline=None)
@given(datagram=st.binary(max_size=200) | st.integers(0, 97).map(lambda size: VALID[:size]))
@example(datagram=VALID)
@example(datagram=udp_codec.encode_connect_request(5))
@example(datagram=udp_codec.encode_scrape_request(7, 5, [FILM]))
def test_an_address_that_has_not_proved_itself_is_never_sent_more_than_came_from_it(datagram):
    answers, service = make()
    client = Client(answers, V4)
    for number in range(60):
        Client(answers, host(number)).announce()
    assert len(client.raw(datagram) or b"") <= len(datagram)
    assert service.swarms.peers == 60


def test_a_passkey_comes_as_url_data():
    answers, service = make()
    service.passkeys = Passkeys(b"x" * 16)
    client = Client(answers, V4)
    assert b"wants a passkey" in client.announce()
    good = f"/announce?passkey={service.passkeys.give('alice')}"
    assert client.told(udp_codec.encode_options(good.encode()))[:3] == (30, 1, 0)
    scrape = udp_codec.encode_scrape_request(client.connection_id, 5, [FILM])
    assert b"wants a passkey" in client.raw(scrape)
