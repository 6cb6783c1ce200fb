"""Torrents of several files: which is the film, what goes with it, and where it all lies."""

import hashlib
from pathlib import PurePosixPath

import libtorrent as lt
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.toast.swarm.world import make_season, make_torrent, random_film
from toast.common.geometry import Geometry
from toast.common.timemap import TimeMap
from toast.swarm import FilmFile, Layout, MetainfoError, parse_metainfo
from toast.swarm.contents import Contents, TorrentFile, choose_film, choose_subtitles
from toast.swarm.metainfo import file_url

PIECE = 32 * 1024
FILM = random_film(5 * PIECE + 700, seed=4)
FILES = {
    "readme.txt": b"hello",
    "Films/other.mkv": random_film(3 * PIECE + 11, seed=5),
    "Films/film.mp4": FILM,
    "Films/film.en.srt": b"1\n00:00:01,000 --> 00:00:02,000\nHello\n",
    "Films/Subs/film.de.vtt": b"WEBVTT\n",
    "sample.mp4": random_film(PIECE // 2, seed=6),
}
SEASON = make_season(FILES, piece_bytes=PIECE)


def files(*names):
    """Files of ever growing size."""
    sizes = range(1, len(names) + 1)
    return tuple(
        TorrentFile(PurePosixPath(name), sum(range(size)), size)
        for name, size in zip(names, sizes, strict=True)
    )


def metainfo(**changes):
    return parse_metainfo(make_season(FILES, piece_bytes=PIECE, **changes))


def test_the_largest_film_is_played():
    season = parse_metainfo(SEASON)
    assert (season.name, season.film_bytes) == ("film.mp4", len(FILM))
    start = sum(len(FILES[name]) for name in ("readme.txt", "Films/other.mkv"))
    assert season.film_start == start
    assert season.geometry.film_bytes == sum(map(len, FILES.values()))


@pytest.mark.parametrize("chosen", ["Films/other.mkv", "other.mkv"])
def test_another_one_can_be_chosen(chosen):
    season = parse_metainfo(SEASON).choose(chosen)
    assert (season.name, season.film_bytes) == ("other.mkv", 3 * PIECE + 11)


@pytest.mark.parametrize("chosen", ["absent.mp4", "../film.mp4", ""])
def test_one_that_is_not_there_cannot(chosen):
    with pytest.raises(MetainfoError, match="no file"):
        parse_metainfo(SEASON).choose(chosen)


def test_of_a_torrent_of_one_file_there_is_no_other_to_choose():
    alone = make_torrent(FILM)
    assert parse_metainfo(alone, film="film.mp4").name == "film.mp4"
    with pytest.raises(MetainfoError, match=r"no file 'other\.mkv'"):
        parse_metainfo(alone, film="other.mkv")


def test_a_single_file_without_a_films_ending_is_the_film():
    assert choose_film(files("a")).path.name == "a"
    with pytest.raises(MetainfoError, match="no film"):
        choose_film(files("a", "b.txt"))


def test_subtitles_go_with_the_film_whose_name_they_bear():
    several = files("S/1.mkv", "S/1.en.srt", "S/12.en.srt", "S/2.mkv", "S/Subs/1.de.vtt", "S/x.ass")
    found = choose_subtitles(several, several[0])
    assert [str(file.path) for file in found] == ["S/1.en.srt", "S/Subs/1.de.vtt"]


def test_in_a_folder_for_them_all_go_with_the_only_film():
    several = files("F/film.mkv", "F/Subs/English.srt", "F/Subs/German.ass", "Subs/else.srt")
    found = choose_subtitles(several, several[0])
    assert [str(file.path) for file in found] == ["F/Subs/English.srt", "F/Subs/German.ass"]


def test_in_a_folder_of_the_films_name_all_go_with_it():
    several = files("1.mkv", "2.mkv", "Subs/1/English.srt", "Subs/2/English.srt")
    assert [str(file.path) for file in choose_subtitles(several, several[0])] == [
        "Subs/1/English.srt"
    ]


@pytest.mark.parametrize(
    "path",
    [
        [b".."],
        [b"a", b"..", b"b.mp4"],
        [b"/etc", b"passwd"],
        [b"a/b.mp4"],
        [b"a\\b.mp4"],
        [b""],
        [b"."],
        [b"  "],
        [b"a\0.mp4"],
        [b"a\n.mp4"],
        [b"x" * 256],
        [b"d"] * 17,
        [],
        b"film.mp4",
        [7],
    ],
)
def test_a_path_that_could_lead_out_of_its_folder_is_refused(path):
    top = lt.bdecode(SEASON)
    top[b"info"][b"files"][2][b"path"] = path
    with pytest.raises(MetainfoError):
        parse_metainfo(lt.bencode(top))


def test_a_link_to_another_file_is_refused():
    top = lt.bdecode(SEASON)
    top[b"info"][b"files"][0] |= {b"attr": b"l", b"symlink path": [b"..", b"secret"], b"length": 5}
    with pytest.raises(MetainfoError):
        parse_metainfo(lt.bencode(top))


def test_two_files_of_one_name_are_refused():
    with pytest.raises(MetainfoError, match="same name"):
        parse_metainfo(make_season({"a.mp4": b"xx", "A.MP4": b"yy"}, piece_bytes=PIECE))


def test_padding_is_no_file_but_takes_its_place():
    top = lt.bdecode(
        make_season(
            {"a.txt": b"x" * 100, "pad": bytes(PIECE - 100), "f.mp4": FILM}, piece_bytes=PIECE
        )
    )
    top[b"info"][b"files"][1] |= {b"attr": b"p", b"path": [b".pad", b"100"]}
    season = parse_metainfo(lt.bencode(top))
    assert season.film_start == PIECE
    assert [str(file.path) for file in season.contents.files] == ["a.txt", "f.mp4"]


def test_only_the_pieces_of_the_film_and_its_subtitles_are_wanted():
    season = parse_metainfo(SEASON)
    wanted = season.wanted(subtitles=False)
    first, end = season.film_start // PIECE, -(-(season.film_start + len(FILM)) // PIECE)
    assert np.flatnonzero(wanted).tolist() == list(range(first, end))
    assert season.wanted().sum() >= wanted.sum()
    assert not season.wanted()[0]


def test_the_films_url_lies_in_the_folder_that_a_list_names():
    season = metainfo(origins=("http://host/files/", "http://host/x"))
    assert season.origins == (
        "http://host/files/season/Films/film.mp4",
        "http://host/x/season/Films/film.mp4",
    )
    other = season.contents.files[0]
    assert file_url(season.origins[0], season.contents, other) == (
        "http://host/files/season/readme.txt"
    )


def test_a_time_map_counts_in_the_bytes_of_the_torrent():
    timemap = TimeMap.constant(len(FILM), 10.0)
    season = metainfo(timemap=timemap)
    start = season.film_start
    assert season.timemap.film_bytes == season.geometry.film_bytes
    assert season.timemap.duration == 10.0
    for offset in range(0, len(FILM), 5000):
        assert season.timemap.time_of(start + offset) <= timemap.time_of(offset)
        assert season.timemap.time_of(start + offset) >= timemap.time_of(max(0, offset - 32768))
    assert season.timemap.time_of(start + len(FILM) + 40_000) == 10.0
    assert season.timemap.startup == tuple((start + a, start + b) for a, b in timemap.startup)


def test_a_time_map_of_another_film_in_it_is_not_used():
    season = metainfo(timemap=TimeMap.constant(len(FILM), 10.0)).choose("other.mkv")
    assert season.timemap is None


def test_the_film_is_an_ordinary_file_and_everything_is_somewhere(tmp_path):
    season = parse_metainfo(SEASON)
    layout = Layout.several(tmp_path, season.contents, season.geometry)
    names = [segment.name for segment in layout.segments]
    assert {"film.mp4", "film.en.srt", "film.de.vtt"} <= set(names)
    assert all(name.startswith(".film.mp4.edges/") for name in names if "/" in name)
    (tmp_path / "film.mp4").write_bytes(FILM)
    film = FilmFile(layout, season.geometry, season.piece_hashes)
    have = film.scan()
    inner = season.geometry.pieces_of(season.film_start + PIECE, season.film_start + 5 * PIECE)
    assert have[list(inner)[1:-1]].all()
    digest = film.sha256(season.film_start, season.film_start + season.film_bytes)
    assert digest == hashlib.sha256(FILM).hexdigest()


@given(
    st.lists(st.integers(0, 100_000), min_size=1, max_size=8),
    st.integers(0, 7),
    st.sets(st.integers(0, 7)),
    st.sampled_from([16384, 32768, 65536]),
)
def test_segments_cover_the_torrent_without_gaps(sizes, film, subtitles, piece_bytes):
    several, start = [], 0
    for number, size in enumerate(sizes):
        several.append(TorrentFile(PurePosixPath(f"{number}.mp4"), start, size))
        start += size
    film %= len(several)
    if not several[film].size:
        return
    chosen = tuple(several[n] for n in subtitles if n < len(several) and n != film)
    chosen = tuple(file for file in chosen if file.size)
    geometry = Geometry(start, piece_bytes)
    layout = Layout.several(
        PurePosixPath("/f"), Contents("x", tuple(several), several[film], chosen), geometry
    )
    at = 0
    for segment in layout.segments:
        assert segment.start == at
        assert segment.size > 0
        at += segment.size
    assert at == start
    assert len({segment.name for segment in layout.segments}) == len(layout.segments)
