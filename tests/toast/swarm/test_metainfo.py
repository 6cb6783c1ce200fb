"""A .torrent comes from a stranger: what is read out of it, and what is refused in one line."""

import hashlib

import libtorrent as lt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.toast.swarm.world import PIECE, make_torrent, random_film, sha1_pieces
from toast.common.errors import UsageError
from toast.common.timemap import TimeMap
from toast.swarm import MetainfoError, parse_metainfo
from toast.swarm.metainfo import MAX_METAINFO_BYTES

FILM = random_film(3 * PIECE + 1234)


def info(**changes):
    """An info dictionary by hand, as a stranger writes one; `None` leaves a key out."""
    base = {
        "name": b"film.mp4",
        "piece length": PIECE,
        "length": len(FILM),
        "pieces": b"".join(sha1_pieces(FILM, PIECE)),
    }
    base |= {key.replace("_", " "): value for key, value in changes.items()}
    return {key.encode(): value for key, value in base.items() if value is not None}


def torrent(top=None, **changes):
    return lt.bencode({b"info": info(**changes), **(top or {})})


def test_everything_that_a_torrent_says_is_there():
    timemap = TimeMap.constant(len(FILM), 5.0)
    data = make_torrent(
        FILM,
        timemap=timemap,
        origins=("http://vod.example/titles/film/content", "https://b.example/f"),
        trackers=("http://tracker.example/announce", "udp://tracker.example:6969"),
    )

    metainfo = parse_metainfo(data)

    assert metainfo.name == "film.mp4"
    assert (metainfo.geometry.film_bytes, metainfo.geometry.piece_bytes) == (len(FILM), PIECE)
    assert metainfo.info_hash == hashlib.sha1(lt.bencode(lt.bdecode(data)[b"info"])).digest()
    assert list(metainfo.piece_hashes) == sha1_pieces(FILM, PIECE)
    assert metainfo.origins == ("http://vod.example/titles/film/content", "https://b.example/f")
    assert metainfo.trackers == ("http://tracker.example/announce", "udp://tracker.example:6969")
    assert metainfo.timemap.to_bencodable() == timemap.to_bencodable()


def test_a_stock_torrent_has_no_time_map_no_origin_no_tracker():
    metainfo = parse_metainfo(make_torrent(FILM))
    assert (metainfo.timemap, metainfo.origins, metainfo.trackers) == (None, (), ())


def test_the_keys_of_ours_do_not_change_the_info_hash():
    ours = make_torrent(FILM, timemap=TimeMap.constant(len(FILM), 5.0), origins=("http://a/f",))
    assert parse_metainfo(ours).info_hash == parse_metainfo(make_torrent(FILM)).info_hash


def v2_keys():
    """What a v2 info dictionary of a film of one piece holds (BEP 52)."""
    leaf = {b"": {b"length": PIECE, b"pieces root": merkle_root(FILM[:PIECE])}}
    return {b"name": b"film.mp4", b"piece length": PIECE, b"meta version": 2} | {
        b"file tree": {b"film.mp4": leaf}
    }


def test_a_hybrid_torrent_is_read_by_its_v1_side():
    digest = hashlib.sha1(FILM[:PIECE]).digest()
    both = v2_keys() | {b"length": PIECE, b"pieces": digest}

    metainfo = parse_metainfo(lt.bencode({b"info": both, b"piece layers": {}}))

    assert metainfo.info_hash == hashlib.sha1(lt.bencode(both)).digest()
    assert metainfo.piece_hashes == (digest,)


def merkle_root(data):
    """BEP 52: SHA-256 over 16 KiB blocks, then pairwise; for a power of two of whole blocks."""
    layer = [
        hashlib.sha256(data[start : start + 16384]).digest() for start in range(0, len(data), 16384)
    ]
    while len(layer) > 1:
        layer = [hashlib.sha256(a + b).digest() for a, b in zip(*[iter(layer)] * 2, strict=True)]
    return layer[0]


def test_a_v2_only_torrent_is_refused_by_name():
    with pytest.raises(MetainfoError, match="v2 only"):
        parse_metainfo(lt.bencode({b"info": v2_keys(), b"piece layers": {}}))


def test_several_files_of_which_none_is_a_film_are_refused():
    files = [{b"length": 5, b"path": [b"a"]}, {b"length": 5, b"path": [b"b"]}]
    with pytest.raises(MetainfoError, match="holds no film"):
        parse_metainfo(torrent(length=None, files=files, pieces=b"x" * 20))


def test_one_file_in_a_folder_is_one_film_without_the_folder():
    files = [{b"length": 5, b"path": [b"folder", b"a.mp4"]}]
    metainfo = parse_metainfo(torrent(length=None, files=files, pieces=b"x" * 20))
    assert metainfo.name == "a.mp4"


@pytest.mark.parametrize(
    "garbage",
    [
        b"",
        b"0:",
        b"de",
        b"le",
        b"i5e",
        b"hello, this is a text file",
        b"\x00" * 1000,
        b"l" * 100_000,
        b"d4:info" + b"l" * 5000,
        b"d4:infodee",
        b"d4:infoi5ee",
        b"d4:info99999999999999999999:e",
        b"<html>not found</html>",
    ],
)
def test_what_is_no_torrent_is_one_line(garbage):
    with pytest.raises(MetainfoError) as caught:
        parse_metainfo(garbage)
    assert "not a .torrent" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.999])
def test_a_truncated_torrent_is_refused(share):
    data = make_torrent(FILM)
    with pytest.raises(MetainfoError):
        parse_metainfo(data[: int(len(data) * share)])


def test_more_than_any_film_needs_is_not_even_parsed():
    with pytest.raises(MetainfoError, match="a few hundred kB"):
        parse_metainfo(b"d" + b"x" * MAX_METAINFO_BYTES)


@pytest.mark.parametrize(
    "changes",
    [
        {"piece_length": 0},
        {"piece_length": -PIECE},
        {"piece_length": 1},
        {"piece_length": 1 << 30, "pieces": b"x" * 20},
        {"piece_length": 1 << 31, "pieces": b"x" * 20},
        {"piece_length": 2**63 - 1, "pieces": b"x" * 20},
        {"piece_length": b"64k"},
        {"piece_length": 2 * PIECE},
        {"length": 0, "pieces": b""},
        {"length": -1},
        {"length": 2**62},
        {"length": b"long"},
        {"length": None},
        {"pieces": b"x" * 19},
        {"pieces": b""},
        {"pieces": 5},
        {"pieces": None},
        {"name": None},
        {"name": 5},
    ],
)
def test_absurd_cuts_are_refused(changes):
    with pytest.raises(MetainfoError):
        parse_metainfo(torrent(**changes))


def test_a_piece_length_that_blocks_do_not_fill_is_refused():
    """Legal in BEP 3; but then blocks of 16 KiB would not line up, and nobody makes such films."""
    pieces = sha1_pieces(FILM, 20_000)
    with pytest.raises(MetainfoError, match="multiple of 16 KiB"):
        parse_metainfo(torrent(piece_length=20_000, pieces=b"".join(pieces)))


@pytest.mark.parametrize(
    "name",
    [
        b"../../etc/passwd",
        b"/etc/passwd",
        b"..\\..\\boot.ini",
        b"a/../../b",
        b"a\x00b",
        b"\xff\xfe.mp4",
        b"\x1b[31mred\n",
        b"x" * 10_000,
        b".",
        b"..",
        b"/",
        b"",
        b"....//....//x",
        "\u202egp4.exe".encode(),
    ],
)
def test_a_hostile_name_stays_in_the_folder(tmp_path, name):
    """Either refused, or a plain name: no separator, no control character, no way out."""
    try:
        found = parse_metainfo(torrent(name=name)).name
    except MetainfoError:
        return
    assert found
    assert "/" not in found
    assert found.isprintable()
    assert (tmp_path / found).resolve().parent == tmp_path.resolve()
    (tmp_path / found).write_bytes(b"")  # the file system takes it, too


@pytest.mark.parametrize(
    "case",
    [
        (b"http://a/f", ("http://a/f",)),
        ([b"http://a/f", b"https://b/f"], ("http://a/f", "https://b/f")),
        ([b"ftp://a/f", b"file:///etc/passwd", b"http://a/f"], ("http://a/f",)),
        ([b"http://[bad/", b"http:///no-host", b"", b"\xff", b"HTTP://A/f"], ("HTTP://A/f",)),
        ([5, [b"http://nested/"], {b"a": b"b"}], ()),
        (5, ()),
        (b"", ()),
        ({b"http://a/f": 1}, ()),
    ],
)
def test_url_list_is_a_string_or_a_list_and_only_http_counts(case):
    value, origins = case
    assert parse_metainfo(torrent({b"url-list": value})).origins == origins


@pytest.mark.parametrize(
    "announce", [b"http://[bad/announce", b"\xff\xfe", b"", b"no url", b"file:///etc/passwd"]
)
def test_a_broken_announce_url_does_not_keep_the_film_away(announce):
    metainfo = parse_metainfo(torrent({b"announce": announce}))
    assert metainfo.trackers == ()


def hostile_maps():
    good = TimeMap.constant(len(FILM), 5.0).to_bencodable()
    return [
        5,
        b"map",
        [],
        {},
        {b"version": 1},
        good | {b"version": 2},
        good | {b"film bytes": len(FILM) - 1},
        good | {b"cell": 0},
        good | {b"cell": 3},
        good | {b"cell": 16384, b"film bytes": 1 << 45},
        good | {b"due": b"not compressed"},
        good | {b"due": good[b"due"][:5]},
        good | {b"duration ms": 0},
        good | {b"duration ms": -5},
        good | {b"index": [[0, 2 * len(FILM)]]},
        good | {b"index": [[5, 1]]},
        good | {b"index": [5]},
        good | {b"index": [[0, 1]] * 1000},
        good | {b"startup": b"x"},
        good | {b"source": b"\xff" * 100},
        good | {b"source": 7},
    ]


@pytest.mark.parametrize("value", hostile_maps())
def test_a_hostile_time_map_is_refused(value):
    with pytest.raises(MetainfoError, match="not usable") as caught:
        parse_metainfo(torrent({b"toast": value}))
    assert isinstance(caught.value, UsageError)


def test_a_time_map_of_another_film_is_refused():
    other = TimeMap.constant(len(FILM) + 1, 5.0)
    with pytest.raises(MetainfoError, match=f"{len(FILM) + 1} bytes"):
        parse_metainfo(make_torrent(FILM, timemap=other))


_STEADY = settings(deadline=None, derandomize=True, max_examples=80)


@_STEADY
@given(st.binary(max_size=400))
def test_random_bytes_end_in_nothing_but_a_metainfo_error(data):
    with pytest.raises(MetainfoError):
        parse_metainfo(data)


_LEAVES = st.integers(-(2**63), 2**63 - 1) | st.binary(max_size=30)
_VALUES = st.recursive(
    _LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.binary(max_size=8), inner),
    max_leaves=8,
)
_INFO_KEYS = [b"name", b"piece length", b"length", b"pieces", b"files", b"attr", b"meta version"]
_TOP_KEYS = [b"announce", b"announce-list", b"url-list", b"toast", b"nodes", b"httpseeds"]


@_STEADY
@given(
    inside=st.dictionaries(st.sampled_from(_INFO_KEYS), _VALUES, max_size=2),
    outside=st.dictionaries(st.sampled_from(_TOP_KEYS), _VALUES, max_size=3),
)
def test_hostile_values_end_in_a_film_or_in_a_metainfo_error(inside, outside):
    top = {b"info": info() | inside} | outside
    try:
        metainfo = parse_metainfo(lt.bencode(top))
    except MetainfoError as error:
        assert "\n" not in str(error)  # noqa: PT017 - either outcome is right
    else:
        assert len(metainfo.piece_hashes) == metainfo.geometry.pieces
        assert all(isinstance(url, str) for url in (*metainfo.origins, *metainfo.trackers))


@_STEADY
@given(st.data())
def test_a_torrent_with_changed_bytes_ends_in_a_film_or_in_a_metainfo_error(data):
    torrent_bytes = bytearray(make_torrent(FILM, timemap=TimeMap.constant(len(FILM), 5.0)))
    for _ in range(data.draw(st.integers(1, 5))):
        torrent_bytes[data.draw(st.integers(0, len(torrent_bytes) - 1))] = data.draw(
            st.integers(0, 255)
        )
    try:
        metainfo = parse_metainfo(bytes(torrent_bytes))
    except MetainfoError:
        return
    assert metainfo.name
