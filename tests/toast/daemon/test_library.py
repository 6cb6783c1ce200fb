"""Many films in one process: they come, run by the rules, are read, watched, and go."""

import asyncio
import contextlib
import hashlib
import os

import pytest

from tests.toast.daemon.conftest import FILM, SHA256, id_of, torrent
from toast.daemon.folders import folder_name, stored_bytes
from toast.swarm import parse_metainfo
from toast.viewer import PieceSource


@contextlib.asynccontextmanager
async def running(house):
    task = asyncio.create_task(house.service.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def wait_state(house, film_id, *states):
    async with asyncio.timeout(15):
        while True:
            _, film = await house.ask("GET", f"/films/{film_id}")
            if film["state"] in states:
                return film
            await asyncio.sleep(0.02)


def data_of(origin, number=0, **options):
    return torrent(number, origins=(origin.url,), **options)


@pytest.mark.slow
async def test_a_film_is_downloaded_by_the_clock_and_then_served(house, origin):
    """Nobody watches it: its playhead goes on by itself, and what peers lack comes in time."""
    await house.open()
    async with running(house):
        film_id = (await house.add(data_of(origin)))["id"]
        film = await wait_state(house, film_id, "seeding")
    assert film["bytes_from_origin"] >= len(FILM)
    assert film["position_seconds"] == 0.0, "what was only downloaded was not watched"
    (copy,) = (house.state / "films").glob("*/film-0.mp4")
    assert hashlib.sha256(copy.read_bytes()).hexdigest() == SHA256
    assert house.library.consumption.origin_bytes >= len(FILM)


@pytest.mark.slow
async def test_reading_starts_a_film_that_waits_and_gets_every_byte(house, origin):
    await house.open({"most_active": 0})
    async with running(house):
        film = await house.add(data_of(origin))
        assert film["state"] == "queued"
        async with house.http.get(film["content_url"]) as got:
            assert hashlib.sha256(await got.read()).hexdigest() == SHA256
        assert (await wait_state(house, film["id"], "watching"))["pieces_have"] == film["pieces"]
        await wait_state(house, film["id"], "seeding")


@pytest.mark.slow
async def test_the_queue_lets_so_many_run_and_the_best_first(house, origin):
    origin.gate.clear()  # nothing comes: whoever runs goes on running
    await house.open({"most_active": 1})
    async with running(house):
        first = await house.add(data_of(origin, 0))
        second = await house.add(data_of(origin, 1), mode="queue")
        await wait_state(house, first["id"], "downloading", "waiting")
        await wait_state(house, second["id"], "queued")
        await house.ask("PATCH", f"/films/{second['id']}", {"priority": 5})
        await wait_state(house, second["id"], "downloading", "waiting")
        await wait_state(house, first["id"], "queued")
        await house.ask("PATCH", f"/films/{second['id']}", {"paused": True})
        await wait_state(house, second["id"], "paused")
        await wait_state(house, first["id"], "downloading", "waiting")
        await house.ask("PATCH", "/settings", {"schedule": "otherwise no downloads"})
        await wait_state(house, first["id"], "queued")
        origin.gate.set()


@pytest.mark.slow
async def test_what_it_was_told_is_there_after_a_restart(house, origin):
    await house.open()
    async with running(house):
        film_id = (await house.add(data_of(origin), behaviour="download-only"))["id"]
        await wait_state(house, film_id, "complete")
        await house.ask("POST", f"/films/{film_id}/position", {"position_seconds": 1.25})
        await house.ask("PATCH", "/settings", {"most_active": 7, "origin_day_bytes": 10**9})
        spent = house.library.consumption.origin_bytes
    await house.close()
    asked = origin.payload

    await house.open()
    async with running(house):
        _, film = await house.ask("GET", f"/films/{film_id}")
        assert (film["state"], film["position_seconds"]) == ("complete", 1.25)
        assert (await house.ask("GET", "/settings"))[1]["most_active"] == 7
        assert house.library.consumption.origin_bytes == spent
        async with house.http.get(film["content_url"], headers={"Range": "bytes=-1000"}) as got:
            assert await got.read() == FILM[-1000:]
    assert origin.payload == asked, "what is on the disk is not fetched again"


@pytest.mark.slow
async def test_the_servers_budget_is_one_for_all_films(house, origin):
    """With little left, downloads stand still; they go on when there is more."""
    await house.open({"origin_day_bytes": 200_000})
    async with running(house):
        film_id = (await house.add(data_of(origin)))["id"]
        await wait_state(house, film_id, "downloading", "waiting")
        await asyncio.sleep(1.0)
        assert origin.payload <= 200_000 + 32 * 1024
        await house.ask("PATCH", "/settings", {"origin_day_bytes": None})
        await wait_state(house, film_id, "seeding")


@pytest.mark.slow
async def test_a_complete_film_is_checked_again_only_if_its_file_was_touched(house, origin):
    """Whoever opens a large film must not wait until all of it was hashed."""
    await house.open()
    async with running(house):
        film_id = (await house.add(data_of(origin)))["id"]
        await wait_state(house, film_id, "seeding")
        film = house.library.film(film_id)
        path = film.folder / film.film_name
        rotten = FILM[:-1] + b"!"
        for trusted in (True, False):
            for _ in range(2):  # the first time may come before all is written
                await house.ask("PATCH", f"/films/{film_id}", {"paused": True})
                await wait_state(house, film_id, "paused")
                assert film.record.intact is not None
                before = path.stat()
                if not trusted:
                    path.write_bytes(rotten)
                await house.ask("PATCH", f"/films/{film_id}", {"paused": False})
                await wait_state(house, film_id, "seeding")
            if trusted:  # as a disk rots: nothing tells of it, until somebody reads
                path.write_bytes(rotten)
                os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
                await house.ask("PATCH", f"/films/{film_id}", {"paused": True})
                await wait_state(house, film_id, "paused")
                await house.ask("PATCH", f"/films/{film_id}", {"paused": False})
                await wait_state(house, film_id, "seeding")
                assert set(film.sources) == {PieceSource.DISK}
                url = (await house.ask("GET", f"/films/{film_id}"))[1]["content_url"]
                async with house.http.get(url) as got:
                    assert hashlib.sha256(await got.read()).hexdigest() == SHA256
        assert film.sources[-1] == PieceSource.ORIGIN, "it was found out, and fetched again"
    assert hashlib.sha256(path.read_bytes()).hexdigest() == SHA256


async def test_a_film_without_room_is_refused(house):
    await house.open({"disk_bytes": 1_000_000})
    await house.add(torrent(0))
    status, answer = await house.ask("POST", "/films", torrent(1))
    assert status == 507
    assert "disk_bytes" in answer["error"]
    assert len(house.library.films()) == 1
    assert len(list((house.state / "torrents").iterdir())) == 1


async def test_a_watched_film_makes_room_and_that_is_told(house):
    await house.open({"disk_bytes": 1_000_000})
    old = await house.add(torrent(0))
    house.library.film(old["id"]).change(pieces_have=old["pieces"], watched=True)
    new = await house.add(torrent(1))
    assert [film.id for film in house.library.films()] == [new["id"]]
    assert any("made room" in notice for notice in house.library.notices)


async def test_removing_deletes_files_only_if_asked(house):
    await house.open()
    for data, number in (("0", 0), ("1", 1)):
        film = house.library.film((await house.add(torrent(number)))["id"])
        film.folder.mkdir(parents=True)
        (film.folder / film.film_name).write_bytes(b"film")
        assert (await house.ask("DELETE", f"/films/{film.id}", params={"data": data}))[0] == 204
        assert film.folder.exists() is (data == "0")
    assert list((house.state / "torrents").iterdir()) == []


async def test_a_removal_that_was_interrupted_is_finished_at_the_next_start(house):
    await house.open()
    film = house.library.film((await house.add(torrent()))["id"])
    film.folder.mkdir(parents=True)
    (film.folder / film.film_name).write_bytes(b"film")
    house.library._state.remove(film.id, film.folder.name)  # and then it was killed
    await house.close()
    await house.open()
    assert not film.folder.exists()
    assert house.library._state.doomed() == []


async def test_a_torrent_that_was_never_committed_goes(house):
    await house.open()
    (house.state / "torrents" / f"{id_of(torrent())}.torrent").write_bytes(torrent())
    await house.close()
    await house.open()
    assert house.library.films() == []
    assert list((house.state / "torrents").iterdir()) == []


async def test_rules_given_at_the_start_win_but_are_not_remembered(house):
    await house.open()
    await house.ask("PATCH", "/settings", {"most_active": 2})
    await house.close()
    await house.open({"most_active": 9})
    assert house.library.rules.most_active == 9
    await house.close()
    await house.open()
    assert house.library.rules.most_active == 2


@pytest.mark.slow
async def test_an_error_halts_one_film_until_it_is_resumed(house, origin):
    await house.open()
    async with running(house):
        film = house.library.film((await house.add(data_of(origin)))["id"])
        other = (await house.add(data_of(origin, 1)))["id"]
        await wait_state(house, film.id, "downloading", "waiting", "seeding")
        await film.stop()
        film.change(error="the disk was full", pieces_have=0)
        await wait_state(house, film.id, "error")
        await wait_state(house, other, "downloading", "waiting", "seeding")
        await house.ask("PATCH", f"/films/{film.id}", {"paused": False})
        assert (await wait_state(house, film.id, "downloading", "seeding"))["error"] is None


def test_a_folder_is_named_by_the_torrent_alone():
    for name in ("film.mp4", "Ünïcode " * 9 + ".mkv", "...mp4", "-rf.mp4"):
        metainfo = parse_metainfo(torrent(name=name))
        folder = folder_name(metainfo)
        assert folder == folder_name(parse_metainfo(torrent(name=name)))
        assert len(folder.encode()) <= 100
        assert "/" not in folder
        assert not folder.startswith((".", "-", " "))
        assert folder.endswith(metainfo.info_hash.hex()[:12])


def test_holes_take_no_room(tmp_path):
    (tmp_path / "sub").mkdir()
    with (tmp_path / "sub" / "film").open("wb") as file:
        file.truncate(10**8)
        file.write(b"x" * 8192)
    assert 8192 <= stored_bytes(tmp_path) < 100_000
    assert stored_bytes(tmp_path / "none") == 0


@pytest.mark.slow
async def test_the_session_keeps_to_rates_schedule_and_the_days_upload(house):
    await house.open({"upload_rate": 500_000.0})
    native = house.library._session.native

    async def limits():
        await house.library._look()
        now = native.get_settings()
        return now["upload_rate_limit"], now["download_rate_limit"], now["unchoke_slots_limit"] > 0

    assert await limits() == (500_000, 0, True)
    await house.library.change_rules({"schedule": "otherwise upload 1Mbps / download 80kB/s"})
    assert await limits() == (125_000, 80_000, True)
    await house.library.change_rules({"schedule": "otherwise no uploads"})
    assert (await limits())[2] is False
    await house.library.change_rules({"schedule": "", "upload_day_bytes": 1000})
    assert await limits() == (500_000, 0, True)
    house.library.consumption.sent(1000)
    assert (await limits())[2] is False, "nobody is served any more until midnight"


async def test_a_disk_that_refuses_is_told_and_stops_nothing(house):
    await house.open()
    film = house.library.film((await house.add(torrent()))["id"])
    house.library._state._db.execute("PRAGMA query_only = ON")  # as a disk that is full
    status, answer = await house.ask("POST", "/films", torrent(1))
    assert status == 503
    assert "cannot be written" in answer["error"]
    film.change(position_seconds=1.0)
    await house.library._look()
    await house.library._look()
    assert len(house.library.notices) == 1
    house.library._state._db.execute("PRAGMA query_only = OFF")
    await house.library._look()
    assert house.library._state.films()[0].position_seconds == 1.0
