"""How far runs are: bars on a terminal, lines elsewhere."""

import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from experiments.figures.jobs import Job, Outcome
from experiments.swarms import engine

__all__ = ["SweepDisplay", "stand"]

_LINE_SECONDS = 5.0


def stand(now: engine.Progress, viewers: int) -> str:
    """How a run stands, in words."""
    left = max(0.0, now.end_seconds - now.seconds)
    offload = "-" if now.offload is None else f"{now.offload:.1%}"
    minutes, seconds = divmod(round(left), 60)
    return (
        f"{minutes}:{seconds:02d} left, {now.arrived} of {viewers} came, "
        f"{now.watching} watch, offload {offload}"
    )


class SweepDisplay:
    """Shows a sweep, while it is entered.

    Args:
        console: where.
        total: jobs to be done.
        lines: also off a terminal, how the runs stand, every few seconds.
    """

    def __init__(self, console: Console, total: int, *, lines: bool = False) -> None:
        self._console = console
        self._lines = lines
        self._told_at = 0.0
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            TextColumn("{task.fields[words]}"),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._all = self._bars.add_task(
            "all", total=total, words=f"0 of {total}", visible=total > 1
        )
        self._jobs: dict[str, TaskID] = {}
        self._total, self._ended = total, 0

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bars.stop()

    def tell(self, job: Job, now: engine.Progress | None) -> None:
        """Hear how far a job is."""
        if now is None:
            self._jobs[job.key] = self._bars.add_task(job.label, total=None, words="begins")
            return
        words = stand(now, int(job.scenario["viewers"]))
        self._bars.update(
            self._jobs[job.key], completed=now.seconds, total=now.end_seconds, words=words
        )
        is_due = time.monotonic() - self._told_at >= _LINE_SECONDS
        if self._lines and is_due and not self._console.is_terminal:
            self._told_at = time.monotonic()
            self._console.print(words, highlight=False, soft_wrap=True)

    def ended(self, outcome: Outcome) -> None:
        """Hear that a job is over."""
        self._ended += 1
        bar = self._jobs.pop(outcome.job.key, None)
        if bar is not None:
            self._bars.remove_task(bar)
        words = f"{self._ended} of {self._total}"
        self._bars.update(self._all, completed=self._ended, words=words)
        if outcome.done is None:
            word = "[red]failed[/red]" if outcome.is_possible else "cannot be done"
            said = f"{word}: {outcome.error}"
        else:
            result = outcome.done.result
            said = f"offload {result.offload:.1%} of {result.bound:.1%}, {result.stalls} stalls"
        if self._total > 1 or outcome.done is None:
            line = f"{words}  {outcome.job.label}: {said}"
            self._console.print(line, highlight=False, soft_wrap=True)
