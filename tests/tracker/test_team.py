"""Several processes on one port: real ones, asked from many connections, and killed."""

import asyncio
import json
import os
import signal
import struct
import sys
from pathlib import Path

import pytest
from yarl import URL

from tests.tracker.asking import HASH, announce, until
from tests.tracker.test_udp import WISH, Asker
from tracker import udp_codec
from tracker.errors import TrackerError
from tracker.ports import bind_ports
from tracker.settings import TrackerSettings
from tracker.siblings import SiblingPlace
from tracker.team import serve_team
from tracker.worker import Orders

pytestmark = [pytest.mark.slow, pytest.mark.interop]

SETTINGS = TrackerSettings(port=0, share_seconds=0.02)


async def counts(team, times=12):
    """What a fresh connection each time is told of the swarm: some of each worker, by and by."""
    found = set()
    for number in range(times):
        answer = await announce(team, "seen", "&event=stopped", port=60_000 + number)
        found.add((answer[b"complete"], answer[b"incomplete"]))
    return found


async def know_all(team, number):
    async with asyncio.timeout(60):
        while await counts(team) != {(0, number)}:  # noqa: ASYNC110  (it is asked anew)
            await asyncio.sleep(0.05)


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def children_of(pid):
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


async def test_all_know_what_any_hears_over_http_and_udp():
    async with serve_team(SETTINGS, 3) as team:
        for number in range(20):
            await announce(team, f"{number}", port=7000 + number)
        url = URL(team.url)
        loop = asyncio.get_running_loop()
        answers = []
        for number in range(20):
            # A socket of its own each time: the system gives it to some worker.
            transport, asker = await loop.create_datagram_endpoint(
                Asker, remote_addr=(url.host, url.port)
            )
            answers.append(await asker.announce(info_hash=HASH, port=8000 + number))
            transport.close()
        assert {struct.unpack_from(">I", answer)[0] for answer in answers} == {udp_codec.ANNOUNCE}
        assert WISH.info_hash != HASH
        await know_all(team, 40)
        pids = team.pids
        assert len(pids) == 3
    assert not any(map(alive, pids))


async def test_one_that_is_killed_is_replaced_and_knows_everything(caplog):
    async with serve_team(SETTINGS, 2) as team:
        for number in range(30):
            await announce(team, f"{number}", port=7000 + number)
        await know_all(team, 30)
        victim, other = team.pids
        os.kill(victim, signal.SIGKILL)
        await until(lambda: len(team.pids) == 2 and victim not in team.pids)
        await know_all(team, 30)
        assert other in team.pids
    assert "worker 0 has ended (-9), and is started anew" in caplog.text


async def test_a_port_that_is_taken_is_said_once():
    async with serve_team(SETTINGS, 2) as team:
        taken = TrackerSettings(port=URL(team.url).port)
        with pytest.raises(TrackerError, match="in use"):
            await bind_ports(taken)


async def test_what_a_worker_cannot_do_is_the_teams_error(tmp_path):
    films = tmp_path / "films"
    films.write_text("no info-hash\n")
    with pytest.raises(TrackerError, match="films"):
        async with serve_team(SETTINGS, 2, films=films):
            pass


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
async def test_nobody_is_left_when_the_first_process_is_gone(number, tmp_path):
    folders = tmp_path / "folders"
    folders.mkdir()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", "from tracker.cli import main; main()", "serve", "--port", "0"),
        *("--json", "--workers", "2", "--snapshot", str(tmp_path / "swarms")),
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(folders)},
    )
    listening = json.loads(await process.stdout.readline())
    assert listening["announce_url"] == listening["url"] + "/announce"
    children = children_of(process.pid)
    assert len(children) == 2
    process.send_signal(number)
    await process.wait()
    await until(lambda: not any(map(alive, children)))
    assert process.returncode == (-9 if number == signal.SIGKILL else 0)
    assert (tmp_path / "swarms").exists()
    await until(lambda: not any(folders.iterdir()))


def test_orders_survive_the_way(tmp_path):
    orders = Orders(
        SETTINGS,
        SiblingPlace(tmp_path, 1, 2, b"s" * 32),
        films=tmp_path / "films",
        store="redis://127.0.0.1/0",
        log=tmp_path / "log",
    )
    assert Orders.from_json(orders.to_json()) == orders
