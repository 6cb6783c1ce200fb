"""The .torrent: an info that does not change, and the addresses of today."""

import dataclasses
import hashlib

import libtorrent as lt
import pytest
from bencode2 import bdecode

from toast.common.timemap import TimeMap
from vodserver.torrent import compose_torrent

URL = "http://127.0.0.1:8080/titles/clock/content"


def compose(title, *trackers):
    return compose_torrent(title, trackers=trackers, content_url=URL)


def test_info_is_byte_for_byte_what_the_hash_is_of(pristine):
    torrent = compose(pristine.title)

    assert torrent.count(b"4:info" + pristine.title.info) == 1
    assert hashlib.sha1(pristine.title.info).hexdigest() == pristine.title.info_hash


@pytest.mark.parametrize("trackers", [(), ("http://a/announce",), ("http://a/announce", "udp://b")])
def test_a_stock_client_reads_all_of_it(pristine, trackers):
    info = lt.torrent_info(compose(pristine.title, *trackers))

    assert str(info.info_hashes().v1) == pristine.title.info_hash
    assert info.name() == "clock.mp4"
    assert info.total_size() == pristine.title.film_bytes
    assert info.piece_length() == pristine.title.piece_bytes
    assert [tracker.url for tracker in info.trackers()] == list(trackers)
    assert [tracker.tier for tracker in info.trackers()] == list(range(len(trackers)))
    assert [seed["url"] for seed in info.web_seeds()] == [URL]


def test_block_hashes_are_offered_outside_info(pristine):
    torrent = bdecode(
        compose_torrent(pristine.title, trackers=(), content_url=URL, blocks_url="http://a/blocks")
    )

    assert torrent[b"block hashes"] == {
        b"roots": pristine.title.block_roots,
        b"url": b"http://a/blocks",
    }
    assert len(pristine.title.block_roots) == 32 * len(torrent[b"info"][b"pieces"]) // 20


@pytest.mark.parametrize("url", ["http://a/blocks", None])
def test_block_hashes_that_are_nowhere_are_not_offered(pristine, url):
    title = pristine.title if url is None else dataclasses.replace(pristine.title, block_roots=b"")

    torrent = compose_torrent(title, trackers=(), content_url=URL, blocks_url=url)

    assert b"block hashes" not in bdecode(torrent)


def test_announce_is_left_out_where_there_is_no_tracker(pristine):
    torrent = bdecode(compose(pristine.title))

    assert b"announce" not in torrent
    assert b"announce-list" not in torrent


def test_the_time_map_travels_outside_info(pristine):
    torrent = bdecode(compose(pristine.title))

    assert set(torrent[b"info"]) == {b"length", b"name", b"piece length", b"pieces"}
    timemap = TimeMap.from_bencodable(torrent[b"toast"])
    assert timemap.film_bytes == pristine.title.film_bytes
    assert timemap.duration == pytest.approx(pristine.title.duration, abs=0.002)
