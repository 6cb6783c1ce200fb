"""A daemon that is killed at any moment has lost nothing that it had confirmed."""

import asyncio
import hashlib

import aiohttp
import numpy as np
import pytest

from experiments.processes import Processes
from tests.lab.daemon_house import Daemon, id_of, torrent_of

pytestmark = [pytest.mark.lab, pytest.mark.slow, pytest.mark.timeout(600)]

TORRENTS = [torrent_of(number)[0] for number in range(12)]
IDS = [id_of(torrent) for torrent in TORRENTS]


class Account:
    """What the daemon has confirmed, and what it was asked when it died.

    For each film: the states in which it may be found. A state is None (not here) or its
    (position, priority); more than one are possible only where an answer did not come.
    """

    def __init__(self):
        self.possible = {film_id: {None} for film_id in IDS}
        self.confirmed = 0
        self._busy = set()

    def choose(self, rng):
        """A film that nobody is just asking about: (its number, whether it is here)."""
        free = [n for n, film_id in enumerate(IDS) if film_id not in self._busy]
        number = int(rng.choice(free))
        (state,) = self.possible[IDS[number]]
        return number, state

    async def ask(self, daemon, film_id, becomes, *request):
        """Ask for a change; only an answer makes it certain."""
        self._busy.add(film_id)
        self.possible[film_id] = self.possible[film_id] | {becomes}
        status, answer = await daemon.ask(*request)
        assert status in {200, 201, 204}, (status, answer)
        self.possible[film_id] = {becomes}
        self.confirmed += 1
        self._busy.discard(film_id)

    def check(self, films):
        """Every film is in a state in which it may be; from now on that is the one."""
        lost = []
        for film_id, possible in self.possible.items():
            film = films.get(film_id)
            found = None if film is None else (film["position_seconds"], film["priority"])
            if found not in possible:
                lost.append((film_id, found, possible))
            self.possible[film_id] = {found}
        self._busy.clear()
        return lost


async def load(daemon, account, rng):
    """Add, change and remove films until the daemon dies."""
    try:
        while True:
            number, state = account.choose(rng)
            film_id, path = IDS[number], f"/films/{IDS[number]}"
            if state is None:
                await account.ask(daemon, film_id, (0.0, 0), "POST", "/films", TORRENTS[number])
            elif rng.random() < 0.3:
                await account.ask(daemon, film_id, None, "DELETE", f"{path}?data=1")
            else:
                position, priority = float(rng.integers(1, 39)), int(rng.integers(-9, 9))
                change = {"position_seconds": position, "priority": priority}
                await account.ask(daemon, film_id, (position, priority), "PATCH", path, change)
    except (aiohttp.ClientError, OSError):
        return


async def test_nothing_confirmed_is_lost_when_it_is_killed(house, tmp_path, full, figures):
    """Also a download goes on, and its film ends up whole."""
    kills = 50 if full else 2
    rng = np.random.default_rng(7)
    account = Account()
    lost, ready = [], []
    await house.open()
    async with Processes(tmp_path / "daemons") as processes:
        daemon = Daemon(processes, tmp_path / "state")
        await daemon.start()
        await daemon.ask("POST", "/films", house.torrent.read_bytes())
        path = f"/films/{id_of(house.torrent.read_bytes())}"
        await daemon.ask("PATCH", path, {"priority": 9})  # before those that nobody has
        for kill in range(kills):
            loads = [asyncio.create_task(load(daemon, account, rng)) for _ in range(3)]
            await asyncio.sleep(float(rng.uniform(0.02, 1.0)))
            await daemon.kill()
            await asyncio.gather(*loads)
            if kill % 5 == 4:  # and one that has not come up yet
                await daemon.spawn()
                await asyncio.sleep(float(rng.uniform(0.2, 2.0)))
                await daemon.kill()
            facts = await daemon.start()
            ready.append(not facts["notices"])
            lost += account.check(await daemon.films())
        film_id = id_of(house.torrent.read_bytes())
        least = house.pieces if full else 1
        await daemon.wait_films(lambda films: films[film_id]["pieces_have"] >= least)
        (copy,) = (tmp_path / "state" / "films").glob(f"*/{house.film.name}")
        same = not full or hashlib.sha256(copy.read_bytes()).hexdigest() == house.sha256
        assert await daemon.stop() == 0
        await daemon.close_client()
    figures |= {
        "daemon_kills": kills,
        "daemon_changes_confirmed": account.confirmed,
        "daemon_changes_lost": len(lost),
        "daemon_starts_failed": ready.count(False),
        "daemon_film_whole": same,
    }
    assert lost == []
    assert all(ready)
    assert same
    assert account.confirmed > 5 * kills


async def test_a_second_daemon_is_refused_and_damage_is_set_aside(tmp_path, figures):
    """The films are taken up again from their .torrents, and their pieces are checked."""
    torrents = [torrent_of(number, size=900_000) for number in (50, 51)]
    async with Processes(tmp_path / "daemons") as processes:
        daemon = Daemon(processes, tmp_path / "state")
        await daemon.start()
        for torrent, _ in torrents:
            status, _ = await daemon.ask("POST", "/films", torrent)
            assert status == 201

        second = Daemon(processes, daemon.state)
        second.starts = 100
        assert await (await second.spawn()).wait_end() == 1
        assert "already uses" in second.child.last_words
        assert len(await daemon.films()) == 2, "the first one goes on"

        await daemon.stop()
        folders = sorted((daemon.state / "films").iterdir())
        for folder, (_, film) in zip(folders, torrents, strict=True):
            folder.mkdir(exist_ok=True)
            # The second film has lost a piece: of what is on the disk, only that is missing.
            whole = film if folder == folders[0] else film[:65536] + bytes(65536) + film[131072:]
            (folder / folder.name.rpartition("-")[0]).with_suffix(".mp4").write_bytes(whole)
        database = daemon.state / "state.db"
        database.write_bytes(b"\x00" * 300 + database.read_bytes()[300:])

        facts = await daemon.start()
        assert any("set aside" in notice for notice in facts["notices"])
        assert any("2 films were found" in notice for notice in facts["notices"])
        assert len(list(daemon.state.glob("state.db.corrupt-*"))) == 1
        films = await daemon.wait_films(
            lambda films: all(film["pieces_have"] >= 13 for film in films.values())
        )
        assert sorted(film["pieces_have"] for film in films.values()) == [13, 14]
        assert await daemon.stop() == 0

        facts = await daemon.start()
        assert facts["notices"] == [], "the next start is one like any other"
        assert len(await daemon.films()) == 2
        await daemon.stop()
        await daemon.close_client()
    figures["daemon_films_taken_up_again"] = len(films)
