"""`toast status`, `list`, `add` and the others, against a real daemon in this process."""

import asyncio
import json
import sys

import pytest

from tests.toast.daemon.conftest import House, id_of, torrent
from toast.cli import main
from toast.cli.daemon import rules_from
from toast.common.errors import UsageError


@pytest.fixture
async def house(tmp_path):
    house = House(tmp_path / "state")
    yield await house.open()
    await house.close()


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run a command as a person does: (exit code, stdout, stderr)."""

    async def run(*arguments):
        words = ["toast", *map(str, arguments), "--state", str(tmp_path / "state")]
        monkeypatch.setattr(sys, "argv", words)

        def command():
            with pytest.raises(SystemExit) as stop:
                main()
            return stop.value.code

        code = await asyncio.to_thread(command)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "film.torrent"
    path.write_bytes(torrent())
    return path


@pytest.mark.slow
async def test_a_film_from_its_addition_to_its_end(house, run, file):
    film_id = id_of(torrent())
    code, out, _ = await run("add", file, "--mode", "queue", "--behaviour", "streaming")
    assert (code, out) == (0, f"{film_id[:8]} film-0.mp4 is added\n")

    code, out, _ = await run("list")
    assert code == 0
    assert out.splitlines()[1].split()[:4] == [film_id[:8], "film-0.mp4", "queued", "0%"]

    assert (await run("pause", film_id[:6]))[0] == 0
    assert (await run("resume", "FILM-0", "--priority", "3"))[0] == 0
    code, out, _ = await run("info", "film-0.mp4", "--json")
    film = json.loads(out)
    assert (film["priority"], film["behaviour"], film["state"]) == (3, "streaming", "queued")
    code, out, _ = await run("info", "film-0")
    assert "600 kB" in out

    code, out, _ = await run("remove", "film-0", "--data", "--json")
    assert json.loads(out) == {"id": film_id, "removed": True, "data": True}
    assert house.library.films() == []


@pytest.mark.slow
async def test_status_settings_and_the_page(house, run):
    code, out, _ = await run("status")
    assert code == 0
    assert "schedule" in out
    assert json.loads((await run("status", "--json"))[1])["films"] == 0

    changes = ("upload_rate=2Mbps", "disk_bytes=500GB", "seed_seconds=1:30:00", "seed_ratio=1.5")
    code, out, _ = await run("settings", *changes, "eject_watched=no", "most_active=2", "--json")
    shown = json.loads(out)
    assert (shown["upload_rate"], shown["disk_bytes"]) == (250_000.0, 500 * 10**9)
    assert (shown["seed_seconds"], shown["seed_ratio"]) == (5400.0, 1.5)
    assert (shown["eject_watched"], shown["most_active"]) == (False, 2)
    code, out, _ = await run("settings", "disk_bytes=none")
    assert house.library.rules.disk_bytes is None
    assert "2 Mb/s" in out

    code, out, _ = await run("open", "--print")
    assert out == f"{house.service.url}/?token={house.service.token.text}\n"


@pytest.mark.slow
async def test_refusals_are_one_line(house, run, file, tmp_path):
    cases = [
        (("info", "nothing"), "no film 'nothing'"),
        (("add", tmp_path / "none.torrent"), "cannot be read"),
        (("add", "ftp://example.org/film"), "only http and https"),
        (("settings", "colour=red"), "changes no setting"),
        (("settings", "most_active"), "changes no setting"),
        (("settings", "upload_rate=2"), "not a rate"),
        (("settings", "schedule=never"), "no rule of a schedule"),
    ]
    for words, reason in cases:
        code, out, err = await run(*words)
        assert (code in {1, 2}, out) == (True, ""), words
        assert reason in err.splitlines()[-1], words
    await run("add", file)
    code, _, err = await run("add", file)
    assert (code, err) == (1, "toast: film-0.mp4 is here already\n")
    (tmp_path / "two.torrent").write_bytes(torrent(1))
    await run("add", tmp_path / "two.torrent")
    assert "may be film-0.mp4" in (await run("pause", "film"))[2]


async def test_no_daemon_is_told_in_one_line(run):
    code, out, err = await run("list")
    assert (code, out) == (1, "")
    assert "start one with 'toast daemon'" in err
    assert err.count("\n") == 1


@pytest.mark.slow
async def test_a_daemon_that_has_gone_is_told_in_one_line(house, run):
    await house.close()
    code, _, err = await run("status")
    assert code == 1
    assert "no daemon answers at" in err


@pytest.mark.parametrize("kind", ["user", "system"])
async def test_unit_files_are_printed(run, kind):
    code, out, _ = await run("daemon", "--systemd-unit", kind)
    assert code == 0
    lines = out.splitlines()
    assert "Type=notify" in lines
    assert any(line.startswith("WatchdogSec=") for line in lines)
    assert "ExecStart=toast daemon" in lines
    assert {"[Unit]", "[Service]", "[Install]"} <= set(lines)


def test_settings_are_written_as_people_write_them():
    assert rules_from(("schedule=none", "behaviour=streaming")) == {
        "schedule": "",
        "behaviour": "streaming",
    }
    for wrong in ("eject_watched=maybe", "most_active=two", "seed_ratio=x", "=1"):
        with pytest.raises(UsageError):
            rules_from((wrong,))
