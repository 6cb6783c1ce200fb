"""Frames: what goes in comes out, in whatever pieces; what is no frame is refused at once."""

import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vodserver.errors import ChannelError
from vodserver.workers.frames import (
    MAX_HEAD_BYTES,
    MAX_PAYLOAD_BYTES,
    Decoder,
    Frame,
    encode,
)

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
HEADS = st.dictionaries(st.text(), JSON, max_size=4)
FRAMES = st.builds(Frame, HEADS, st.binary(max_size=200))


@given(st.lists(FRAMES, max_size=5), st.data())
def test_frames_come_out_as_they_went_in_however_they_are_cut(frames, data):
    wire = b"".join(encode(frame.head, frame.payload) for frame in frames)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(wire)), max_size=8)))
    pieces = [wire[a:b] for a, b in zip([0, *cuts], [*cuts, len(wire)], strict=True)]

    decoder = Decoder()
    assert [frame for piece in pieces for frame in decoder.feed(piece)] == frames


@given(FRAMES, st.data())
def test_a_frame_is_not_out_before_its_last_byte(frame, data):
    wire = encode(frame.head, frame.payload)
    most = data.draw(st.integers(0, len(wire) - 1))

    decoder = Decoder()
    assert decoder.feed(wire[:most]) == []
    assert decoder.feed(wire[most:]) == [frame]


@given(st.binary(max_size=100))
def test_any_bytes_are_frames_or_refused(data):
    """Nothing but `ChannelError`, and never a wait for more than the bound."""
    decoder = Decoder()
    try:
        frames = decoder.feed(data)
    except ChannelError:
        return
    assert all(isinstance(frame.head, dict) for frame in frames)


@pytest.mark.parametrize(
    "lengths", [(MAX_HEAD_BYTES + 1, 0), (2, MAX_PAYLOAD_BYTES + 1), (2**32 - 1, 2**32 - 1)]
)
def test_what_is_too_large_is_refused_by_its_lengths_alone(lengths):
    with pytest.raises(ChannelError, match="too large"):
        Decoder().feed(struct.pack("!II", *lengths))


def test_what_is_too_large_is_not_sent():
    with pytest.raises(ChannelError, match="too large"):
        encode({}, bytes(MAX_PAYLOAD_BYTES + 1))
    with pytest.raises(ChannelError, match="too large"):
        encode({"text": "x" * MAX_HEAD_BYTES})

    assert len(encode({}, bytes(MAX_PAYLOAD_BYTES))) == 8 + 2 + MAX_PAYLOAD_BYTES


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"1", b'"x"', b"\xff", b"[" * 100_000])
def test_a_head_that_is_no_object_is_refused(text):
    with pytest.raises(ChannelError):
        Decoder().feed(struct.pack("!II", len(text), 0) + text)


def test_values_that_json_has_no_word_for_are_not_sent():
    with pytest.raises(ValueError, match="JSON"):
        encode({"rate": float("nan")})
    assert json.loads(encode({"rate": 1.5})[8:]) == {"rate": 1.5}
