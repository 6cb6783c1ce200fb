"""How mpv is opened and understood, with scripts in its place; the real one is in tests/interop."""

import json

import pytest

from tests.toast.gateway.players.listener import OPENING, Ears, program
from toast.gateway.players import Opening, PlayerError
from toast.gateway.players.mpv import MpvPlayer

MPV = """
import json, socket
open(folder + "/seen", "w").write(json.dumps(arguments))
(fd,) = [int(a.rpartition("/")[2]) for a in arguments if a.startswith("--input-ipc-client=fd://")]
talk = socket.socket(fileno=fd).makefile("rwb", 0)
said = open(folder + "/said", "w")
def hear(data=None, error="success"):
    command = json.loads(talk.readline())
    said.write(json.dumps(command["command"]) + "\\n")
    tell(request_id=command["request_id"], error=error, data=data)
def tell(*messages, **message):  # at once, so that nobody answers in between
    talk.write(b"".join(json.dumps(each).encode() + b"\\n" for each in (*messages, message)))
for _ in range(3):
    hear()
"""


async def played(tmp_path, code, opening=OPENING):
    """What was told while a script in mpv's place ran, and what it heard."""
    ears = Ears()
    try:
        await MpvPlayer([program(tmp_path, MPV + code, "mpv"), "--fs"]).play(opening, ears)
    finally:
        said = (tmp_path / "said").read_text().splitlines()
        ears.commands = [json.loads(line) for line in said]
    return ears


async def test_mpv_is_opened_with_everything(tmp_path):
    await played(tmp_path, "")
    words = json.loads((tmp_path / "seen").read_text())
    assert words[0] == "--fs"
    assert words[-2:] == ["--", OPENING.url]
    assert "--force-media-title=a film" in words
    assert "--start=12.500" in words
    assert "--network-timeout=0" in words


async def test_from_the_beginning_no_start_is_given(tmp_path):
    await played(tmp_path, "", Opening(url="http://u", playlist_url="p", title="t"))
    assert "--start" not in (tmp_path / "seen").read_text()


async def test_subtitles_are_added_and_the_first_is_shown(tmp_path):
    ears = await played(tmp_path, "tell(event='file-loaded')\nhear()\nhear(error='no')\n")
    added = [command for command in ears.commands if command[0] == "sub-add"]
    first, second = OPENING.subtitles
    assert added == [
        ["sub-add", first.url, "select", "English", "en"],
        ["sub-add", second.url, "auto", "Notes", ""],
    ]
    assert ears.troubles == ["mpv cannot read the subtitles 'Notes' (no)"]


async def test_positions_come_with_every_change(tmp_path):
    ears = await played(
        tmp_path,
        """
tell(event="file-loaded")
hear(); hear()
tell(event="playback-restart")
hear(1.25)
tell(event="property-change", id=1, name="pause", data=True)
hear(1.5)
faster = {"event": "property-change", "id": 2, "name": "speed", "data": 2}
tell(faster, event="property-change", id=1, name="pause", data=False)
hear(-0.01)
tell(event="seek")
hear(error="property unavailable")
tell(event="seek")
hear("nonsense")
""",
    )
    assert ears.positions == [(1.25, False, 1.0), (1.5, True, 1.0), (0.0, False, 2.0)]


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (
            "tell(event='end-file', reason='error', file_error='loading failed')\nsys.exit(2)",
            "mpv cannot play this film: loading failed$",
        ),
        (
            (
                "tell(event='log-message', prefix='stream', text='Failed to open http://u.\\n')\n"
                "tell(event='end-file', reason='error', file_error='loading failed')\nsys.exit(2)"
            ),
            "mpv cannot play this film: Failed to open http://u$",
        ),
        (
            (
                "tell(event='log-message', prefix='vd',"
                " text=\"Failed to initialize a decoder for codec 'av1'.\")\n"
                "tell(event='end-file', reason='error', file_error='something')\nsys.exit(2)"
            ),
            "mpv has no decoder for this film's video codec 'av1': try another player$",
        ),
        ("print('no screen')\nsys.exit(1)", "mpv ended with code 1: no screen$"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", "mpv died: Killed$"),
    ],
)
async def test_a_film_that_mpv_cannot_play_is_one_line(tmp_path, code, words):
    with pytest.raises(PlayerError, match=words) as error:
        await played(tmp_path, code)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("code", ["", "sys.exit(4)", "tell(event='end-file', reason='quit')"])
async def test_a_person_who_closes_mpv_ends_the_film(tmp_path, code):
    assert (await played(tmp_path, code)).troubles == []


async def test_sound_that_cannot_be_decoded_is_told_while_the_film_goes_on(tmp_path):
    ears = await played(
        tmp_path,
        "tell(event='log-message', prefix='ad',"
        " text=\"Failed to initialize a decoder for codec 'ac4'.\")\n",
    )
    assert ears.troubles == ["mpv has no decoder for this film's audio codec 'ac4'"]
