"""The process that starts a guest."""

import os
import subprocess
import sys

LAUNCH = [sys.executable, "-m", "netem.guest.launch", str(os.getpid())]
CORES = "import os; print(*os.sched_getaffinity(0))"


def launched(*words):
    return subprocess.run(
        [*LAUNCH, *words], capture_output=True, text=True, check=False, timeout=60
    )


def test_all_of_it_stays_on_one_core_that_we_may_have():
    (core,) = launched(sys.executable, "-c", CORES).stdout.split()
    assert int(core) in os.sched_getaffinity(0)


def test_it_ends_as_its_program_does():
    assert launched("sh", "-c", "exit 3").returncode == 3
