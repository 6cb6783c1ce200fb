"""Viewers that keep a quarter of the film: bound held, film whole, nothing lost to anyone."""

import asyncio
import hashlib
import signal

import aiohttp
import bencode2
import pytest

from experiments.film import FilmSpec, make_film

pytestmark = [pytest.mark.lab, pytest.mark.slow, pytest.mark.timeout(240)]

SHARE = 0.25
FULL_SECONDS = 60.0
RATE = 125_000.0
BACK_TO_SECONDS = 0.5


def pytest_generate_tests(metafunc):
    """Who supplies an ejected piece again: without --full only the server, to save the time."""
    if "supply" in metafunc.fixturenames:
        full = metafunc.config.getoption("--full")
        metafunc.parametrize("supply", ["server", "peers"] if full else ["server"])


class DiskMeter:
    """The most bytes that files in a folder ever had together: looked up in the file system."""

    def __init__(self, folder):
        self.most = 0
        self._folder = folder
        self._task = asyncio.create_task(self._watch())

    async def _watch(self):
        while True:
            self.most = max(self.most, self._bytes())
            await asyncio.sleep(0.01)

    def _bytes(self):
        found = 0
        for path in self._folder.rglob("*"):
            try:
                found += path.stat().st_size if path.is_file() else 0
            except FileNotFoundError:
                continue  # deleted while we looked
        return found

    def stop(self):
        self._task.cancel()
        return self.most


class Player:
    """Reads a film through the gateway of one viewer, and keeps what it gets."""

    def __init__(self, http, url):
        self._http = http
        self._url = url

    async def read(self, start, end=None):
        headers = {"Range": f"bytes={start}-{'' if end is None else end - 1}"}
        async with self._http.get(self._url, headers=headers) as answer:
            assert answer.status == 206
            return await answer.read()


async def join(house, name, *options):
    watching = await house.watch(name, "--gateway", *options)
    told = await watching.child.wait_event("gateway", timeout_seconds=20)
    return watching, told["url"]


async def play_all(house, http, options, *, viewers):
    """Several viewers, one after the other, each with a player that reads it from end to end."""
    joined, reading, meters = [], [], []
    for number in range(viewers):
        watching, url = await join(house, f"viewer-{number}", *options)
        joined.append(watching)
        meters.append(DiskMeter(watching.folder))
        reading.append(asyncio.create_task(Player(http, url).read(0)))
        await watching.wait_position(0.1)
    read = await asyncio.gather(*reading)
    reports = [await watching.report() for watching in joined]
    return read, reports, [meter.stop() for meter in meters]


def offload(reports):
    received = {
        source: sum(report[f"bytes_from_{source}"] for report in reports)
        for source in ("peers", "seed", "origin")
    }
    return received["peers"] / sum(received.values())


@pytest.fixture(scope="session")
def film(film, full, tmp_path_factory):
    """With --full a minute: then a quarter of the film is longer than it takes to join a swarm."""
    if not full:
        return film
    spec = FilmSpec(duration_seconds=FULL_SECONDS, bit_rate=RATE, width=320, height=180)
    return make_film(tmp_path_factory.mktemp("film") / "film.mp4", spec)


@pytest.fixture
async def http():
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=120)) as session:
        yield session


async def test_a_quarter_of_the_film_is_enough_to_see_it_and_to_feed_others(
    house, http, full, figures
):
    """The bound holds by the file system's word; every byte is the film's; nobody is banned."""
    await house.open()
    content = house.film.read_bytes()
    options = ("--buffer", f"{SHARE:.0%}", "--upload", "2Mbps")
    viewers = 5 if full else 2
    read, reports, most = await play_all(house, http, options, viewers=viewers)

    bound = int(SHARE * house.film_bytes)
    piece_bytes = bencode2.bdecode(house.torrent.read_bytes())[b"info"][b"piece length"]
    figures["buffer_share_most"] = max(most) / house.film_bytes
    figures["buffer_over_bound_bytes"] = max(0, max(most) - bound)
    figures["buffer_stalls"] = sum(report["stalls"] for report in reports)
    figures["buffer_wrong_films"] = sum(data != content for data in read)
    figures["buffer_bans"] = sum(report["banned_peers"] for report in reports)
    figures["buffer_rejoins"] = sum(report["rejoins"] for report in reports)
    figures["buffer_offload"] = offload(reports)
    assert max(most) <= bound + 2 * piece_bytes
    assert all(data == content for data in read)
    for report in reports:
        assert report["complete"] is True
        assert report["sha256"] == hashlib.sha256(content).hexdigest()
        assert report["ejected_pieces"] >= (1 - SHARE) * house.film_bytes / piece_bytes - 2
        assert report["banned_peers"] == 0
    assert figures["buffer_offload"] > 0.2
    if full:
        _, whole, _ = await play_all(house, http, options[2:], viewers=viewers)
        figures["full_buffer_offload"] = offload(whole)
        figures["full_buffer_stalls"] = sum(report["stalls"] for report in whole)


async def test_an_ejected_piece_is_served_again_after_a_step_back(
    house, http, full, figures, supply
):
    """From the server where nobody else has it; from a neighbour that has."""
    await house.open()
    content = house.film.read_bytes()
    if supply == "peers":
        await house.watch_complete("holder")
    options = ("--buffer", f"{SHARE:.0%}", "--neighbours", "everyone")
    watching, url = await join(house, "viewer", *options)
    meter = DiskMeter(watching.folder)
    player = Player(http, url)
    reading = asyncio.create_task(player.read(0))
    away = max(BACK_TO_SECONDS + 5.5, 2 * SHARE * house.film_bytes / RATE if full else 0)
    await watching.wait_until(lambda p: p["position_seconds"] >= away, "it is away", 90.0)
    reading.cancel()
    before = watching.progress
    start = int(BACK_TO_SECONDS * RATE)
    span = range(start, start + 300_000)
    stored = {path.name for path in (watching.folder / "film.mp4.pieces").iterdir()}
    piece_bytes = bencode2.bdecode(house.torrent.read_bytes())[b"info"][b"piece length"]
    wanted = {f"{at // piece_bytes:06d}" for at in span}
    assert wanted - stored

    data = await player.read(span.start, span.stop)

    assert data == content[span.start : span.stop]
    after = await watching.wait_until(
        lambda p: p["position_seconds"] < before["position_seconds"] - 2, "it plays again"
    )
    came = f"bytes_from_{'origin' if supply == 'server' else 'peers'}"
    assert after[came] > before[came]
    watching.child.signal(signal.SIGTERM)
    report = await watching.report()
    assert report["stalls"] <= 1
    assert report["banned_peers"] == 0
    assert report["rejoins"] >= 1
    assert meter.stop() <= SHARE * house.film_bytes + 2 * piece_bytes
    figures[f"ejected_served_again_by_{supply}"] = len(wanted - stored)
    figures[f"back_seek_{supply}_seconds"] = report["seek_seconds"]
