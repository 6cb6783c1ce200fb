"""Players that are told everything on their command line: real processes, played by scripts."""

import asyncio
import json
import os
from pathlib import Path

import pytest

from tests.toast.gateway.players.listener import OPENING, Ears, program
from toast.gateway.players import Opening, PlayerError
from toast.gateway.players.command import CommandPlayer, any_words, ffplay_words, vlc_words

NOTE = "import json\nopen(folder + '/seen', 'w').write(json.dumps(arguments))\n"


async def seen(tmp_path, *command, words=any_words, opening=OPENING):
    """The arguments that a program gets."""
    player = CommandPlayer("player", [program(tmp_path, NOTE), *command], words)
    await player.play(opening, Ears())
    return json.loads((tmp_path / "seen").read_text())


async def test_a_program_is_given_the_url_last(tmp_path):
    assert await seen(tmp_path, "--loud") == ["--loud", OPENING.url]


async def test_or_wherever_it_wants_it(tmp_path):
    command = ("--at={start}", "{url}", "{playlist}", "--name", "{title}", "{else}")
    assert await seen(tmp_path, *command) == [
        *("--at=12.500", OPENING.url, OPENING.playlist_url, "--name", "a film", "{else}")
    ]


async def test_what_stands_in_a_title_is_not_filled_in_again(tmp_path):
    opening = Opening(url="http://u", playlist_url="p", title="{url}")
    assert await seen(tmp_path, "{title}", opening=opening) == ["{url}"]


def test_vlc_is_given_start_title_and_subtitles():
    assert vlc_words(OPENING) == [
        "--play-and-exit",
        "--meta-title=a film",
        "--start-time=12.500",
        "--input-slave=" + "#".join(each.url for each in OPENING.subtitles),
        OPENING.url,
    ]
    bare = vlc_words(Opening(url="u", playlist_url="p", title="t"))
    assert bare[1:] == ["--meta-title=t", "u"]


def test_ffplay_is_given_start_and_title():
    assert ffplay_words(OPENING)[-5:] == ["a film", "-ss", "12.500", "-i", OPENING.url]
    assert "-ss" not in ffplay_words(Opening(url="u", playlist_url="p", title="t"))


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("sys.exit(3)", "ended with code 3$"),
        (
            "print('first', flush=True); print('no codec', file=sys.stderr); sys.exit(1)",
            "code 1: first / no codec$",
        ),
        ("print('\\x1b[31mred\\rlast\\n\\n'); sys.exit(1)", r"code 1: \[31mred / last$"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "died: Segmentation fault"),
        ("sys.stdout.write('x' * 10_000_000); sys.exit(1)", "code 1: x{200}$"),
    ],
)
async def test_a_player_that_fails_is_one_line(tmp_path, code, words):
    player = CommandPlayer("player", [program(tmp_path, code)], any_words)
    with pytest.raises(PlayerError, match=words) as error:
        await player.play(OPENING, Ears())
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("content", ["#!/nowhere/at/all\n", "no program\n"])
async def test_one_that_cannot_be_started_is_one_line(tmp_path, content):
    path = tmp_path / "player"
    path.write_text(content)
    path.chmod(0o755)
    with pytest.raises(PlayerError, match="player cannot be started"):
        await CommandPlayer("player", [str(path)], any_words).play(OPENING, Ears())


async def test_much_that_is_said_does_not_hold_it_up(tmp_path):
    player = CommandPlayer(
        "player", [program(tmp_path, "for _ in range(10_000): print('x' * 100)\n")], any_words
    )
    async with asyncio.timeout(10):
        await player.play(OPENING, Ears())


STUBBORN = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = os.fork()
os.mkfifo(folder + "/ready") if child else None
open(folder + f"/pid-{os.getpid()}", "w").close()
time.sleep(60)
"""


def alive(pid):
    """Whether a process runs: one that nobody has waited for yet is dead, too."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.slow
async def test_a_viewing_that_ends_takes_the_player_and_its_children_along(tmp_path, monkeypatch):
    """Also those that do not heed SIGTERM."""
    monkeypatch.setattr("toast.gateway.players.process._GRACE_SECONDS", 0.1)
    player = CommandPlayer("player", [program(tmp_path, STUBBORN)], any_words)
    playing = asyncio.create_task(player.play(OPENING, Ears()))
    async with asyncio.timeout(10):
        while len(pids := list(tmp_path.glob("pid-*"))) < 2:  # noqa: ASYNC110 - other processes
            await asyncio.sleep(0.02)
    numbers = [int(path.name.removeprefix("pid-")) for path in pids]
    playing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await playing
    async with asyncio.timeout(5):
        while any(alive(pid) for pid in numbers):  # noqa: ASYNC110 - other processes
            await asyncio.sleep(0.02)


async def test_a_player_has_no_terminal_of_ours(tmp_path):
    """Ctrl-C is for us to hear, and what it reads is nothing."""
    code = "import os\nopen(folder + '/seen', 'w').write(f'{os.getsid(0)} {sys.stdin.read()!r}')\n"
    await CommandPlayer("player", [program(tmp_path, code)], any_words).play(OPENING, Ears())
    session, read = (tmp_path / "seen").read_text().split()
    assert int(session) != os.getsid(0)
    assert read == "''"
