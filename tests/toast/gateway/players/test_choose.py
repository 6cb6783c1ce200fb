"""Which player a word on the command line stands for."""

import pytest

from tests.toast.gateway.players.listener import program
from toast.common.errors import UsageError
from toast.gateway.players import AUTO, choose_player, find_player
from toast.gateway.players.mpv import MpvPlayer


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Install programs: nothing else is there."""
    monkeypatch.setenv("PATH", str(tmp_path))
    return lambda *names: [program(tmp_path, "", name) for name in names]


def test_none_is_none(installed):
    installed("mpv")
    assert choose_player("none") is None


def test_auto_is_the_best_that_is_there(installed):
    assert choose_player("auto") is None
    for name, shown in (("ffplay", "ffplay"), ("vlc", "VLC"), ("mpv", "mpv")):
        installed(name)
        assert find_player().name == shown
    assert AUTO == ("mpv", "vlc", "ffplay")


def test_a_known_program_is_known_by_its_name_wherever_it_lies(installed):
    (path,) = installed("mpv")
    assert isinstance(choose_player(f"'{path}' --fs --volume=50"), MpvPlayer)
    installed("cvlc")
    assert choose_player("cvlc --fullscreen").name == "VLC"


def test_any_program_will_do(installed):
    installed("my player")
    assert choose_player("'my player' --loud").name == "my player"


@pytest.mark.parametrize(
    ("text", "words"),
    [("mpv", "no player 'mpv' here"), ("", "which player"), ("'mpv", "no command")],
)
def test_what_is_not_there_is_said(installed, text, words):
    installed("other")
    with pytest.raises(UsageError, match=words):
        choose_player(text)
