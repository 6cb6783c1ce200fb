"""What a tracker keeps over restarts, and what it reads while it runs."""

import pytest

from tests.tracker.asking import HASH, announce, until
from tracker import upkeep
from tracker.passkeys import Passkeys
from tracker.server import serve_tracker
from tracker.settings import TrackerSettings

SETTINGS = TrackerSettings(port=0, snapshot_seconds=0.01)


async def test_a_tracker_that_stops_knows_its_swarms_when_it_starts_again(tmp_path):
    file = tmp_path / "swarms"
    async with serve_tracker(TrackerSettings(port=0), 1, snapshot=file) as server:
        await announce(server)
    async with serve_tracker(TrackerSettings(port=0), 1, snapshot=file) as server:
        assert server.statistics()["peers"] == 1


async def test_a_snapshot_is_written_while_it_runs(tmp_path):
    file = tmp_path / "swarms"
    async with serve_tracker(SETTINGS, 1, snapshot=file) as server:
        await announce(server)
        size = 18 + 32 + 36 + 16
        await until(lambda: file.exists() and file.stat().st_size >= size)
    assert [path.name for path in tmp_path.iterdir()] == ["swarms"]


async def test_a_broken_snapshot_is_no_reason_not_to_start(tmp_path, caplog):
    file = tmp_path / "swarms"
    file.write_bytes(b"half")
    async with serve_tracker(TrackerSettings(port=0), 1, snapshot=file) as server:
        assert server.statistics()["peers"] == 0
    assert "is not used" in caplog.text


async def test_a_place_that_cannot_be_written_is_said(tmp_path, caplog):
    file = tmp_path / "nowhere" / "swarms"
    async with serve_tracker(TrackerSettings(port=0), 1, snapshot=file):
        pass
    assert "cannot be written" in caplog.text


async def test_the_list_of_films_is_read_again_when_it_changes(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(upkeep, "_LOOK_SECONDS", 0.01)
    films = tmp_path / "films"
    films.write_text("")
    async with serve_tracker(TrackerSettings(port=0), 1, films=films) as server:
        refusal = await announce(server)
        assert refusal[b"failure reason"] == b"this tracker does not serve this film"
        assert refusal[b"retry in"] == 5
        films.write_text("nonsense")
        await until(lambda: "the films stay what they were" in caplog.text)
        films.write_text(HASH.hex())
        await until(lambda: HASH in (server.service.swarms._permitted or ()))
        assert b"peers" in await announce(server)


async def test_announces_want_a_passkey_where_there_is_a_secret():
    passkeys = Passkeys(b"x" * 16)
    async with serve_tracker(TrackerSettings(port=0), 1, passkeys=passkeys) as server:
        refusal = await announce(server)
        assert refusal[b"retry in"] == b"never"
        assert b"peers" in await announce(server, extra=f"&passkey={passkeys.give('alice')}")


@pytest.mark.parametrize("kind", ["file", "folder"])
async def test_without_its_list_a_tracker_does_not_start(tmp_path, kind):
    films = tmp_path / "films"
    if kind == "folder":
        films.mkdir()
        (films / "x.torrent").write_bytes(b"")
    with pytest.raises(Exception, match="films"):
        async with serve_tracker(TrackerSettings(port=0), 1, films=films):
            pass
