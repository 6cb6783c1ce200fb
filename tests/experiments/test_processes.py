"""Programs are heard, and none outlives its experiment."""

import asyncio
import os
import signal
import sys

import pytest

from experiments.errors import ProcessError
from experiments.processes import Processes, program

pytestmark = pytest.mark.slow  # each test starts an interpreter, which takes a tenth of a second

READY = 'print(\'{"event": "listening", "url": "http://127.0.0.1:1"}\', flush=True)\n'
WAIT = "import signal; signal.pause()\n"
DEAF = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"


def python(*lines):
    return [sys.executable, "-I", "-S", "-c", "".join(lines)]


def runs(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_a_program_is_ready_when_it_says_so_and_ends_with_the_block(tmp_path):
    async with Processes(tmp_path) as processes:
        child = await processes.start("server", python(READY, WAIT))
        ready = await child.wait_event("listening", timeout_seconds=10)
        assert ready["url"] == "http://127.0.0.1:1"
        assert child.event("listening") == ready
        assert child.returncode is None
        assert os.getpgid(child.pid) == child.pid != os.getpgid(0)
    assert child.returncode == -signal.SIGTERM
    assert not runs(child.pid)
    assert "listening" in (tmp_path / "server.log").read_text()


async def test_one_that_listens_is_told_things(tmp_path):
    echo = "import sys\nfor line in sys.stdin: print(line, end='', flush=True)\n"
    async with Processes(tmp_path) as processes:
        child = await processes.start("echo", python(echo), listens=True)
        child.tell({"event": "back", "n": 7})
        assert (await child.wait_event("back", timeout_seconds=10))["n"] == 7


async def test_events_are_told_in_order_and_other_output_is_not(tmp_path):
    heard = []
    lines = "print('hello'); print('[1]'); print('{\"event\": 3}')\n"
    many = 'for n in range(500): print(\'{"event": "tick", "n": %d}\' % n)\n'
    async with Processes(tmp_path) as processes:
        child = await processes.start("talker", python(lines, many), on_event=heard.append)
        assert await child.wait_end() == 0
    assert [event["n"] for event in heard] == list(range(500))


async def test_one_that_ends_before_it_is_ready_gives_its_last_words(tmp_path):
    dying = "import sys; sys.stderr.write('a\\nthe port is taken\\n\\n'); sys.exit(1)\n"
    async with Processes(tmp_path) as processes:
        child = await processes.start("server", python(dying))
        with pytest.raises(ProcessError, match=r"server ended with exit code 1 .*port is taken"):
            await child.wait_event("listening", timeout_seconds=10)
        with pytest.raises(ProcessError, match="exit code 1: the port is taken"):
            await child.wait_success()


async def test_of_several_errors_at_once_the_last_one_is_told_and_not_the_frame(tmp_path):
    dying = "raise ExceptionGroup('two', [OSError('no room'), OSError('too many files')])"
    async with Processes(tmp_path) as processes:
        child = await processes.start("worker", python(dying))
        with pytest.raises(ProcessError, match=r"exit code 1: OSError: too many files$"):
            await child.wait_success()


async def test_one_that_is_never_ready_is_given_up(tmp_path):
    async with Processes(tmp_path) as processes:
        child = await processes.start("server", python(READY, WAIT))
        with pytest.raises(ProcessError, match=r"did not say 'started' within 0.05 s"):
            await child.wait_event("started", timeout_seconds=0.05)


async def test_one_killed_by_a_signal_says_which(tmp_path):
    async with Processes(tmp_path) as processes:
        child = await processes.start("viewer", python(READY, WAIT))
        await child.wait_event("listening", timeout_seconds=10)
        child.signal(signal.SIGKILL)
        with pytest.raises(ProcessError, match="ended by signal 9"):
            await child.wait_success()


async def test_one_that_does_not_listen_is_killed(tmp_path):
    async with Processes(tmp_path) as processes:
        child = await processes.start("deaf", python(DEAF, READY, WAIT))
        await child.wait_event("listening", timeout_seconds=10)
        assert await child.stop(grace_seconds=0.05) == -signal.SIGKILL


async def test_all_end_when_the_experiment_fails(tmp_path):
    children = []

    async def experiment():
        async with Processes(tmp_path) as processes:
            children.extend([await processes.start(f"p{n}", python(WAIT)) for n in range(3)])
            raise RuntimeError("the experiment")

    with pytest.raises(RuntimeError, match="the experiment"):
        await experiment()
    assert not any(runs(child.pid) for child in children)


async def test_all_end_when_the_experiment_is_interrupted(tmp_path):
    started = asyncio.get_running_loop().create_future()

    async def experiment():
        async with Processes(tmp_path) as processes:
            child = await processes.start("p", python(READY, WAIT))
            started.set_result(child)
            await child.wait_end()

    running = asyncio.create_task(experiment())
    child = await started
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not runs(child.pid)


async def test_a_line_without_end_is_dropped_and_what_follows_is_heard(tmp_path):
    flood = "print('x' * 3_000_000, flush=True)\n"
    async with Processes(tmp_path) as processes:
        child = await processes.start("flood", python(flood, READY))
        await child.wait_event("listening", timeout_seconds=10)
    assert (tmp_path / "flood.log").stat().st_size < 1_100_000


async def test_what_cannot_be_started_is_one_clear_line(tmp_path):
    async with Processes(tmp_path) as processes:
        with pytest.raises(ProcessError, match="ghost cannot be started"):
            await processes.start("ghost", [str(tmp_path / "ghost")])
    with pytest.raises(ProcessError, match="not installed"):
        program("no-such-program")
    (tmp_path / "file").touch()
    async with Processes(tmp_path / "file") as processes:
        with pytest.raises(ProcessError, match="no log"):
            await processes.start("p", python(READY))


def test_our_own_programs_are_found():
    assert program("toast-lab").endswith("/toast-lab")
