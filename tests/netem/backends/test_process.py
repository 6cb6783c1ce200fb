import os
import select
import sys
import time

import pytest

from netem.backends.process import run_trial_process
from netem.backends.trial_mark import MARK
from netem.errors import NetemError


def python(code):
    return [sys.executable, "-S", "-c", code]


def test_the_marked_line_is_found_among_a_consoles_noise():
    code = f"print('boot'); print('> {MARK}{{\"works\": true}}'); print('halt')"
    assert run_trial_process(python(code), seconds=10) == {"works": True}


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("print('Kernel panic')", "its last words: Kernel panic"),
        ("pass", "its last words: nothing at all"),
        (f"print('{MARK}{{half')", "ended without a result"),
        ("print('x' * 10_000)", "its last words: x{200}$"),
    ],
)
def test_a_trial_without_result_is_an_error_with_its_last_words(code, said):
    with pytest.raises(NetemError, match=said):
        run_trial_process(python(code), seconds=10)


def test_a_program_that_is_not_there_is_named():
    with pytest.raises(NetemError, match="cannot start /nonexistent/kernel: No such file"):
        run_trial_process(["/nonexistent/kernel"], seconds=1)


@pytest.mark.slow
def test_a_trial_that_hangs_is_ended_with_all_its_children(tmp_path):
    """A guest is several processes: none may survive."""
    note = tmp_path / "child"
    code = (
        "import os, time, pathlib\n"
        "child = os.fork()\n"
        f"if child: pathlib.Path({str(note)!r}).write_text(str(child))\n"
        "time.sleep(60)"
    )
    began = time.monotonic()
    with pytest.raises(NetemError, match=r"did not end within 2 s"):
        run_trial_process(python(code), seconds=2)
    assert time.monotonic() - began < 20
    # A killed process closes its files a moment before it counts as ended.
    assert _ends(int(note.read_text()))


def _ends(process, *, within=5.0):
    """Whether a process ends in time; one that is dead and waits for its parent has ended."""
    try:
        watched = os.pidfd_open(process)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([watched], [], [], within)[0])
    finally:
        os.close(watched)


def test_a_running_process_does_not_end():
    assert not _ends(os.getpid(), within=0.0)
