"""What a daemon costs that has nothing to do, and what a hundred peers cost it."""

import asyncio
import os
import time
from pathlib import Path

import pytest

from experiments.processes import Processes, program
from tests.lab.daemon_house import Daemon, id_of, torrent_of
from toast.daemon.folders import folder_name
from toast.swarm import parse_metainfo

pytestmark = [pytest.mark.lab, pytest.mark.slow, pytest.mark.timeout(300)]

TICK = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid):
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / TICK


def anonymous_mb(pid):
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    (line,) = [line for line in lines if line.startswith("RssAnon")]
    return int(line.split()[1]) * 1024 / 1e6


async def stocked(processes, daemon, films, trackers):
    """A daemon that serves complete films in their swarms."""
    torrents = [torrent_of(number, size=2_000_000, trackers=trackers) for number in range(films)]
    for torrent, film in torrents:
        metainfo = parse_metainfo(torrent)
        folder = daemon.state / "films" / folder_name(metainfo)
        folder.mkdir(parents=True)
        (folder / metainfo.name).write_bytes(film)
    await daemon.start()
    for torrent, _ in torrents:
        assert (await daemon.ask("POST", "/films", torrent))[0] == 201
    await daemon.wait_films(
        lambda films: all(film["state"] == "seeding" for film in films.values()), seconds=60
    )
    return torrents


async def idle_percent(pid, seconds):
    """Share of one core that a process takes in the next so many seconds, in percent."""
    before, began = cpu_seconds(pid), time.monotonic()
    await asyncio.sleep(seconds)
    return 100 * (cpu_seconds(pid) - before) / (time.monotonic() - began)


async def test_ten_films_that_nobody_takes_cost_next_to_nothing(tmp_path, full, figures):
    """They are in their swarms, with a real tracker that they announce to."""
    async with Processes(tmp_path / "logs") as processes:
        tracker = await processes.start(
            "tracker", [program("toast-tracker"), "serve", "--port", "0", "--json"]
        )
        announce = (await tracker.wait_event("listening", timeout_seconds=60))["announce_url"]
        daemon = Daemon(processes, tmp_path / "state")
        await stocked(processes, daemon, 10, (announce,))
        await daemon.close_client()
        # Containers and posters are looked for first, so a short look may have to be repeated.
        await asyncio.sleep(10.0 if full else 1.0)
        percent = await idle_percent(daemon.child.pid, 25.0 if full else 3.0)
        for _ in range(0 if full else 5):
            percent = min(percent, await idle_percent(daemon.child.pid, 2.0))
            if percent < 2.0:
                break
        await daemon.stop()
    figures |= {"daemon_idle_films": 10, "daemon_idle_cpu_percent": round(percent, 2)}
    assert percent < 2.0


PEERS = """
import sys, time
import libtorrent as lt
# Each peer a session of its own, with the first tenth of the film: it stays and asks for the rest.
address, count, port, torrent, folder = sys.argv[1:]
count, port = int(count), int(port)
sessions = []
for number in range(count):
    session = lt.session({
        "listen_interfaces": f"127.0.1.{number + 1}:0",
        "outgoing_interfaces": f"127.0.1.{number + 1}",
        "enable_dht": False, "enable_lsd": False, "enable_upnp": False, "enable_natpmp": False,
        "alert_mask": 0, "aio_threads": 1, "hashing_threads": 1, "tick_interval": 500,
        "download_rate_limit": 4000,
    })
    rule = lt.ip_filter()
    rule.add_rule("0.0.0.0", "255.255.255.255", 1 << lt.session.global_peer_class_id)
    session.set_peer_class_filter(rule)
    params = lt.add_torrent_params()
    params.ti = lt.torrent_info(torrent)
    params.save_path = f"{folder}/{number}"
    params.flags &= ~(lt.torrent_flags.auto_managed | lt.torrent_flags.paused)
    params.trackers = []
    handle = session.add_torrent(params)
    handle.connect_peer((address, port))
    sessions.append((session, handle))
print('{"event": "there"}', flush=True)
while True:
    time.sleep(1)
"""


async def test_memory_with_many_peers_is_bounded(tmp_path, full, figures):
    """Real BitTorrent sessions that take a film, slowly, all at once."""
    peers = 100 if full else 12
    async with Processes(tmp_path / "logs") as processes:
        daemon = Daemon(processes, tmp_path / "state")
        ((torrent, _),) = await stocked(processes, daemon, 1, ("http://127.0.0.1:9/announce",))
        (tmp_path / "film.torrent").write_bytes(torrent)
        port = daemon.child.event("listening")["peers_port"]
        words = ("127.0.0.1", str(peers), str(port), str(tmp_path / "film.torrent"), str(tmp_path))
        crowd = await processes.start("peers", [program("python"), "-c", PEERS, *words])
        await crowd.wait_event("there", timeout_seconds=120)
        film_id = id_of(torrent)
        films = await daemon.wait_films(
            lambda films: films[film_id]["neighbours"] >= peers, seconds=90
        )
        connected, most = films[film_id]["neighbours"], 0.0
        for _ in range(20 if full else 3):
            most = max(most, anonymous_mb(daemon.child.pid))
            await asyncio.sleep(0.5)
        films = await daemon.films()
        sent = films[film_id]["uploaded_bytes"]
        await crowd.stop()
        await daemon.stop()
        await daemon.close_client()
    figures |= {"daemon_peers": connected, "daemon_rss_anon_mb": round(most, 1)}
    assert connected >= peers
    assert sent > 0
    assert most <= 150
