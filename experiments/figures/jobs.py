"""One run as a job that can be done anywhere: here, in another process, on another machine."""

import contextlib
import os
import platform
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache, partial
from typing import Any

from experiments.errors import LabError, ScenarioError
from experiments.evidence import checkout, commit_of
from experiments.figures.engines import MakeEngine
from experiments.figures.records import Done
from experiments.swarms.engine import Engine, Progress, Say
from experiments.swarms.text import from_plain

__all__ = [
    "Job",
    "Outcome",
    "Outcomes",
    "Runner",
    "Tell",
    "carry_out",
    "commit",
    "failure",
    "machine",
    "run_here",
]


@dataclass(frozen=True, slots=True)
class Job:
    """A run to be made.

    Attributes:
        key: what it stands for.
        label: what people call it.
        scenario: as plain data.
    """

    key: str
    label: str
    scenario: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of a job.

    Attributes:
        job: which one.
        done: what came of it; None if it failed.
        error: why, in a line.
        is_possible: false if this engine cannot do such a scenario; then that is no failure.
    """

    job: Job
    done: Done | None
    error: str = ""
    is_possible: bool = True


Tell = Callable[[Job, Progress | None], None]
"""Is told how far a job is; None: it has begun."""
Outcomes = Generator[Outcome, None, None]
Runner = Callable[[Sequence[Job], Tell], Outcomes]
"""Does jobs, and gives each outcome as soon as it is there. Closed early, it ends what it began."""


def carry_out(engine: Engine, scenario: dict[str, Any], say: Say) -> Done:
    """Do a job.

    Raises:
        LabError: it failed.
    """
    date = datetime.now(UTC).isoformat(timespec="seconds")
    load = round(os.getloadavg()[0], 2)
    result = engine.run(from_plain(scenario), say)
    return Done(result=result, commit=commit(), date=date, machine={**machine(), "load": load})


def failure(job: Job, error: BaseException) -> Outcome:
    """The end of a job that ended with an error."""
    return Outcome(job, None, str(error), is_possible=not isinstance(error, ScenarioError))


def run_here(make_engine: MakeEngine) -> Runner:
    """Do jobs one after the other in this process."""

    def run(jobs: Sequence[Job], tell: Tell) -> Outcomes:
        engine = make_engine()
        for job in jobs:
            tell(job, None)
            try:
                done = carry_out(engine, job.scenario, partial(tell, job))
            except LabError as error:
                yield failure(job, error)
            else:
                yield Outcome(job, done)

    return run


@lru_cache(maxsize=1)
def commit() -> str:
    """Of the code that runs here; "unknown" where it is installed without its checkout."""
    with contextlib.suppress(LabError):
        return commit_of(checkout())
    return "unknown"


def machine() -> dict[str, Any]:
    """What runs here: kernel and cores."""
    kernel = f"{platform.system()} {platform.release()} {platform.machine()}"
    return {"kernel": kernel, "cores": os.cpu_count() or 1}
