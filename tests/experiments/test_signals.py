"""A program of the laboratory can be told to end however it was started."""

import signal
import subprocess
import sys

import pytest

PROGRAM = """
import signal, sys
signal.signal(signal.SIGINT, signal.{before})
from experiments.signals import interrupt_on_sigterm
interrupt_on_sigterm()
try:
    print("ready", flush=True)
    sys.stdin.read()
except KeyboardInterrupt:
    print("cleaned up", flush=True)
"""


@pytest.mark.parametrize("before", ["SIG_IGN", "SIG_DFL", "default_int_handler"])
def test_sigterm_cleans_up_whatever_became_of_ctrl_c(before):
    command = [sys.executable, "-c", PROGRAM.format(before=before)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGTERM)
        assert process.communicate(timeout=20)[0] == "cleaned up\n"
