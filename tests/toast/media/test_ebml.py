import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toast.media.ebml import read_layout
from toast.media.errors import MediaError

EBML, SEGMENT, SEEK_HEAD = 0x1A45DFA3, 0x18538067, 0x114D9B74
INFO, TRACKS, CLUSTER, CUES, VOID, TAGS = (
    0x1549A966,
    0x1654AE6B,
    0x1F43B675,
    0x1C53BB6B,
    0xEC,
    0x1254C367,
)
HEAD = bytes.fromhex("1a45dfa380")


def element(kind, content=b"", *, size=None):
    length = len(content) if size is None else size
    return kind.to_bytes((kind.bit_length() + 7) // 8, "big") + (
        (1 << 56 | length).to_bytes(8, "big") + content
    )


def number(kind, value):
    return element(kind, value.to_bytes(4, "big"))


def cue(ticks, offset):
    return element(0xBB, number(0xB3, ticks) + element(0xB7, number(0xF1, offset)))


def film(*, cues=(), scale=None, tail=b"", clusters=3, void=40):
    """A Matroska skeleton: header, SeekHead, Info, Void, clusters of 100 bytes, Cues."""
    info = element(INFO, number(0x2AD7B1, scale) if scale else b"")
    media = element(CLUSTER, bytes(88)) * clusters
    rest = info + element(VOID, bytes(void)) + element(TRACKS, bytes(30))
    seek = element(SEEK_HEAD, element(0x4DBB, number(0x53AC, 0)))
    at = len(seek) + len(rest)
    seek = element(SEEK_HEAD, element(0x4DBB, number(0x53AC, at + len(media))))
    index = element(CUES, b"".join(cue(t, at + c * 100) for t, c in cues))
    body = seek + rest + media + index + tail
    return HEAD + element(SEGMENT, body), len(HEAD) + 12


def read(data):
    return read_layout(io.BytesIO(data), len(data), "film.mkv")


def test_cues_name_time_and_byte_of_clusters():
    data, _ = film(cues=[(0, 0), (2500, 2), (1000, 1)])
    layout = read(data)

    first = layout.first_cluster
    assert layout.cues == ((0.0, first), (1.0, first + 100), (2.5, first + 200))
    assert data[first : first + 4] == CLUSTER.to_bytes(4, "big")


def test_ticks_are_as_long_as_the_file_says():
    data, _ = film(cues=[(1000, 1)], scale=500_000)

    assert read(data).cues[0][0] == 0.5


def test_the_index_is_everything_but_clusters_and_padding():
    data, _ = film(cues=[(0, 0)], void=5000)
    layout = read(data)
    inside = sum(end - start for start, end in layout.index)

    assert inside < len(data) - 5000 - 300 + 50
    assert layout.index[-1][1] == len(data)


def test_a_cue_outside_the_media_data_is_left_out():
    data, _ = film(cues=[(0, 0), (9, 10**6)])

    assert len(read(data).cues) == 1


def test_a_stale_hint_is_not_believed():
    data, _ = film(cues=[(0, 0)])
    data = data.replace(CUES.to_bytes(4, "big"), CLUSTER.to_bytes(4, "big"))

    assert read(data).cues == ()


def test_hints_that_cannot_be_read_are_left_out():
    seek = element(SEEK_HEAD, element(0x4DBB, b"\x53\xac\xff") + element(0x4DBB, size=9999))
    endless = element(SEEK_HEAD, b"\x4d\xbb\xff")
    for head in (seek, endless):
        body = head + element(INFO) + element(CLUSTER, bytes(50))

        assert read(HEAD + element(SEGMENT, body)).cues == ()


def test_a_live_recording_has_no_sizes_and_no_index():
    unknown = (1 << 56) - 1
    body = element(INFO) + element(CLUSTER, bytes(50), size=unknown)
    layout = read(HEAD + element(SEGMENT, body, size=unknown))

    assert layout.cues == ()
    assert layout.first_cluster == len(HEAD) + 12 + 12


@pytest.mark.parametrize("data", [b"", b"text", bytes(50), b"\x1a\x45\xdf\xa3\xff"])
def test_what_is_no_file_of_elements(data):
    assert read(data) is None


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (HEAD, "nothing follows its header"),
        (film()[0][:-50], r"it should end at byte .* \(50 B are missing\)"),
        (HEAD + element(SEGMENT, element(INFO)), "no media data follows"),
        (HEAD + element(SEGMENT, element(VOID) * 300), "no media data among its first"),
        (HEAD + element(SEGMENT, element(INFO, size=(1 << 56) - 1)), "no media data follows"),
    ],
)
def test_files_that_are_not_whole(data, said):
    with pytest.raises(MediaError, match=said):
        read(data)


@settings(derandomize=True, deadline=None)
@given(st.binary(max_size=300))
def test_no_bytes_break_the_reader(noise):
    data, _ = film(cues=[(0, 0), (1, 1)])
    for spoiled in (HEAD + noise, data[:60] + noise + data[60 + len(noise) :], data + noise):
        try:
            layout = read(spoiled)
        except MediaError:
            continue
        if layout is not None:
            assert all(0 <= start <= end for start, end in layout.index)
            assert all(0 <= at < len(spoiled) for _, at in layout.cues)
