"""From what a person names to a film: paths, URLs of titles and torrents, magnet links."""

import asyncio
import json
import socket

import aiohttp
import pytest

from tests.toast.origin.server import LostSocket, film_server
from tests.toast.swarm.world import PIECE, make_metainfo, make_torrent, random_film, stock_peer
from tests.toast.viewer.conftest import Tracker, next_host
from toast.swarm import MetainfoError, SessionSettings, SwarmSession
from toast.swarm.metainfo import MAX_METAINFO_BYTES
from toast.viewer import ViewerError, resolve_source
from toast.viewer.source import fetch_metainfo

FILM = random_film(2 * PIECE)
URL = "http://vod.example/titles/film/content"
TORRENT = make_torrent(FILM, origins=(URL,), trackers=("http://tracker.example/announce",))
INFO_HASH = make_metainfo(FILM).info_hash
HEX = INFO_HASH.hex()
MAGNET = f"magnet:?xt=urn:btih:{HEX}"


@pytest.fixture
async def resolve():
    """Resolve a source as the program does: `source = await resolve(text, origin=...)`."""
    session = SwarmSession(SessionSettings(listen_host=next_host()))
    await session.wait_listening()
    async with aiohttp.ClientSession(auto_decompress=False) as http:

        async def run(text, *, origin=None):
            async with asyncio.timeout(10):
                return await resolve_source(text, http=http, session=session, origin=origin)

        yield run
    assert session.native.get_torrents() == []
    await session.close()


@pytest.fixture
async def server():
    async with film_server(FILM, next_host()) as running:
        yield running


def offer(server, *, path="/titles/film", torrent=TORRENT, **title):
    """Put a title on offer as our VoD server does; returns its URL."""
    described = {"id": "film", "torrent": f"{path}/torrent"} | title
    server.documents[path] = ("application/json", json.dumps(described).encode())
    server.documents[f"{path}/torrent"] = ("application/x-bittorrent", torrent)
    server.documents[f"/torrents/{HEX}.torrent"] = ("application/x-bittorrent", torrent)
    return server.root + path


def closed_url(path=""):
    with socket.socket() as free:
        free.bind((next_host(), 0))
        host, port = free.getsockname()
        return f"http://{host}:{port}{path}"


# -- files -----------------------------------------------------------------------------------------


async def test_a_file_tells_film_server_and_tracker(resolve, tmp_path):
    path = tmp_path / "film.torrent"
    path.write_bytes(TORRENT)
    source = await resolve(str(path))
    assert source.metainfo.info_hash == INFO_HASH
    assert source.origins == (URL,)
    assert source.trackers == ("http://tracker.example/announce",)


async def test_a_missing_file_is_told(resolve, tmp_path):
    with pytest.raises(MetainfoError, match=r"film\.torrent does not exist"):
        await resolve(str(tmp_path / "film.torrent"))


async def test_a_folder_is_told(resolve, tmp_path):
    with pytest.raises(MetainfoError, match="is not a file"):
        await resolve(str(tmp_path))


@pytest.mark.parametrize("content", [b"", b"hello", TORRENT[:-20], b"\x00" * 5000])
async def test_garbage_is_told_with_its_path(resolve, tmp_path, content):
    path = tmp_path / "film.torrent"
    path.write_bytes(content)
    with pytest.raises(MetainfoError, match=r"film\.torrent: this is not a \.torrent"):
        await resolve(str(path))


async def test_a_film_given_for_its_torrent_is_not_read(resolve, tmp_path):
    path = tmp_path / "film.mp4"
    with path.open("wb") as file:
        file.truncate(MAX_METAINFO_BYTES + 1)
    with pytest.raises(MetainfoError, match=r"a film.s has a few"):
        await resolve(str(path))


# -- URLs ------------------------------------------------------------------------------------------


async def test_the_url_of_a_title_leads_to_its_torrent(resolve, server):
    source = await resolve(offer(server))
    assert (source.metainfo.info_hash, source.origins) == (INFO_HASH, (URL,))


async def test_the_url_of_a_torrent_is_one_too(resolve, server):
    offer(server)
    source = await resolve(f"{server.root}/torrents/{HEX}.torrent")
    assert source.metainfo.info_hash == INFO_HASH


async def test_a_torrent_elsewhere_may_be_named_by_its_whole_url(resolve, server):
    async with film_server(FILM, next_host()) as other:
        offer(other)
        url = offer(server, torrent=b"not this one")
        server.documents["/titles/film"] = (
            "application/json",
            json.dumps({"torrent": f"{other.root}/titles/film/torrent"}).encode(),
        )
        assert (await resolve(url)).metainfo.info_hash == INFO_HASH


async def test_a_lost_socket_is_a_failure_like_any_other():
    with pytest.raises(ViewerError, match=f"{URL} cannot be reached: File descriptor 59"):
        await fetch_metainfo(URL, LostSocket())


async def test_nobody_there_is_told_with_the_url(resolve):
    url = closed_url("/titles/film")
    with pytest.raises(ViewerError, match=f"{url} cannot be reached"):
        await resolve(url)


async def test_an_unknown_title_is_told_with_the_status(resolve, server):
    with pytest.raises(ViewerError, match="answers 404"):
        await resolve(f"{server.root}/titles/nothing")


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b"{}",
        b'{"torrent": 5}',
        b'{"torrent": "http://[bad"}',
        b'{"torrent": ' + b"[" * 200_000,
        b'{"torrent": null}',
        b'{"torrent": ["/t"]}',
        b"{\xff\xfe}",
        b"[]",
        b"null",
        b"",
        b"<html>welcome to the hotel</html>",
        b"d4:infodee",
    ],
)
async def test_a_hostile_title_is_one_line(resolve, server, body):
    server.documents["/titles/film"] = ("application/json", body)
    with pytest.raises(MetainfoError, match=server.root):
        await resolve(f"{server.root}/titles/film")


@pytest.mark.parametrize("target", ["file:///etc/passwd", "ftp://127.0.0.1/t", "javascript:1"])
async def test_a_title_cannot_send_us_elsewhere_than_to_the_web(resolve, server, target):
    url = offer(server)
    server.documents["/titles/film"] = (
        "application/json",
        json.dumps({"torrent": target}).encode(),
    )
    with pytest.raises(MetainfoError, match="is not the URL"):
        await resolve(url)


async def test_a_title_whose_torrent_is_gone_is_told(resolve, server):
    url = offer(server)
    del server.documents["/titles/film/torrent"]
    with pytest.raises(ViewerError, match="torrent answers 404"):
        await resolve(url)


async def test_more_than_a_torrent_ever_has_is_not_collected(resolve, server):
    server.documents["/t.torrent"] = ("video/mp4", b"x" * (MAX_METAINFO_BYTES + 1))
    with pytest.raises(ViewerError, match="a film or worse"):
        await resolve(f"{server.root}/t.torrent")


# -- an origin besides -----------------------------------------------------------------------------


@pytest.fixture
def torrent_file(tmp_path):
    path = tmp_path / "film.torrent"
    path.write_bytes(TORRENT)
    return str(path)


async def test_an_origin_that_is_the_film_s_url_is_asked_first(resolve, torrent_file):
    source = await resolve(torrent_file, origin="http://mirror.example/film.mp4")
    assert source.origins == ("http://mirror.example/film.mp4", URL)


async def test_an_origin_that_is_a_server_is_asked_where_it_has_the_film(
    resolve, server, torrent_file
):
    """Under the name by which it was reached, whatever name it gives itself."""
    offer(server)
    for root in (server.root, f"{server.root}/"):
        source = await resolve(torrent_file, origin=root)
        assert source.origins == (f"{server.root}/titles/film/content", URL)


async def test_an_origin_without_the_film_is_told(resolve, server, torrent_file):
    with pytest.raises(ViewerError, match=r"does not have this film .it answers 404"):
        await resolve(torrent_file, origin=server.root)


async def test_an_origin_that_does_not_say_where_is_told(resolve, server, torrent_file):
    offer(server, torrent=make_torrent(FILM))
    with pytest.raises(ViewerError, match="does not say where"):
        await resolve(torrent_file, origin=server.root)


async def test_an_origin_that_is_down_is_told_unless_the_torrent_knows_it(resolve, tmp_path):
    root = closed_url()
    known = f"{root}/titles/film/content"
    path = tmp_path / "film.torrent"
    path.write_bytes(make_torrent(FILM, origins=(known,)))
    assert (await resolve(str(path), origin=root)).origins == (known,)
    path.write_bytes(TORRENT)
    with pytest.raises(ViewerError, match="cannot be reached"):
        await resolve(str(path), origin=root)


@pytest.mark.parametrize(
    "origin", ["ftp://x", "vod.example", "http://", "http:///f", "http://[bad", "", "/etc/passwd"]
)
async def test_an_origin_that_is_no_url_is_told(resolve, torrent_file, origin):
    with pytest.raises(MetainfoError, match="is not the URL of a VoD server"):
        await resolve(torrent_file, origin=origin)


# -- magnet links ----------------------------------------------------------------------------------


async def test_a_magnet_link_is_looked_up_at_the_server(resolve, server):
    offer(server)
    link = f"{MAGNET}&dn=film&tr=http%3A%2F%2Fmore.example%2Fannounce"
    source = await resolve(link, origin=server.root)
    assert source.metainfo.info_hash == INFO_HASH
    assert source.origins[0] == f"{server.root}/titles/film/content"
    assert source.trackers == ("http://tracker.example/announce", "http://more.example/announce")


async def test_a_server_that_answers_with_another_film_is_caught(resolve, server):
    offer(server, torrent=make_torrent(random_film(2 * PIECE, seed=9)))
    with pytest.raises(MetainfoError, match="another film"):
        await resolve(MAGNET, origin=server.root)


async def test_a_server_that_answers_garbage_is_one_line(resolve, server):
    offer(server, torrent=b"garbage")
    with pytest.raises(MetainfoError, match=r"not a \.torrent"):
        await resolve(MAGNET, origin=server.root)


@pytest.mark.slow
async def test_metadata_comes_from_a_peer_that_the_tracker_names(resolve, tmp_path):
    """BEP 9: no server at all."""
    tracker = Tracker()
    await tracker.start()
    async with stock_peer(make_torrent(FILM), FILM, tmp_path / "peer", next_host()) as peer:
        tracker.add(peer.address)
        source = await resolve(f"{MAGNET}&tr={tracker.url}")
    assert source.metainfo.info_hash == INFO_HASH
    assert (source.origins, source.trackers) == ((), (tracker.url,))
    await tracker.stop()


async def test_metadata_that_nobody_sends_is_given_up(resolve, monkeypatch):
    monkeypatch.setattr("toast.viewer.source._METADATA_SECONDS", 0.1)
    with pytest.raises(ViewerError, match="--origin"):
        await resolve(MAGNET)


@pytest.mark.parametrize(
    "link",
    [
        "magnet:",
        "magnet:?",
        "magnet:?xt=urn:btih:",
        "magnet:?xt=urn:btih:zz",
        "magnet:?dn=film",
        "magnet:?xt=urn:btmh:1220" + "ab" * 32,
        f"{MAGNET[:-1]}",
    ],
)
async def test_a_broken_magnet_link_is_one_line(resolve, link):
    with pytest.raises(MetainfoError, match="magnet link") as caught:
        await resolve(link)
    assert "\n" not in str(caught.value)
