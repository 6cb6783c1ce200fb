import asyncio, gzip, json, sys
import aiohttp, bencode2, pytest
from aiohttp import web
from tests.toast.origin.server import film_server
from tests.toast.origin.test_client import FILM, HOST, client, clock, closed_url, http
from toast.origin import OriginError
from toast.swarm import SwarmError, MetainfoError
from toast.swarm.announcer import parse_answer
from tests.toast.swarm.conftest import join
from tests.toast.swarm.test_film import METAINFO, all_verified, flipped, piece
from tests.toast.swarm.test_announcer import announce, tracker, entry
from tests.toast.viewer.conftest import world, watch
from tests.toast.viewer.test_source import resolve, server, offer, TORRENT
from tests.toast.cli.test_watch import run, home, torrent
from toast.viewer import FilmUnavailable
from toast.common.errors import ToastError
from tests.toast.viewer.test_accounts import requests, Accounts

async def test_two_failures_at_once_still_lead_to_the_next_url(client):
    async with film_server(FILM, HOST) as good:
        ours = client(closed_url(), good.url)
        await asyncio.gather(ours.fetch(0, 10), ours.fetch(10, 20), return_exceptions=True)
        assert (await ours.fetch(0, 10)).data == FILM[:10]

def test_an_interval_beyond_floats_is_no_crash():
    try: parse_answer(b"d8:intervali" + b"9" * 400 + b"ee")
    except SwarmError: pass

async def test_a_compressed_answer_is_read(http):
    async def handler(request):
        body = bencode2.bencode({b"interval": 60, b"peers": [entry()]})
        if "gzip" in request.headers.get("Accept-Encoding", ""):
            return web.Response(body=gzip.compress(body), headers={"Content-Encoding": "gzip"})
        return web.Response(body=body)
    async with tracker(handler) as url:
        assert (await announce(http, url)).peers

@pytest.mark.parametrize("n", range(5))
async def test_inject_at_once_after_start_is_not_lost(join, tmp_path, n):
    ours = await join(METAINFO, tmp_path / "ours", checked=False)
    ours.swarm.start()
    ours.swarm.inject(0, piece(0))
    await ours.told.until(all_verified(1), seconds=1)

@pytest.mark.parametrize("n", range(5))
async def test_inject_right_after_piece_failed_is_not_lost(join, tmp_path, n):
    ours = await join(METAINFO, tmp_path / "ours")
    ours.swarm.start()
    ours.swarm.inject(1, flipped(piece(1), 70))
    await ours.told.until(lambda told: told.of("failed"))
    ours.swarm.inject(1, piece(1))
    await ours.told.until(all_verified(1), seconds=1)

async def test_a_film_that_is_no_film_ends_in_one_line(world):
    viewer = await world.viewer(seconds=None, tracker=False)
    with pytest.raises(ToastError):
        async with asyncio.timeout(10): await viewer.run()

async def test_stop_while_looking_into_the_container(world):
    world.server.gate.clear()
    viewer = await world.viewer(seconds=None, tracker=False)
    t = asyncio.create_task(viewer.run())
    await asyncio.sleep(.3)
    viewer.stop()
    try:
        async with asyncio.timeout(4): await t
    finally:
        world.server.gate.set()
        for e in list(viewer._arrivals.values()): e.set()

async def test_a_url_that_breaks_urlsplit(resolve):
    with pytest.raises(ToastError): await resolve("http://[bad")
async def test_title_target_that_breaks_urljoin(resolve, server):
    url = offer(server)
    server.documents["/titles/film"] = ("application/json", json.dumps({"torrent": "http://[bad"}).encode())
    with pytest.raises(ToastError): await resolve(url)
async def test_title_nested(resolve, server):
    server.documents["/titles/film"] = ("application/json", b'{"torrent":' + b"[" * 200000)
    with pytest.raises(ToastError): await resolve(server.root + "/titles/film")
async def test_magnet_tracker_that_breaks(resolve, server, monkeypatch):
    monkeypatch.setattr("toast.viewer.source._METADATA_SECONDS", 0.1)
    with pytest.raises(ToastError): await resolve("magnet:?xt=urn:btih:"+"ab"*20+"&tr=http%3A%2F%2F%5Bbad%2Fa")
def test_negative_seed(run, home):
    (home / "f.torrent").write_bytes(torrent(origins=("http://127.0.0.1:1/film",)))
    code, out, err = run("watch", "f.torrent", "--random-seed", "-1", "--listen", "127.48.1.1")
    assert code == 2
def test_magnet_tracker_cli(run, home):
    f=(home / "f.torrent"); f.write_bytes(torrent(origins=("http://127.0.0.1:1/film",), trackers=("http://[bad/a",)))
def test_choice_after_done():
    a = Accounts(); a.planned([3, 5], top=1); requests(a, 3); a.piece_done(3)
    assert requests(a, 5) == (2, 2)
def test_ipv6_listen():
    from toast.cli.watch import _listen_address
    assert _listen_address("[::1]:80") == ("::1", 80)
