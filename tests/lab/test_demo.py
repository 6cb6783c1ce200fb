"""The whole thing: real programs, a real film, a real swarm, small."""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

import pytest

from experiments.film import FilmSpec, make_film

pytestmark = [pytest.mark.lab, pytest.mark.slow]


@pytest.fixture(scope="module")
def film(tmp_path_factory) -> Path:
    """12 s at 1 Mb/s."""
    spec = FilmSpec(duration_seconds=12.0, bit_rate=125_000.0, width=320, height=180)
    return make_film(tmp_path_factory.mktemp("film") / "film.mp4", spec)


async def start(folder, *arguments):
    return await asyncio.create_subprocess_exec(
        str(Path(sys.executable).parent / "toast-lab"),
        "demo",
        *("--folder", str(folder), "--spacing", "2", *(str(argument) for argument in arguments)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=folder,
    )


def programs_in(folder):
    """Process ids and command lines of programs that run with anything of a folder."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command = entry.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:  # it ended meanwhile
            continue
        if str(folder) in command and int(entry.parent.name) != os.getpid():
            found[int(entry.parent.name)] = command
    return found


def pid_of(folder, name):
    (pid,) = (pid for pid, command in programs_in(folder).items() if f"/{name} " in command)
    return pid


async def shown(folder, *arguments):
    demo = await start(folder, *arguments)
    out, err = (part.decode() for part in await demo.communicate())
    assert demo.returncode == 0, err
    return out, json.loads(out.splitlines()[-1])


@pytest.mark.timeout(100)
async def test_three_viewers_share_a_film_and_nothing_is_left_behind(film, tmp_path):
    out, figures = await shown(tmp_path, "--film", film, "--viewers", 3)
    assert figures["viewers"] == 3
    assert figures["film_bytes"] == film.stat().st_size
    assert (figures["stalls"], figures["verified"]) == (0, True)
    assert (figures["frames_decoded"], figures["decode_errors"]) == (300, 0)
    assert figures["upload_cap_respected"] is True
    assert figures["receipts_agree"] is True
    assert figures["start_seconds_p95"] <= 1.0
    # Two of three could have had it from the first: some of that must have happened.
    assert 0.1 < figures["offload"] <= figures["bound"] < 0.67
    assert figures["peer_bytes"] > 0.1 * figures["viewers"] * figures["film_bytes"]
    assert figures["operator_bytes"] == sum(
        figures[f"operator_{part}_bytes"] for part in ("http", "seed", "tracker")
    )
    assert "viewer-3" in out
    assert list(tmp_path.iterdir()) == []
    assert programs_in(tmp_path) == {}


@pytest.mark.timeout(100)
async def test_seeding_viewers_stay_to_the_end_and_no_seed_is_needed(film, tmp_path):
    arguments = ("--film", film, "--viewers", 2, "--no-seed", "--behaviour", "seeding", "--json")
    out, figures = await shown(tmp_path, *arguments)
    assert len(out.splitlines()) == 1
    assert (figures["stalls"], figures["verified"]) == (0, True)
    assert figures["operator_seed_bytes"] == 0
    assert figures["peer_bytes"] > 0


@pytest.mark.timeout(60)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_an_interrupted_run_leaves_nothing_behind(film, tmp_path, number):
    demo = await start(tmp_path, "--film", film, "--viewers", 2)
    assert demo.stderr is not None
    while b"watching" not in await demo.stderr.readline():
        assert demo.returncode is None
    assert len(programs_in(tmp_path)) > 2
    demo.send_signal(number)
    _, err = await demo.communicate()
    assert demo.returncode == 130
    assert err.decode().splitlines()[-1] == "toast-lab: interrupted"
    assert list(tmp_path.iterdir()) == []
    assert programs_in(tmp_path) == {}


@pytest.mark.timeout(60)
async def test_a_viewer_that_dies_fails_the_run(film, tmp_path):
    demo = await start(tmp_path, "--film", film, "--viewers", 2)
    assert demo.stderr is not None
    while b"watching" not in await demo.stderr.readline():
        assert demo.returncode is None
    os.kill(pid_of(tmp_path, "viewer-1"), signal.SIGKILL)
    out, err = await demo.communicate()
    assert demo.returncode == 1
    assert "viewer-1 ended by signal 9" in err.decode().splitlines()[-1]
    assert out == b""
    assert list(tmp_path.iterdir()) == []
    assert programs_in(tmp_path) == {}
