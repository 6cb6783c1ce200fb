"""Jobs over the cores of this machine, in processes; and over machines, through Dask."""

import contextlib
import multiprocessing
import os
import signal
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from multiprocessing import connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from experiments.compiled.loading import environment
from experiments.errors import LabError
from experiments.figures.engines import MakeEngine
from experiments.figures.jobs import Job, Outcome, Outcomes, Runner, Tell, carry_out, failure
from experiments.figures.records import Done

__all__ = ["CpuGate", "Gate", "run_in_processes", "run_on_dask"]

_LOOK_SECONDS: Final = 1.0
_GRACE_SECONDS: Final = 30.0
_INTERRUPT: Final = (signal.SIGINT,)

Gate = Callable[[int], bool]
"""Whether another job may begin beside so many."""


def run_in_processes(
    make_engine: MakeEngine,
    most: int,
    may_begin: Gate = lambda _: True,
    variables: Mapping[str, str] = MappingProxyType({}),
) -> Runner:
    """Do up to `most` jobs at once, each in a process; `make_engine` must be picklable.

    Args:
        make_engine: of what does them.
        most: how many at once.
        may_begin: whether another may begin now.
        variables: what the processes have in their environment besides.
    """

    def run(jobs: Sequence[Job], tell: Tell) -> Outcomes:
        waiting = deque(jobs)
        idle: list[_Worker] = []
        busy: dict[connection.Connection, _Worker] = {}
        try:
            while waiting or busy:
                while waiting and len(busy) < most and may_begin(len(busy)):
                    worker = idle.pop() if idle else _Worker(make_engine, variables)
                    busy[worker.pipe] = worker
                    worker.begin(waiting[0])
                    tell(waiting.popleft(), None)
                for pipe in connection.wait(list(busy), _LOOK_SECONDS):
                    assert isinstance(pipe, connection.Connection)
                    worker = busy[pipe]
                    kind, what = worker.hear()
                    if kind == "progress":
                        tell(worker.job, what)
                        continue
                    del busy[pipe]
                    if kind == "died":
                        worker.end()
                    else:
                        idle.append(worker)
                    job = worker.job
                    yield Outcome(job, what) if kind == "done" else failure(job, what)
        finally:
            for worker in busy.values():
                worker.interrupt()
            for worker in (*idle, *busy.values()):
                worker.end()

    return run


class _Worker:
    """A process that does one job after another."""

    job: Job

    def __init__(self, make_engine: MakeEngine, variables: Mapping[str, str]) -> None:
        # A fresh interpreter: what this one has running (threads, sockets) is none of its business.
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self._process: BaseProcess = context.Process(
            target=_serve, args=(theirs, make_engine), daemon=False
        )
        # Blocked, an interrupt waits until the process is ready for it, and is not lost.
        signal.pthread_sigmask(signal.SIG_BLOCK, _INTERRUPT)
        try:
            with environment(variables):
                self._process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _INTERRUPT)
        theirs.close()

    def begin(self, job: Job) -> None:
        self.job = job
        with contextlib.suppress(OSError):  # it has died: we shall hear of it
            self.pipe.send(job.scenario)

    def hear(self) -> tuple[str, Any]:
        try:
            kind, what = self.pipe.recv()
        except (EOFError, OSError):
            words = "its process ended in the middle; what it wrote above says why"
            return "died", LabError(words)
        return str(kind), what

    def interrupt(self) -> None:
        if self._process.is_alive() and self._process.pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._process.pid, signal.SIGINT)

    def end(self) -> None:
        self.pipe.close()  # who waits for a job, waits no more
        self._process.join(_GRACE_SECONDS)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self._process.close()


def _serve(pipe: connection.Connection, make_engine: MakeEngine) -> None:
    """The life of a worker."""
    os.setpgid(0, 0)  # a terminal's Ctrl-C does not come here by itself: we are told
    signal.signal(signal.SIGINT, signal.default_int_handler)  # it may have been ignored so far
    with contextlib.suppress(KeyboardInterrupt, EOFError, BrokenPipeError):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _INTERRUPT)
        engine = make_engine()
        while True:
            scenario = pipe.recv()
            try:
                done = carry_out(engine, scenario, lambda now: pipe.send(("progress", now)))
            except LabError as error:
                pipe.send(("failed", error))
            else:
                pipe.send(("done", done))


class CpuGate:
    """Lets another run of real programs begin while the processor has room for it.

    With a share of the processor for every run that is on, one more must fit under `most`. Runs
    grow while viewers come, so nothing is concluded sooner than `settle_seconds` after the last
    one began.
    """

    def __init__(
        self,
        settle_seconds: float,
        most: float = 0.7,
        *,
        read: Callable[[], tuple[float, float]] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settle_seconds = settle_seconds
        self._most = most
        self._read = read or read_cpu
        self._clock = clock
        self._last_began = clock()
        self._seen = (clock(), self._read())
        self._share = 0.0

    def __call__(self, running: int) -> bool:
        """Whether another may begin beside so many. If so it is taken to do so."""
        now = self._clock()
        self._look(now)
        if running:
            if now - self._last_began < self._settle_seconds:
                return False
            if self._share * (running + 1) / running > self._most:
                return False
        self._last_began = now
        return True

    def _look(self, now: float) -> None:
        """Measure the share of the processor in use, over ten seconds or more."""
        then, (busy_then, all_then) = self._seen
        if now - then < 10.0:
            return
        busy, total = self._read()
        self._share = (busy - busy_then) / max(total - all_then, 1e-9)
        self._seen = (now, (busy, total))


def read_cpu(stat: Path = Path("/proc/stat")) -> tuple[float, float]:
    """Ticks that all cores have been busy, and all ticks: since the machine began (proc(5))."""
    ticks = [int(word) for word in stat.read_text(encoding="ascii").split("\n", 1)[0].split()[1:9]]
    idle = ticks[3] + ticks[4]
    return sum(ticks) - idle, sum(ticks)


def run_on_dask(make_engine: MakeEngine, address: str) -> Runner:
    """Do jobs on the workers of a Dask scheduler, which must have this project installed."""
    try:
        import distributed  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise LabError(
            "--dask needs Dask: pip install 'toast-vod[lab-dask]', here and on its workers"
        ) from error

    def run(jobs: Sequence[Job], tell: Tell) -> Outcomes:
        try:
            client = distributed.Client(address, timeout=10, set_as_default=False)
        except (OSError, ValueError) as error:
            raise LabError(f"there is no Dask scheduler at {address}: {error}") from error
        with client:
            # Not pure: Dask must not take two runs for one by their arguments.
            futures = {
                client.submit(_run_far, make_engine, job.scenario, pure=False): job for job in jobs
            }
            try:
                for job in jobs:
                    tell(job, None)
                for future in distributed.as_completed(futures, loop=client.loop):
                    job = futures[future]
                    wrong = future.exception()
                    if wrong is None:
                        yield Outcome(job, future.result())
                    else:
                        yield failure(job, wrong)
            finally:
                client.cancel(list(futures), force=True)

    return run


def _run_far(make_engine: MakeEngine, scenario: dict[str, Any]) -> Done:
    """Do a job on another machine."""
    return carry_out(make_engine(), scenario, lambda _: None)
