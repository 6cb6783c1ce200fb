"""The processes that host a run's viewers, as the one that started them sees them."""

import asyncio
from collections.abc import Sequence
from dataclasses import fields
from functools import partial
from typing import Any

from experiments.errors import LabError
from experiments.processes import Child, Event, Processes
from experiments.swarms.result import ViewerRow
from experiments.swarms.scenario import Scenario

__all__ = ["Crew"]

_READY_SECONDS = 300.0  # a score of them, on a guest's one slow processor
_COUNTS = ("arrived", "watching", "played", "from_peers", "received")


class Crew:
    """So many workers, and what they tell.

    Args:
        scenario: what they carry out.
        commands: what starts each of them.

    Attributes:
        rows: what the viewers who have left came to, by number.
        pauses: (seconds of the run, how long): when a worker stood still.
        everyone_played: is set when all have seen the film.
        everyone_left: is set when all have left.
    """

    def __init__(self, scenario: Scenario, commands: Sequence[list[str]]) -> None:
        self.rows: dict[int, ViewerRow] = {}
        self.pauses: list[tuple[float, float]] = []
        self.everyone_played = asyncio.Event()
        self.everyone_left = asyncio.Event()
        self._scenario = scenario
        self._numbers = [
            list(range(nth, scenario.viewers, len(commands)))
            for nth in range(min(len(commands), scenario.viewers))
        ]
        self._commands = commands
        self._told: list[dict[str, int]] = [dict.fromkeys(_COUNTS, 0) for _ in self._numbers]
        self._late = [0.0 for _ in self._numbers]
        self._children: list[Child] = []

    async def start(self, processes: Processes) -> None:
        """Start all of them, and wait until they listen.

        Raises:
            ProcessError: one does not.
        """
        for nth in range(len(self._numbers)):
            child = await processes.start(
                f"worker-{nth + 1}",
                self._commands[nth],
                on_event=partial(self._hear, nth),
                listens=True,
            )
            self._children.append(child)
        for child in self._children:
            await child.wait_event("ready", timeout_seconds=_READY_SECONDS)

    def begin(self, hosts: list[str], job: dict[str, Any]) -> None:
        """Deal the viewers out.

        Args:
            hosts: an address for each viewer.
            job: what is the same for all workers: see `experiments.real.worker.Job`.
        """
        for child, numbers in zip(self._children, self._numbers, strict=True):
            own = {"viewers": numbers, "hosts": [hosts[number] for number in numbers]}
            child.tell({"do": "host", **job, **own})

    def stop(self) -> None:
        """Have every viewing end."""
        for child in self._children:
            child.tell({"do": "stop"})

    @property
    def pids(self) -> list[int]:
        """Of the workers."""
        return [child.pid for child in self._children]

    def count(self, what: str) -> int:
        """A count that workers tell: arrived, watching, played, from_peers or received."""
        return sum(told[what] for told in self._told)

    @property
    def late_seconds(self) -> float:
        """How late a worker's event loop was, 19 times out of 20 at most; of the worst worker."""
        return max(self._late)

    @property
    def offload(self) -> float | None:
        """So far, by what viewers received."""
        received = self.count("received")
        return self.count("from_peers") / received if received else None

    def late(self) -> list[int]:
        """The viewers who have not left yet."""
        return [number for number in range(self._scenario.viewers) if number not in self.rows]

    async def guard(self) -> None:
        """Fails when a worker ends before its viewers have left; ends when all have.

        Raises:
            LabError: with its last words.
        """
        ends = [asyncio.ensure_future(child.wait_end()) for child in self._children]
        try:
            for end in asyncio.as_completed(ends):
                await end
                for child, numbers in zip(self._children, self._numbers, strict=True):
                    if child.returncode is not None and not self.rows.keys() >= set(numbers):
                        how = f"{child.name} ended during the run (exit code {child.returncode})"
                        raise LabError(f"{how}: {child.last_words}")
        finally:
            for end in ends:
                end.cancel()

    def _hear(self, nth: int, event: Event) -> None:
        if event["event"] == "progress":
            self._told[nth] = {name: int(event[name]) for name in _COUNTS}
            self._late[nth] = float(event["late_seconds"])
            if self.count("played") == self._scenario.viewers:
                self.everyone_played.set()
        elif event["event"] == "pause":
            self.pauses.append((float(event["seconds"]), float(event["lasted_seconds"])))
        elif event["event"] == "row":
            row = ViewerRow(**{field.name: event[field.name] for field in fields(ViewerRow)})
            self.rows[row.number] = row
            if len(self.rows) == self._scenario.viewers:
                self.everyone_left.set()
