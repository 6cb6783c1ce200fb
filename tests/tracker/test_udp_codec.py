import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracker import udp_codec
from tracker.errors import RequestError
from tracker.messages import Event, SwarmCounts
from tracker.udp_codec import ANNOUNCE_BYTES, EVENTS, HEAD_BYTES, UdpAnnounce

ANNOUNCES = st.builds(
    UdpAnnounce,
    info_hash=st.binary(min_size=20, max_size=20),
    peer_id=st.binary(min_size=20, max_size=20),
    downloaded=st.integers(0, 2**64 - 1),
    left=st.integers(0, 2**64 - 1),
    uploaded=st.integers(0, 2**64 - 1),
    event=st.integers(0, 3),
    ip=st.integers(0, 2**32 - 1),
    key=st.integers(0, 2**32 - 1),
    numwant=st.integers(-(2**31), 2**31 - 1),
    port=st.integers(0, 65535),
)
PLAIN = UdpAnnounce(b"h" * 20, b"p" * 20, 1, 2, 3, 0, 0, 0, -1, 6881)


def test_requests_are_laid_out_as_bep_15_lists_them():
    """BEP 15, tables of the connect, announce and scrape requests."""
    connect = udp_codec.encode_connect_request(0x01020304)
    assert connect == bytes.fromhex("00000417271019800000000001020304")
    announce = udp_codec.encode_announce_request(7, 9, PLAIN)
    assert (len(announce), ANNOUNCE_BYTES) == (98, 98)
    assert announce[:16] == bytes.fromhex("00000000000000070000000100000009")
    assert announce[16:56] == b"h" * 20 + b"p" * 20
    assert announce[56:80] == b"".join(number.to_bytes(8, "big") for number in (1, 2, 3))
    assert announce[80:92] == bytes(12)
    assert announce[92:] == b"\xff\xff\xff\xff\x1a\xe1"
    scrape = udp_codec.encode_scrape_request(7, 9, [b"a" * 20, b"b" * 20])
    assert scrape == bytes.fromhex("00000000000000070000000200000009") + b"a" * 20 + b"b" * 20


def test_answers_are_laid_out_as_bep_15_lists_them():
    assert udp_codec.encode_connect(9, 7) == bytes.fromhex("00000000000000090000000000000007")
    assert udp_codec.encode_error(9, "no") == bytes.fromhex("0000000300000009") + b"no"
    counts = [SwarmCounts(complete=1, incomplete=2, downloaded=3)]
    expected = "0000000200000009" + "00000001" + "00000003" + "00000002"
    assert udp_codec.encode_scrape(9, counts) == bytes.fromhex(expected)


def test_events_have_the_numbers_of_bep_15():
    assert EVENTS == (Event.NONE, Event.COMPLETED, Event.STARTED, Event.STOPPED)


@given(announce=ANNOUNCES, url_data=st.binary(max_size=700))
def test_an_announce_is_read_back(announce, url_data):
    options = udp_codec.encode_options(url_data)
    sent = udp_codec.encode_announce_request(1, 2, announce, options)
    assert udp_codec.parse_announce(sent, len(sent)) == announce
    assert udp_codec.parse_options(sent, len(sent)) == url_data


@given(announce=ANNOUNCES, data=st.data())
def test_every_truncation_of_an_announce_is_refused(announce, data):
    sent = udp_codec.encode_announce_request(1, 2, announce)
    size = data.draw(st.integers(0, len(sent) - 1))
    with pytest.raises(RequestError, match="98 bytes"):
        udp_codec.parse_announce(sent, size)


@pytest.mark.parametrize(
    ("options", "url_data"),
    [
        pytest.param(b"", b"", id="BEP41-none"),
        pytest.param(b"\x00", b"", id="BEP41-end"),
        pytest.param(b"\x00\x02\xff", b"", id="BEP41-nothing-counts-behind-the-end"),
        pytest.param(b"\x01\x01", b"", id="BEP41-nop"),
        pytest.param(b"\x02\x04/a?b\x00", b"/a?b", id="BEP41-url-data"),
        pytest.param(b"\x02\x02/a\x01\x02\x02?b", b"/a?b", id="BEP41-parts-are-joined"),
        pytest.param(b"\x07\x03xyz\x02\x01/", b"/", id="BEP41-unknown-options-are-skipped"),
        pytest.param(b"\x02\x00", b"", id="BEP41-empty-url-data"),
    ],
)
def test_options(options, url_data):
    sent = udp_codec.encode_announce_request(1, 2, PLAIN, options)
    assert udp_codec.parse_options(sent, len(sent)) == url_data


@given(url_data=st.binary(min_size=1, max_size=254), data=st.data())
def test_every_truncation_inside_an_option_is_refused(url_data, data):
    sent = udp_codec.encode_announce_request(1, 2, PLAIN, bytes((2, len(url_data))) + url_data)
    size = data.draw(st.integers(ANNOUNCE_BYTES + 1, len(sent) - 1))
    with pytest.raises(RequestError, match="cut short"):
        udp_codec.parse_options(sent, size)


def test_what_stands_in_the_buffer_behind_the_datagram_does_not_count():
    sent = udp_codec.encode_announce_request(1, 2, PLAIN) + b"\x02\x04old!"
    assert udp_codec.parse_options(bytearray(sent), ANNOUNCE_BYTES) == b""


def test_an_unknown_event_is_refused():
    sent = udp_codec.encode_announce_request(1, 2, PLAIN._replace(event=4))
    with pytest.raises(RequestError, match="event 4"):
        udp_codec.parse_announce(sent, len(sent))


@given(hashes=st.lists(st.binary(min_size=20, max_size=20), min_size=1, max_size=5))
def test_a_scrape_is_read_back(hashes):
    sent = udp_codec.encode_scrape_request(1, 2, hashes)
    assert udp_codec.parse_scrape(sent, len(sent), 5) == tuple(hashes)


@pytest.mark.parametrize("size", [HEAD_BYTES, HEAD_BYTES + 1, HEAD_BYTES + 39])
def test_every_truncation_of_a_scrape_is_refused(size):
    sent = udp_codec.encode_scrape_request(1, 2, [b"a" * 20, b"b" * 20])
    with pytest.raises(RequestError, match="20 bytes"):
        udp_codec.parse_scrape(sent, size, 5)


def test_a_scrape_of_too_many_is_refused():
    sent = udp_codec.encode_scrape_request(1, 2, [b"a" * 20] * 6)
    with pytest.raises(RequestError, match="at most 5"):
        udp_codec.parse_scrape(sent, len(sent), 5)


@given(datagram=st.binary(max_size=300))
def test_no_datagram_does_worse_than_being_refused(datagram):
    size = len(datagram)
    for parse in (
        udp_codec.parse_announce,
        udp_codec.parse_options,
        lambda data, size: udp_codec.parse_scrape(data, size, 5),
    ):
        with contextlib.suppress(RequestError):
            parse(datagram, size)
