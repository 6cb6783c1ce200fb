"""The state of a disk, in the words of its operator: facts in, state out.

A probe tells what a disk said just now; a state is what that means, with what was known before.
The first of these that holds is the state:

absent      another disk, or none, is where it should be
failing     it does not answer, or fails at what it is asked
read-only   the last thing written to it was refused
full        it has no room for what it would have to take
slow        its reads take several times as long as those of the other disks
ok          none of these
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from statistics import median_low
from typing import Final, Literal

from vodserver.store.catalog import DiskRow
from vodserver.store.upkeep.settings import UpkeepSettings

__all__ = ["Condition", "DiskFacts", "DiskHealth", "Health", "Shown", "shown_state", "slow_disks"]

Health = Literal["ok", "slow", "full", "read-only", "failing", "absent"]
"""What a disk can do now."""

Shown = Literal[Health, "draining", "lost", "retired"]
"""What a disk can do now, or what is being done with it."""

WriteOutcome = Literal["untried", "done", "full", "read-only", "failed"]
"""How an attempt to write ended."""

_FAILURES: Final = 5
"""So many failed reads in a time in which few succeeded: that is no rotten file."""

_SLOW_FLOOR_SECONDS: Final = 0.02
"""Reads that take less are fast, whatever the others' take: an idle array is no race."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskFacts:
    """What a disk said when it was asked.

    Attributes:
        present: whether this very disk is there; None if it did not say.
        fault: why it did not say, or what it answered to the attempt to write.
        free_bytes: room that this process may use; 0 if unknown.
        total_bytes: size of its file system; 0 if unknown.
        device: number of its file system: directories on the same one share its room.
        write: how the attempt to write ended, if there was one.
    """

    present: bool | None
    fault: str = ""
    free_bytes: int = 0
    total_bytes: int = 0
    device: int = 0
    write: WriteOutcome = "untried"


@dataclass(frozen=True, slots=True)
class Condition:
    """The state of a disk.

    Attributes:
        health: the state.
        reason: why, for people; empty for ok.
        since: when it came to be so, seconds on the clock of the observations.
        free_bytes: room at the last answer.
        total_bytes: size at the last answer.
        device: number of its file system.
    """

    health: Health
    reason: str = ""
    since: float = 0.0
    free_bytes: int = 0
    total_bytes: int = 0
    device: int = 0

    @property
    def can_take(self) -> bool:
        """Whether replicas may be written to it."""
        return self.health in {"ok", "slow"}


@dataclass(slots=True)
class DiskHealth:
    """The health of one disk, from one observation to the next.

    Args:
        settings: the limits.
    """

    settings: UpkeepSettings
    condition: Condition = Condition("ok")
    _facts: DiskFacts = field(default=DiskFacts(present=True))
    _slow: bool = False
    _write: WriteOutcome = "untried"
    _write_fault: str = ""
    _failed_at: float | None = None
    _failure: str = ""
    _reads: tuple[int, int] | None = None
    _streak: tuple[int, int] = (0, 0)
    """Reads that were done and that failed since most of them succeeded."""

    def observe(
        self, facts: DiskFacts, now: float, *, reads: tuple[int, int] = (0, 0)
    ) -> Condition:
        """Take in what a probe found.

        Args:
            facts: what it found.
            now: seconds, never decreasing.
            reads: reads that were done, and reads that failed, since the disk was attached.

        Returns:
            The state from now on, which `condition` is too.
        """
        if facts.write != "untried":
            self._write, self._write_fault = facts.write, facts.fault
        self._note_failures(facts, reads, now)
        self._facts = facts
        return self._conclude(now)

    def note_slow(self, slow: bool, now: float) -> Condition:
        """Take in whether it is among `slow_disks`; returns the state from now on."""
        self._slow = slow
        return self._conclude(now)

    def _conclude(self, now: float) -> Condition:
        facts = self._facts
        health, reason = self._judge(facts, now)
        since = self.condition.since if health == self.condition.health else now
        known = facts if facts.total_bytes else self.condition
        self.condition = Condition(
            health, reason, since, known.free_bytes, known.total_bytes, known.device
        )
        return self.condition

    def _note_failures(self, facts: DiskFacts, reads: tuple[int, int], now: float) -> None:
        if facts.present is None:
            self._failed_at, self._failure = now, facts.fault or "it does not answer"
        elif facts.write == "failed":
            self._failed_at, self._failure = now, facts.fault
        done, failed = (new - old for new, old in zip(reads, self._reads or reads, strict=True))
        self._reads = reads
        if done < 0 or failed < 0:  # it was attached anew
            self._streak = 0, 0
            return
        done, failed = self._streak[0] + done, self._streak[1] + failed
        self._streak = (0, 0) if done > failed else (done, failed)
        if self._streak[1] >= _FAILURES:
            self._failed_at, self._failure = now, f"{failed} reads failed, {done} did not"
            self._streak = 0, 0

    def _judge(self, facts: DiskFacts, now: float) -> tuple[Health, str]:
        if facts.present is False:
            self._failed_at = None  # when it is back it is another story
            return "absent", facts.fault
        if self._failed_at is not None and now - self._failed_at < self.settings.recovery_seconds:
            return "failing", self._failure
        if self._write == "read-only":
            return "read-only", self._write_fault
        if self._write == "full" or (
            facts.total_bytes > 0 and (facts.free_bytes < self.settings.full_below_bytes)
        ):
            return "full", self._write_fault if self._write == "full" else "little room is left"
        if self._slow:
            return "slow", "its reads take much longer than those of the other disks"
        return "ok", ""


def slow_disks(
    service_seconds: Mapping[int, float], ratio: float, *, slow_before: Iterable[int] = ()
) -> set[int]:
    """The disks whose reads take much longer than those of the others.

    Args:
        service_seconds: mean time of a recent read, by disk; 0 for a disk that made none.
        ratio: so many times the time of the middle disk is slow; one that was slow before is so
            until it takes less than half of that.
        slow_before: those that were.
    """
    measured = {disk: seconds for disk, seconds in service_seconds.items() if seconds > 0}
    if len(measured) < 2:
        return set()
    before = set(slow_before)
    middle = median_low(measured.values())
    return {
        disk
        for disk, seconds in measured.items()
        if seconds > _SLOW_FLOOR_SECONDS
        and seconds >= middle * (ratio / 2 if disk in before else ratio)
    }


def shown_state(row: DiskRow, condition: Condition | None) -> Shown:
    """One word for what a disk can do and what is being done with it.

    Args:
        row: what it is to the store.
        condition: what it can do; None if nobody has looked.
    """
    if row.state in {"lost", "retired"}:
        return "lost" if row.state == "lost" else "retired"
    if condition is not None and condition.health in {"absent", "failing"}:
        return condition.health
    if row.state == "draining":
        return "draining"
    return "ok" if condition is None else condition.health
