"""Running a trial in a process of its own, for a bounded time, and reading its one line."""

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Sequence
from typing import Any

from netem.backends.trial_mark import MARK
from netem.errors import NetemError

__all__ = ["run_trial_process"]


def run_trial_process(command: Sequence[str], *, seconds: float) -> dict[str, Any]:
    """Run a program that prints a marked JSON object, and return that.

    Whatever it started is gone when this returns or is interrupted.

    Raises:
        NetemError: it could not be started, took too long, or printed no such line.
    """
    try:
        process = subprocess.Popen(  # noqa: S603  (our own interpreter or the system's UML)
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
    except OSError as error:
        raise NetemError(f"cannot start {command[0]}: {error.strerror}") from error
    try:
        output, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired as error:
        raise NetemError(f"the trial did not end within {seconds:g} s") from error
    finally:
        # User-mode Linux runs its guest as several processes: end the whole group, always.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    return _read_result(output)


def _read_result(output: str) -> dict[str, Any]:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    for line in lines:
        _, mark, rest = line.partition(MARK)
        if mark:
            with contextlib.suppress(json.JSONDecodeError):
                return dict(json.loads(rest))
    last = lines[-1][:200] if lines else "nothing at all"
    raise NetemError(f"the trial ended without a result; its last words: {last}")
