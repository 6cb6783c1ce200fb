import contextlib
import ipaddress
from urllib.parse import quote_from_bytes

import bencode2
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tracker.codec import (
    MAX_PLAYHEAD_SECONDS,
    encode_announce,
    encode_failure,
    encode_scrape,
    parse_announce,
    parse_playhead,
    parse_scrape,
)
from tracker.errors import RequestError
from tracker.messages import Announce, AnnounceAnswer, Event, Peer, SwarmCounts, pack_address

HASH = bytes(range(0xF0, 0x100)) + b"&=+%"
PEER = b"-TO0100-0123456789ab"
REQUIRED = f"info_hash={quote_from_bytes(HASH, safe='')}&peer_id={PEER.decode()}&port=6881"


def announce(extra=""):
    return parse_announce(f"{REQUIRED}{extra}".encode())


def test_least_announce_has_the_defaults_of_the_beps():
    """BEP 3 asks for these three; BEP 23 recommends compact answers unless told otherwise."""
    assert announce() == Announce(info_hash=HASH, peer_id=PEER, port=6881)
    assert announce().compact
    assert announce().event is Event.NONE


@pytest.mark.parametrize(
    ("extra", "field", "value"),
    [
        pytest.param("&left=0", "left", 0, id="BEP3-left"),
        pytest.param("&left=9223372036854775807", "left", 2**63 - 1, id="BEP3-left-unknown-size"),
        pytest.param("&left=", "left", None, id="BEP3-left-empty"),
        pytest.param("&event=started", "event", Event.STARTED, id="BEP3-event-started"),
        pytest.param("&event=stopped", "event", Event.STOPPED, id="BEP3-event-stopped"),
        pytest.param("&event=completed", "event", Event.COMPLETED, id="BEP3-event-completed"),
        pytest.param("&event=", "event", Event.NONE, id="BEP3-event-empty"),
        pytest.param("&event=paused", "event", Event.NONE, id="BEP21-event-paused"),
        pytest.param("&ip=192.0.2.9", "ip", bytes([192, 0, 2, 9]), id="BEP3-ip"),
        pytest.param("&ip=2001%3Adb8%3A%3A1", "ip", pack_address("2001:db8::1"), id="BEP3-ip-v6"),
        pytest.param("&ip=host.example", "ip", None, id="BEP3-ip-name-not-resolved"),
        pytest.param("&numwant=7", "numwant", 7, id="numwant"),
        pytest.param("&numwant=-1", "numwant", None, id="numwant-any"),
        pytest.param("&compact=0", "compact", False, id="BEP23-compact-0"),
        pytest.param("&compact=1", "compact", True, id="BEP23-compact-1"),
        pytest.param("&no_peer_id=1", "no_peer_id", True, id="BEP23-no_peer_id"),
        pytest.param("&playhead=12.345", "playhead", 12.345, id="playhead"),
        pytest.param("&playhead=0", "playhead", 0.0, id="playhead-start"),
        pytest.param("&ipv4=192.0.2.1&ipv6=%3A%3A1", "ip", None, id="BEP7-claims-not-believed"),
        pytest.param("&key=aa&key=bb&supportcrypto=1", "port", 6881, id="unknown-ignored"),
    ],
)
def test_optional_parameters(extra, field, value):
    assert getattr(announce(extra), field) == value


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("", "info_hash is missing"),
        ("&&&", "info_hash is missing"),
        (f"info_hash=abc&peer_id={PEER.decode()}&port=1", "info_hash must be 20 bytes, not 3"),
        (f"info_hash={'a' * 21}&peer_id={PEER.decode()}&port=1", "must be 20 bytes, not 21"),
        (f"info_hash={'%zz' + 'a' * 17}&peer_id=x&port=1", "info_hash has a broken percent escape"),
        (f"info_hash={'a' * 18}%f&peer_id=x&port=1", "info_hash has a broken percent escape"),
        (f"info_hash={'a' * 20}&port=1", "peer_id is missing"),
        (f"info_hash={'a' * 20}&peer_id=short&port=1", "peer_id must be 20 bytes, not 5"),
        (f"info_hash={'a' * 20}&peer_id={'b' * 20}", "port is missing"),
        (f"{REQUIRED}&port=6882", "port is given twice"),
        (REQUIRED.replace("6881", "65536"), "port must be a whole number from 0 to 65535"),
        (REQUIRED.replace("6881", "http"), "port must be"),
        (REQUIRED.replace("6881", "-1"), "port must be"),
        (REQUIRED.replace("6881", "%D9%A1"), "port must be"),
        (f"{REQUIRED}&left=-1", "left must be"),
        (f"{REQUIRED}&left={'9' * 400}", "left must be"),
        (f"{REQUIRED}&numwant=many", "numwant must be"),
        (f"{REQUIRED}&playhead=-1", "playhead must be film seconds"),
        (f"{REQUIRED}&playhead=nan", "playhead must be film seconds"),
        (f"{REQUIRED}&playhead=1e3", "playhead must be film seconds"),
        (f"{REQUIRED}&playhead={MAX_PLAYHEAD_SECONDS + 1}", "playhead must be film seconds"),
    ],
)
def test_unusable_announces_are_refused_with_a_reason(query, reason):
    with pytest.raises(RequestError, match=reason):
        parse_announce(query.encode())


def test_a_plus_sign_is_a_plus_sign():
    """RFC 3986 has no other meaning for it; some clients leave it unescaped in an info_hash."""
    query = f"info_hash={'+' * 20}&peer_id={'b' * 20}&port=1"
    assert parse_announce(query.encode()).info_hash == b"+" * 20


WISHES = st.builds(
    Announce,
    info_hash=st.binary(min_size=20, max_size=20),
    peer_id=st.binary(min_size=20, max_size=20),
    port=st.integers(0, 65535),
    left=st.integers(0, 2**63 - 1),
    event=st.sampled_from(Event),
    numwant=st.integers(0, 10**6),
    compact=st.booleans(),
    no_peer_id=st.booleans(),
    ip=st.binary(min_size=4, max_size=4).filter(lambda ip: 0 < ip[0] < 224),
    playhead=st.integers(0, 10**9).map(lambda millis: millis / 1000),
)


@settings(deadline=None)
@given(wish=WISHES)
def test_whatever_a_client_can_mean_is_read_back(wish):
    query = (
        f"info_hash={quote_from_bytes(wish.info_hash)}"
        f"&peer_id={quote_from_bytes(wish.peer_id, safe='')}&port={wish.port}&left={wish.left}"
        f"&event={wish.event.value.decode()}&numwant={wish.numwant}&compact={int(wish.compact)}"
        f"&no_peer_id={int(wish.no_peer_id)}&ip={ipaddress.ip_address(wish.ip)}"
        f"&playhead={wish.playhead:.3f}"
    )
    assert parse_announce(query.encode()) == wish


NAMES = st.sampled_from(["info_hash", "peer_id", "port", "left", "numwant", "ip", "playhead", "x"])
JUNK = st.lists(st.tuples(NAMES, st.binary(max_size=30))).map(
    lambda pairs: b"&".join(name.encode() + b"=" + value for name, value in pairs)
)


@settings(deadline=None)
@given(query=st.binary(max_size=300) | JUNK)
@example(query=REQUIRED.encode() + b"&ip=%ff%fe")
@example(query=REQUIRED.encode() + b"&ip=1.2.3.4%2531")
def test_no_query_does_worse_than_being_refused(query):
    """Any other exception would fail this test."""
    for parse in (parse_announce, lambda query: parse_scrape(query, 5)):
        with contextlib.suppress(RequestError):
            parse(query)


def test_scrape_names_one_or_several_torrents():
    """BEP 48: info_hash may be repeated."""
    other = b"x" * 20
    query = f"info_hash={quote_from_bytes(HASH, safe='')}&info_hash={other.decode()}&passkey=1"
    assert parse_scrape(query.encode(), 2) == (HASH, other)
    assert parse_scrape(f"{query}&info_hash={other.decode()}".encode(), 2) == (HASH, other)


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("", "info_hash is missing"),
        ("info_hash=short", "must be 20 bytes"),
        (f"info_hash={'%' * 20}", "broken percent escape"),
        (f"info_hash={'a' * 20}&info_hash={'b' * 20}", "at most 1 info_hash"),
    ],
)
def test_unusable_scrapes_are_refused_with_a_reason(query, reason):
    with pytest.raises(RequestError, match=reason):
        parse_scrape(query.encode(), 1)


V4 = Peer(peer_id=b"-TV" + b"s" * 17, address=bytes([192, 0, 2, 1]), port=6881, complete=True)
V6 = Peer(
    peer_id=b"-TO" + b"v" * 17,
    address=pack_address("2001:db8::2"),
    port=258,
    complete=False,
    playhead=61.2346,
)
ANSWER = AnnounceAnswer(
    SwarmCounts(1, 2, 3),
    V4.address + b"\x1a\xe1",
    V6.address + b"\x01\x02",
    (V4, V6),
)
INTERVALS = {"interval_seconds": 30, "min_interval_seconds": 5}


def answer_to(extra, answer=ANSWER):
    return bencode2.bdecode(encode_announce(answer, announce(extra), **INTERVALS))


def test_answer_states_intervals_and_counts():
    """BEP 3 `interval`, and the widely used `min interval`, `complete`, `incomplete`."""
    body = answer_to("")
    assert body[b"interval"] == 30
    assert body[b"min interval"] == 5
    assert (body[b"complete"], body[b"incomplete"], body[b"downloaded"]) == (1, 2, 3)


def test_compact_answer_packs_both_families():
    """BEP 23: 4 + 2 bytes in `peers`; BEP 7: 16 + 2 bytes in `peers6`; network byte order."""
    body = answer_to("&compact=1")
    assert body[b"peers"] == bytes([192, 0, 2, 1, 0x1A, 0xE1])
    assert body[b"peers6"] == bytes.fromhex("20010db8000000000000000000000002") + b"\x01\x02"


def test_compact_answer_without_peers_has_an_empty_list_and_no_peers6():
    body = answer_to("", AnnounceAnswer(SwarmCounts()))
    assert body[b"peers"] == b""
    assert b"peers6" not in body


def test_compact_answer_never_shows_the_extension():
    body = answer_to("&compact=1&playhead=5")
    assert set(body) == {
        *(b"complete", b"downloaded", b"incomplete", b"interval", b"min interval"),
        *(b"peers", b"peers6"),
    }


def test_dictionary_answer_lists_peers_with_what_is_known_of_them():
    """BEP 3 dictionary model; BEP 7: an IPv6 peer's `ip` is its text form."""
    assert answer_to("&compact=0")[b"peers"] == [
        {b"peer id": V4.peer_id, b"ip": b"192.0.2.1", b"port": 6881, b"complete": 1},
        {b"peer id": V6.peer_id, b"ip": b"2001:db8::2", b"port": 258, b"playhead": 61235},
    ]


def test_dictionary_answer_leaves_ids_out_on_request():
    """BEP 23, `no_peer_id`."""
    peers = answer_to("&compact=0&no_peer_id=1")[b"peers"]
    assert [b"peer id" in peer for peer in peers] == [False, False]


def test_bencoding_is_canonical():
    """BEP 3: keys are sorted; what is decoded and encoded again must be the same bytes."""
    for body in (
        encode_announce(ANSWER, announce("&compact=0"), **INTERVALS),
        encode_announce(ANSWER, announce(), **INTERVALS),
        encode_scrape({b"z" * 20: SwarmCounts(), b"a" * 20: SwarmCounts(1)}),
    ):
        assert bencode2.bencode(bencode2.bdecode(body)) == body


def test_scrape_answer_is_by_binary_hash():
    """BEP 48 `files`."""
    assert bencode2.bdecode(encode_scrape({HASH: SwarmCounts(4, 5, 6)})) == {
        b"files": {HASH: {b"complete": 4, b"incomplete": 5, b"downloaded": 6}}
    }


def test_failure_stands_alone():
    """BEP 3: with `failure reason` no other keys are required, and clients look at nothing else."""
    assert encode_failure("no") == b"d14:failure reason2:noe"


def test_a_failure_may_say_when_to_come_back():
    """BEP 31 `retry in`: minutes, or never."""
    assert encode_failure("no", 5) == b"d14:failure reason2:no8:retry ini5ee"
    assert encode_failure("no", "never") == b"d14:failure reason2:no8:retry in5:nevere"


def test_the_playhead_of_url_data_is_read_alone():
    assert parse_playhead(b"playhead=12.5&key=x") == 12.5
    assert parse_playhead(b"key=x") is None
    for wrong in (b"playhead=soon", b"playhead=1&playhead=2"):
        with pytest.raises(RequestError, match="playhead"):
            parse_playhead(wrong)
