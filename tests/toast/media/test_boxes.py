import io
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toast.media.boxes import read_layout
from toast.media.errors import MediaError


def box(kind, content=b"", *, length=None):
    return struct.pack(">I4s", 8 + len(content) if length is None else length, kind) + content


def long_box(kind, content):
    return struct.pack(">I4sQ", 1, kind, 16 + len(content)) + content


def read(data):
    return read_layout(io.BytesIO(data), len(data), "film.mp4")


def test_everything_but_the_media_data_is_index():
    data = box(b"ftyp", b"isom") + box(b"free", bytes(50)) + box(b"mdat", bytes(99)) + box(b"moov")
    layout = read(data)

    assert layout.index == ((0, 12), (12, 20), (70, 78), (177, 185))
    assert not layout.fragmented


def test_lengths_of_64_bits_and_to_the_end_of_the_file():
    data = box(b"ftyp") + box(b"moov", bytes(9)) + long_box(b"mdat", bytes(20))
    assert read(data).index == ((0, 8), (8, 25), (25, 41))

    data = box(b"moov") + box(b"mdat", bytes(20), length=0)
    assert read(data).index == ((0, 8), (8, 16))


def test_fragments_are_noticed_at_the_first():
    data = box(b"ftyp") + box(b"moov") + box(b"moof", bytes(9)) + box(b"mdat", length=10**6)

    assert read(data).fragmented
    assert read(data).index == ((0, 8), (8, 16))


@pytest.mark.parametrize("data", [b"", b"abc", b"just some words of text", bytes(100)])
def test_what_is_no_file_of_boxes(data):
    if data:
        assert read(data) is None


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (box(b"ftyp") + box(b"mdat", bytes(9)), r"has no index \(moov box\)"),
        (box(b"ftyp") + box(b"moov", length=500), r"its moov box ends at byte 508, the file at 16"),
        (box(b"moov") + box(b"mdat", length=500), r"mdat box ends at byte 508.*492 B are missing"),
        (box(b"moov") + b"\0\0", r"its last box ends"),
        (box(b"moov") + box(b"mdat", length=5), r"the box at byte 8 has an impossible length"),
        (box(b"moov") + struct.pack(">I4sQ", 1, b"mdat", 3), r"impossible length"),
        (box(b"moov") + struct.pack(">I4sH", 1, b"mdat", 3), r"impossible length"),
        (box(b"moov") + box(b"\x1b[2J", length=900), r"its last box ends"),
    ],
)
def test_files_that_are_not_whole(data, said):
    with pytest.raises(MediaError, match=said) as caught:
        read(data)
    assert "\x1b" not in str(caught.value)


def test_the_walk_is_bounded():
    """A stranger's file of a million tiny boxes costs no more than 64 reads."""
    reads = []

    class Counting(io.BytesIO):
        def read(self, count=-1):
            reads.append(count)
            return super().read(count)

    data = box(b"moov") + box(b"free") * 100_000
    read_layout(Counting(data), len(data), "film.mp4")

    assert len(reads) == 64
    assert max(reads) == 16


@settings(derandomize=True)
@given(st.binary(max_size=200), st.booleans())
def test_no_bytes_break_the_reader(data, start_lawfully):
    data = (box(b"ftyp") if start_lawfully else b"x") + data
    try:
        layout = read(data)
    except MediaError:
        return
    if layout is not None:
        assert all(0 <= start < end <= len(data) for start, end in layout.index)
