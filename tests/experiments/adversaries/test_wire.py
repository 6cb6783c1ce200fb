"""The wire codec of BEP 3: any cut of the stream gives the same messages; nonsense is refused."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.adversaries.errors import WireError
from experiments.adversaries.wire import (
    Handshake,
    Kind,
    Message,
    MessageBuffer,
    Request,
    bitfield,
    pack,
    piece_head,
)

twenty = st.binary(min_size=20, max_size=20)


@given(twenty, twenty)
def test_a_handshake_survives(info_hash, peer_id):
    hello = Handshake(info_hash, peer_id)
    assert len(hello.pack()) == 68
    assert Handshake.parse(hello.pack()) == hello


@pytest.mark.parametrize("data", [b"", b"GET / HTTP/1.1\r\n" + bytes(52), bytes(68)])
def test_what_is_no_handshake(data):
    with pytest.raises(WireError):
        Handshake.parse(data)


messages = st.lists(st.builds(Message, st.integers(0, 20), st.binary(max_size=40)), max_size=10)


@given(messages, st.lists(st.integers(1, 30), max_size=30))
def test_messages_come_whole_however_the_stream_is_cut(sent, cuts):
    stream = b"".join(pack(m.kind, m.payload) + bytes(4) for m in sent)  # a keep-alive after each
    buffer, received, at = MessageBuffer(), [], 0
    for cut in (*cuts, len(stream)):
        received += buffer.feed(stream[at : at + cut])
        at += cut
    assert received == sent


def test_a_message_longer_than_any_is_refused_before_it_has_come():
    with pytest.raises(WireError):
        list(MessageBuffer().feed(struct.pack(">I", 1 << 30)))


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1), st.integers(1, 128 * 1024))
def test_a_request_survives(piece, start, size):
    request = Request(piece, start, size)
    assert Request.parse(request.pack()) == request


@pytest.mark.parametrize(
    "payload", [b"", bytes(11), bytes(12), Request(0, 0, 128 * 1024 + 1).pack()]
)
def test_what_is_no_request(payload):
    with pytest.raises(WireError):
        Request.parse(payload)


def test_a_block_is_a_piece_message():
    request = Request(3, 16384, 5)
    (message,) = MessageBuffer().feed(piece_head(request) + b"block")
    assert message == Message(Kind.PIECE, struct.pack(">II", 3, 16384) + b"block")


def test_the_spare_bits_of_a_bitfield_are_zero():
    assert bitfield(range(10), 10) == b"\xff\xc0"
    assert bitfield(range(0), 3) == b"\x00"
