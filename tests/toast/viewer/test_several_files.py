"""A film that is one file among several: from the server, from peers, kept whole and in part."""

import asyncio
import hashlib
import itertools

import aiohttp
import libtorrent as lt
import numpy as np
import pytest
from aiohttp import web

from tests.toast.swarm.world import make_season, random_film
from tests.toast.viewer.conftest import HASTY, next_host
from toast.common.timemap import TimeMap
from toast.origin import OriginClient, OriginError, SpanClient, Stretch
from toast.swarm import SessionSettings, SwarmSession, parse_metainfo
from toast.viewer import FilmReader, Source, ViewerSettings, assemble_viewer

PIECE = 32 * 1024
FILM = random_film(20 * PIECE + 700, seed=4)
SUBTITLES = b"1\n00:00:01,000 --> 00:00:02,000\nHello\n" * 20
FILES = {
    "Films/other.mkv": random_film(3 * PIECE + 11, seed=5),
    "Films/film.mp4": FILM,
    "Films/film.en.srt": SUBTITLES,
    "sample.mp4": random_film(2 * PIECE, seed=6),
}
SECONDS = 4.0


class Folder:
    """A server of plain files, as BEP 19 has it, and what it was asked for."""

    def __init__(self, tmp_path):
        for path, data in FILES.items():
            (tmp_path / "season" / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "season" / path).write_bytes(data)
        self.sent = []
        self._root = tmp_path

    async def start(self):
        app = web.Application()
        app.router.add_get("/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, next_host(), 0).start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}/"

    async def stop(self):
        await self._runner.cleanup()

    async def _answer(self, request):
        self.sent.append(request.match_info["path"])
        return web.FileResponse(self._root / request.match_info["path"])


@pytest.fixture
async def served(tmp_path):
    folder = Folder(tmp_path / "served")
    await folder.start()
    yield folder
    await folder.stop()


@pytest.fixture
async def http():
    async with aiohttp.ClientSession(auto_decompress=False) as session:
        yield session


@pytest.fixture
async def watch(http, tmp_path):
    """Watch the film: `viewer, shown, report = await watch(torrent, peers=(address,))`."""
    sessions = []

    async def play(torrent, *, peers=(), **settings):
        session = SwarmSession(SessionSettings(listen_host=next_host()))
        sessions.append(session)
        await session.wait_listening()
        metainfo = parse_metainfo(torrent)
        viewer = assemble_viewer(
            Source(metainfo, metainfo.origins, ("http://127.0.0.1:1/announce",)),
            settings=ViewerSettings(folder=tmp_path / "films", **settings),
            session=session,
            http=http,
            rng=np.random.default_rng(1),
            origin_settings=HASTY,
        )
        await viewer.open()
        for peer in peers:
            viewer._swarm.connect(peer)
        reader = FilmReader(viewer)

        async def read():
            return b"".join([part async for part in reader.read(0, reader.film_bytes)])

        shown = asyncio.create_task(read())
        async with asyncio.timeout(20):
            await viewer.run()
        return viewer, await shown, await viewer.report()

    yield play
    for session in sessions:
        await session.close()


def torrent(*origins):
    timemap = TimeMap.constant(len(FILM), SECONDS)
    return make_season(FILES, piece_bytes=PIECE, timemap=timemap, origins=origins)


@pytest.mark.slow
async def test_the_film_comes_from_the_server_and_is_an_ordinary_file(served, watch, tmp_path):
    viewer, shown, report = await watch(torrent(served.url))

    assert shown == FILM
    assert (tmp_path / "films/film.mp4").read_bytes() == FILM
    assert report["film_bytes"] == len(FILM)
    assert (report["complete"], report["stalls"]) == (True, 0)
    assert report["sha256"] == hashlib.sha256(FILM).hexdigest()
    payload = sum(report["origin_payload_by_reason"].values())
    assert payload <= viewer.wanted.sum() * PIECE < viewer.metainfo.geometry.film_bytes
    progress = viewer.progress()
    assert progress["pieces_have"] == progress["pieces"] < viewer.metainfo.geometry.pieces


@pytest.mark.slow
async def test_the_film_and_its_subtitles_come_from_a_peer_and_nothing_else_does(watch, tmp_path):
    folder = tmp_path / "seed"
    for path, data in FILES.items():
        (folder / "season" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / "season" / path).write_bytes(data)
    host = next_host()
    seed = lt.session({"listen_interfaces": f"{host}:0", "enable_dht": False, "enable_lsd": False})
    params = lt.add_torrent_params()
    params.ti, params.save_path = lt.torrent_info(torrent()), str(folder)
    params.have_pieces = [True] * params.ti.num_pieces()
    seed.add_torrent(params)

    _, shown, report = await watch(torrent(), peers=((host, seed.listen_port()),))

    assert shown == FILM
    assert (tmp_path / "films/film.mp4").read_bytes() == FILM
    assert (tmp_path / "films/film.en.srt").read_bytes() == SUBTITLES
    assert report["bytes_from_peers"] <= len(FILM) + len(SUBTITLES) + 2 * PIECE
    names = {path.name for path in (tmp_path / "films").iterdir()}
    assert names == {"film.mp4", "film.en.srt", ".film.mp4.edges"}
    holder = [seed]
    del seed
    await asyncio.to_thread(holder.clear)


@pytest.mark.slow
async def test_a_part_of_a_film_among_several_is_enough(served, watch, tmp_path):
    _, shown, report = await watch(torrent(served.url), buffer_fraction=0.4)

    assert shown == FILM
    assert report["sha256"] == hashlib.sha256(FILM).hexdigest()
    assert report["ejected_pieces"] >= 10
    kept = sum(path.stat().st_size for path in (tmp_path / "films/film.mp4.pieces").iterdir())
    assert kept <= 0.4 * len(FILM)


@pytest.mark.slow
async def test_a_film_found_on_disk_is_not_fetched_again(served, watch, tmp_path):
    (tmp_path / "films").mkdir()
    (tmp_path / "films/film.mp4").write_bytes(FILM)
    _, shown, report = await watch(torrent(served.url))
    assert shown == FILM
    assert sum(report["origin_payload_by_reason"].values()) <= 2 * PIECE  # its ends, with others'


async def test_a_range_over_several_files_is_read_as_one(served, http):
    offsets = list(itertools.accumulate(map(len, FILES.values()), initial=0))
    stretches = [
        Stretch(start, len(data), (f"{served.url}season/{path}",))
        for start, (path, data) in zip(offsets, FILES.items(), strict=False)
    ]
    loop = asyncio.get_running_loop()
    film, others = stretches[1], [stretches[0], *stretches[2:]]
    client = SpanClient(http, film, others, clock=loop.time, settings=HASTY)
    whole = b"".join(FILES.values())
    heard = {}
    for start, end in ((offsets[1] - 9, offsets[3] + 5), (0, 10), (offsets[1], offsets[1] + 1)):
        fetched = await client.fetch(start, end, lambda at, data: heard.update({at: data}))
        assert fetched.data == whole[start:end]
    assert all(whole[at : at + len(data)] == data for at, data in heard.items())
    assert client.received_bytes > sum((offsets[3] + 5 - offsets[1] + 9, 10, 1))
    with pytest.raises(OriginError):
        await SpanClient(
            http,
            Stretch(0, 10, (served.url + "absent",)),
            (),
            clock=loop.time,
            settings=HASTY,
        ).fetch(0, 5)


async def test_padding_between_files_is_zeroes_and_costs_nothing(served, http):
    loop = asyncio.get_running_loop()
    url = f"{served.url}season/Films/film.mp4"
    client = SpanClient(http, Stretch(100, len(FILM), (url,)), (), clock=loop.time, settings=HASTY)
    assert (await client.fetch(90, 103)).data == bytes(10) + FILM[:3]
    assert isinstance(client, OriginClient)
