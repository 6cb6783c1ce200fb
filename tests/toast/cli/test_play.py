"""`toast play` as a person meets it: the real program, with scripts as players."""

import json

import pytest

from tests.toast.cli.test_watch import program, server, torrent  # noqa: F401 - fixtures

pytestmark = pytest.mark.slow

_NOTE = '#!/bin/sh\necho "$@" > seen\nexit ${CODE:-0}\n'


@pytest.fixture
def played(program, server, tmp_path):  # noqa: F811 - the fixture
    """Play a film in a script that notes its arguments: (events, arguments, exit code, stderr)."""
    player = tmp_path / "player"
    player.write_text(_NOTE)
    player.chmod(0o755)
    path = tmp_path / "film.torrent"
    path.write_bytes(torrent(seconds=300.0, origins=(server.url,)))

    async def played(*options, player=f"{player} {{start}} {{url}} {{playlist}}"):
        words = ("play", path, "--json", "--player", player, "--listen", "127.48.1.1")
        playing = await program(*words, *options)
        code, out, error = await playing.end()
        events = [json.loads(line) for line in out.splitlines()]
        seen = tmp_path / "seen"
        return events, seen.read_text().split() if seen.exists() else None, code, error

    return played


async def test_a_film_begins_where_it_was_left(played):
    """Where --start says, the first time; then there, unless it says otherwise."""
    _, (start, url, playlist), code, _ = await played("--start", "1:30")
    assert (start, code) == ("90.000", 0)
    assert playlist.rpartition("/")[0] == url.rpartition("/")[0]
    events, (start, *_), _, _ = await played()
    assert start == "90.000"
    assert {"event": "resumed", "position_seconds": 90.0} in events
    events, (start, *_), _, _ = await played("--start", "0")
    assert start == "0.000"
    assert [event for event in events if event["event"] == "resumed"] == []
    _, (start, *_), _, _ = await played()
    assert start == "0.000"  # it was left at its beginning


async def test_a_player_that_fails_is_one_line_and_exit_code_1(played, monkeypatch):
    monkeypatch.setenv("CODE", "3")
    _, seen, code, error = await played()
    assert seen is not None
    assert (code, error) == (1, "toast: player ended with code 3\n")


async def test_a_player_that_is_not_there_is_told_at_once(played):
    events, seen, code, error = await played(player="no-such-player --fs")
    assert (events, seen, code) == ([], None, 2)
    assert error.splitlines()[-1].startswith("toast: there is no player 'no-such-player' here")
