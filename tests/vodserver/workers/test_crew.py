"""Real worker processes on one port, before a store that this process has."""

import asyncio
import contextlib
import hashlib
import os
import shutil
import signal
import socket
from pathlib import Path

import aiohttp
import numpy as np
import pytest

from tests.vodserver.workers.conftest import drop_caches, replicas_of
from vodserver.errors import ServeError, ServeUsageError
from vodserver.serve import serve
from vodserver.settings import ServeSettings
from vodserver.store import add_film
from vodserver.store.removal import remove_title
from vodserver.workers import Crew
from vodserver.workers.frames import encode

pytestmark = [pytest.mark.slow, pytest.mark.timeout(60)]


@contextlib.asynccontextmanager
async def crew_of(store, *, workers=2, **settings):
    crew = Crew(store, ServeSettings(port=0, workers=workers, seed=False, **settings))
    await crew.start()
    try:
        yield crew
    finally:
        pids = crew.pids
        await crew.close()
        assert not [pid for pid in pids if is_there(pid)]


def is_there(pid):
    return Path(f"/proc/{pid}").exists()


def fresh(url):
    """A session that makes a new connection for each request: the kernel deals them out."""
    return aiohttp.ClientSession(url, connector=aiohttp.TCPConnector(force_close=True, limit=0))


def shares(crew):
    """How many connections each worker was dealt so far."""
    return [counts.accepted for counts in crew.office.tally._now.values()]


async def until(holds, seconds=10):
    async with asyncio.timeout(seconds):
        while not holds():  # noqa: ASYNC110 - other processes wake nobody
            await asyncio.sleep(0.02)


async def test_films_are_whole_from_cold_disks_over_every_worker_and_each_byte_is_counted(
    home, clock_film
):
    """Extents are read by this process only, once each though both workers want them."""
    film = clock_film.read_bytes()
    drop_caches(*replicas_of(home))
    with home.open() as store:
        async with crew_of(store) as crew, fresh(crew.url) as http:

            async def get(path):
                async with http.get(path) as answer:
                    return await answer.read()

            bodies = await asyncio.gather(*(get("/titles/clock/content") for _ in range(24)))
            assert {hashlib.sha256(body).hexdigest() for body in bodies} == {home.title.sha256}
            await until(lambda: sum(shares(crew)) == 24)
            assert len(shares(crew)) == 2
            assert min(shares(crew)) > 0
            await asyncio.sleep(0.5)
            async with http.get("/status") as answer:
                status = await answer.json()
            head = status["http_bytes_sent"] - 24 * len(film)
            assert 24 * 200 < head < 24 * 600
            read = sum(disk["read_bytes"] for disk in status["disks"])
            assert len(film) <= read <= 2 * len(film)
            async with http.get("/metrics") as answer:
                text = await answer.text()
    assert (
        f'vod_http_content_bytes_total{{route="/titles/{{id}}/content"}} {24 * len(film)}' in text
    )


async def test_every_worker_sees_titles_come_and_go_at_once(home, small_film):
    with home.open() as store:
        async with crew_of(store) as crew, fresh(crew.url) as http:

            async def ids():
                async def one():
                    async with http.get("/titles") as answer:
                        return tuple(title["id"] for title in await answer.json())

                return set(await asyncio.gather(*(one() for _ in range(24))))

            assert await ids() == {("clock",)}
            title = add_film(store, small_film, rng=np.random.default_rng(1))
            store.include(title)
            await asyncio.sleep(0.2)
            assert await ids() == {("clock", title.id)}
            remove_title(store.catalog, store.disk_paths, "clock")
            store.exclude("clock")
            await asyncio.sleep(0.2)
            assert await ids() == {(title.id,)}
            async with http.get("/healthz") as answer:
                assert answer.status == 200
            await until(lambda: min(shares(crew)) > 0)


async def test_a_disk_that_goes_is_no_loss_and_health_is_known_to_every_worker(home, clock_film):
    film = clock_film.read_bytes()
    with home.open() as store:
        async with crew_of(store) as crew, fresh(crew.url) as http:
            shutil.rmtree(home.disks[1])
            store.detach_disk(1)
            for _ in range(6):
                async with http.get("/titles/clock/content") as answer:
                    assert await answer.read() == film
            for number in (0, 2, 3):
                store.detach_disk(number)
            for _ in range(6):
                async with http.get("/healthz") as answer:
                    assert answer.status == 503
                async with http.get("/titles/clock/content") as answer:
                    assert answer.status == 503


async def test_a_worker_that_is_killed_is_replaced_and_what_it_sent_stays_counted(home):
    with home.open() as store:
        async with crew_of(store) as crew, fresh(crew.url) as http:
            for _ in range(8):
                async with http.get("/titles/clock/content") as answer:
                    await answer.read()
            await asyncio.sleep(0.5)
            before = crew.office.tally.bytes_sent
            victim, other = crew.pids
            os.kill(victim, signal.SIGKILL)
            await until(lambda: victim not in crew.pids)

            async with http.get("/titles/clock/content") as answer:  # the other one serves on
                assert len(await answer.read()) == home.title.film_bytes
            await until(lambda: len(crew.pids) == 2 and len(crew.office.tally._now) == 2)
            assert other in crew.pids
            assert crew.office.lost == 1
            await asyncio.sleep(0.5)
            async with http.get("/status") as answer:
                status = await answer.json()
            sent = status["http_bytes_sent"] - before
            assert home.title.film_bytes < sent < home.title.film_bytes + 1000


def test_what_a_worker_is_told_has_room_in_a_message_however_many_replicas_are_bad(
    pristine, monkeypatch
):
    with pristine.open() as store:
        bad = {("0123456789abcdef", number, 7) for number in range(200_000)}
        monkeypatch.setattr(store, "bad_replicas", lambda: bad)
        crew = Crew(store, ServeSettings(port=0, workers=2, seed=False))
        terms = crew.terms(crew._settings)
        assert len(encode({"tell": "terms", "with": terms.to_json()})) < 1_000_000
        assert terms.bad < bad


async def test_a_worker_that_hangs_is_replaced(home, monkeypatch, caplog):
    """Stopped, it keeps its socket and the connections that the kernel deals to it."""
    monkeypatch.setattr("vodserver.workers.crew._LISTEN_SECONDS", 0.1)
    with home.open() as store:
        async with crew_of(store) as crew:
            victim, other = crew.pids
            os.kill(victim, signal.SIGSTOP)
            monkeypatch.setattr("vodserver.workers.crew._SILENT_SECONDS", 1.5)
            await until(lambda: victim not in crew.pids)
            monkeypatch.undo()  # a new one imports everything before it says something
            await until(lambda: len(crew.pids) == 2)
            assert other in crew.pids
            assert not is_there(victim)
            await until(lambda: len(crew.office.tally._now) == 2)
    assert "says nothing any more" in caplog.text


async def test_seed_and_workers_serve_one_store(home):
    """As `serve` starts them: the seed is the main process's, and any worker tells of it."""
    stop, listening = asyncio.Event(), asyncio.get_running_loop().create_future()
    with home.open() as store:
        settings = ServeSettings(host="127.32.7.1", port=0, workers=2)
        task = asyncio.create_task(serve(store, settings, ready=listening.set_result, stop=stop))
        told = await listening
        assert told.url.startswith("http://127.32.7.1:")
        assert told.seed_port > 0
        async with fresh(told.url) as http:
            for _ in range(6):
                async with http.get("/status") as answer:
                    status = await answer.json()
                assert status["seed"]["port"] == told.seed_port
        stop.set()
        await task


async def test_streams_are_admitted_for_all_workers_together(home):
    with home.open() as store:
        async with crew_of(store, streams_limit=3) as crew, fresh(crew.url) as http:
            answers = [await http.get("/titles/clock/stream") for _ in range(12)]
            codes = sorted(answer.status for answer in answers)
            assert codes == [200] * 3 + [503] * 9
            refused = next(answer for answer in answers if answer.status == 503)
            assert int(refused.headers["Retry-After"]) >= 1
            async with http.get("/status") as answer:
                status = await answer.json()
            assert (status["streams"], status["streams_refused"]) == (3, 9)
            for answer in answers:
                answer.close()
            admission = crew.office.streams.admission
            await until(lambda: admission.statistics().streams == 0)


async def test_it_closes_in_time_while_streams_run(home):
    """By the workers themselves: what they sent to the last is known."""
    with home.open() as store:
        crew = Crew(store, ServeSettings(port=0, workers=2, shutdown_seconds=0.5))
        await crew.start()
        async with fresh(crew.url) as http:
            answers = [await http.get("/titles/clock/stream") for _ in range(4)]
            assert {answer.status for answer in answers} == {200}
            began = asyncio.get_running_loop().time()
            await crew.close()
            assert asyncio.get_running_loop().time() - began < 2.0
            for answer in answers:
                answer.close()
        told = crew.office.tally.total()
        assert (told.accepted, told.connections) == (4, 0)
        assert told.bytes_sent > 4 * 5 * home.title.film_bytes / home.title.duration * 0.9


async def test_a_port_that_is_taken_is_refused_and_nothing_is_started(home):
    with home.open() as store, socket.create_server(("127.0.0.1", 0)) as taken:
        crew = Crew(store, ServeSettings(port=taken.getsockname()[1], workers=2))
        with pytest.raises(ServeError, match="--port"):
            await crew.start()
        assert crew.pids == []
        assert store._listeners == []


async def test_what_a_worker_refuses_is_told_as_if_there_were_one_process(home, tmp_path):
    """With its kind: it was a mistake in the settings."""
    with home.open() as store:
        crew = Crew(store, ServeSettings(port=0, workers=2, tls_cert=tmp_path / "none"))
        with pytest.raises(ServeUsageError, match="--tls-key"):
            await crew.start()
        assert crew.pids == []


async def test_one_that_cannot_start_is_an_error_and_no_loop(home, monkeypatch):
    monkeypatch.setattr("sys.executable", "/bin/false")
    with home.open() as store:
        crew = Crew(store, ServeSettings(port=0, workers=2))
        with pytest.raises(ServeError, match="exit code 1"):
            await crew.start()
        monkeypatch.setattr("sys.executable", "/no/such/program")
        crew = Crew(store, ServeSettings(port=0, workers=2))
        with pytest.raises(ServeError, match="cannot be started"):
            await crew.start()


async def test_reload_reaches_every_worker(home, tmp_path):
    """A log that was renamed is begun anew by both, and no entry is lost."""
    log = tmp_path / "access.log"
    with home.open() as store:
        async with crew_of(store, access_log=str(log)) as crew, fresh(crew.url) as http:

            async def ask():
                for _ in range(16):
                    await (await http.get("/titles")).read()

            await ask()
            await until(lambda: len(log.read_text().splitlines()) == 16)
            log.rename(tmp_path / "old.log")
            crew.reload()
            await asyncio.sleep(0.2)
            await ask()
        assert len(log.read_text().splitlines()) == 16
        assert len((tmp_path / "old.log").read_text().splitlines()) == 16


async def test_workers_hear_nothing_of_what_a_terminal_sends_them(home):
    with home.open() as store:
        async with crew_of(store) as crew, fresh(crew.url) as http:
            pids = crew.pids
            for pid in pids:
                os.kill(pid, signal.SIGINT)
                os.kill(pid, signal.SIGHUP)
            await (await http.get("/titles")).read()
            await asyncio.sleep(0.2)
            assert crew.pids == pids
