import pytest
from hypothesis import given
from hypothesis import strategies as st

from netem.guest.frames import MOST_DATA_BYTES, Decoder, Frame, Kind, encode

FRAMES = st.builds(
    Frame, st.integers(0, 0xFFFF), st.sampled_from(Kind), st.binary(min_size=0, max_size=50)
)


@given(st.lists(FRAMES, max_size=10), st.integers(1, 20))
def test_however_the_bytes_are_cut_the_frames_come_out(frames, size):
    line = b"".join(encode(*frame) for frame in frames)
    decoder = Decoder()
    parts = [line[at : at + size] for at in range(0, len(line), size)]
    assert [frame for part in parts for frame in decoder.feed(part)] == frames


def test_much_data_goes_in_several_frames():
    data = bytes(range(256)) * 1000
    frames = list(Decoder().feed(encode(3, Kind.OUTPUT, data)))
    assert len(frames) == len(data) // MOST_DATA_BYTES + 1
    assert b"".join(frame.data for frame in frames) == data
    assert {frame.channel for frame in frames} == {3}


@given(st.binary(min_size=8, max_size=40))
def test_no_bytes_do_worse_than_being_refused(data):
    try:
        list(Decoder().feed(data))
    except ValueError:
        return


def test_a_frame_that_is_too_long_is_refused_before_it_is_there():
    with pytest.raises(ValueError, match="a frame of"):
        list(Decoder().feed(b"\0\1\5\0\xff\xff\xff\xff"))
