"""Real swarms of the laboratory: whole runs of the real engine, and one that is cut short."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from experiments.bound import Behaviour
from experiments.errors import LabError
from experiments.real.engine import RealEngine
from experiments.real.house import run_folder
from experiments.real.memory import stored_bytes
from experiments.swarms.scenario import Arrivals, Film, Link, Scenario

pytestmark = [pytest.mark.slow, pytest.mark.lab]

SMALL = Scenario(
    name="small",
    viewers=6,
    film=Film(bit_rate_bps=1e6, duration_seconds=8.0, piece_bytes=64 * 1024),
    arrivals=Arrivals(spacing_seconds=1.5),
    links=(Link(upload_bps=1e6),),
    picker_options={"in_order_seconds": 4.0},
    seed_upload_bps=0,
)


def children(of=None):
    """Command lines of the programs that a process has started, by default this one."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
            command = (stat.parent / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except (OSError, ValueError):
            continue
        # Python's own helper of this process stays once something was started by `multiprocessing`.
        if parent == (of or os.getpid()) and "resource_tracker" not in command:
            found.append((int(stat.parent.name), command))
    return found


def test_a_small_swarm_of_real_viewers(tmp_path):
    told = []
    result = RealEngine(tmp_path).run(SMALL, told.append)

    assert result.engine == "real"
    assert result.viewers == 6
    assert result.stalls == 0
    assert result.verified
    assert result.upload_cap_respected
    assert 0.2 < result.offload < result.bound + 0.05
    assert result.peer_bytes > 0
    assert result.operator_bytes < 6 * SMALL.film.film_bytes
    assert result.total_bytes > 6 * SMALL.film.film_bytes
    assert 15.0 < result.wall_seconds < 25.0
    assert result.cpu_seconds > 0
    assert result.peak_memory_bytes > 50 << 20
    assert [sample[0] for sample in result.load] == sorted(sample[0] for sample in result.load)
    assert told[-1].arrived == 6
    assert told[-1].offload == pytest.approx(result.offload, abs=0.1)
    assert list(tmp_path.iterdir()) == []
    assert children() == []


def test_viewers_who_seed_share_one_film_and_stay_until_the_last_has_seen_it(tmp_path):
    scenario = SMALL.with_(behaviour=Behaviour.SEEDING, viewers=4)
    stored = []
    result = RealEngine(tmp_path).run(scenario, lambda _: stored.append(stored_bytes(tmp_path)))

    assert result.verified
    assert result.stalls == 0
    assert result.offload > 0.2
    assert 12.0 < result.wall_seconds < 25.0
    # In the end nobody has a copy of its own: there is the film, and the server's copy of it.
    assert stored[-1] < 3 * scenario.film.film_bytes < max(stored)


def test_a_worker_that_is_killed_ends_the_run_in_one_line(tmp_path, monkeypatch):
    runs, temporary = tmp_path / "runs", tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    killed = threading.Event()

    def kill(progress):
        if progress.arrived >= 2 and not killed.is_set():
            killed.set()
            worker = next(pid for pid, command in children() if "real.worker" in command)
            os.kill(worker, signal.SIGKILL)

    with pytest.raises(LabError, match=r"^worker-\d ended during the run \(exit code -9\): "):
        RealEngine(runs).run(SMALL, kill)
    assert killed.is_set()
    assert list(runs.iterdir()) == []
    assert '"event": "ready"' in next(temporary.glob("*/worker-1.log")).read_text()
    assert children() == []


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_all_and_leaves_nothing(tmp_path, how):
    def interrupt(progress):
        if progress.arrived:
            signal.raise_signal(how)

    with pytest.raises(KeyboardInterrupt):
        RealEngine(tmp_path).run(SMALL, interrupt)
    assert list(tmp_path.iterdir()) == []
    assert children() == []


_RUN = """
import sys
from pathlib import Path
from experiments.real.engine import RealEngine
from tests.lab.test_real_swarm import SMALL
RealEngine(Path(sys.argv[1])).run(SMALL, lambda told: print(told.arrived, flush=True))
"""


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs setpriv (util-linux)")
def test_a_run_that_is_killed_leaves_no_program_and_its_folder_goes_with_the_next(tmp_path):
    command = [sys.executable, "-c", _RUN, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as run:
        for line in run.stdout:
            if int(line):
                break
        left = [pid for pid, _ in children(run.pid)]
        run.kill()
    assert len(left) >= 3  # tracker, server and a worker at least
    deadline = time.monotonic() + 20.0
    while any(Path(f"/proc/{pid}").exists() for pid in left):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert len(list(tmp_path.iterdir())) == 1
    with run_folder(tmp_path) as folder:
        assert list(tmp_path.iterdir()) == [folder]


def test_a_run_that_is_stuck_names_who_is_late(tmp_path):
    # Nobody can have seen the film by then.
    engine = RealEngine(tmp_path, patience_seconds=-12.0)
    with pytest.raises(LabError, match=r"^the run is stuck: .* left: 0, 1, 2, 3, 4, 5 \(all that"):
        engine.run(SMALL)
    assert list(tmp_path.iterdir()) == []
    assert children() == []
