"""What a replica scheduler is, and the list of those there are."""

from dataclasses import dataclass
from typing import Final, Protocol

from toast.common.registry import Registry
from vodserver.errors import StoreUsageError

__all__ = ["SCHEDULERS", "DiskLoad", "ReadRequest", "Scheduler"]


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """One read that somebody waits for.

    Attributes:
        id: chosen by the caller, never used twice.
        disks: disks that hold a good replica, in placement order, >= 1.
        size: bytes that the disk will read for it, prefetch included.
        background: scrub, verification, repair: served on a disk only while no other request
            waits for that disk.
    """

    id: int
    disks: tuple[int, ...]
    size: int
    background: bool = False


@dataclass(frozen=True, slots=True)
class DiskLoad:
    """What a disk has to do, and how fast it does such things.

    Attributes:
        waiting: requests that may be served here; where the replica is chosen late, a request
            counts on each of its disks.
        waiting_bytes: bytes of those.
        outstanding: whether it reads something now.
        busy_seconds: how long the outstanding read has lasted; 0 without one.
        expected_delay: seconds until a foreground request of the usual size, submitted now and
            served here, would be done.
        access_seconds: learned mean access time t_a; that of all disks for one not read yet.
        rate: learned transfer rate r_d, bytes per second; likewise.
    """

    waiting: int
    waiting_bytes: int
    outstanding: bool
    busy_seconds: float
    expected_delay: float
    access_seconds: float
    rate: float


class Scheduler(Protocol):
    """Decides which disk reads what, and when: at most one read is outstanding on a disk.

    The caller asks `next` for every idle disk after each `submit`, `finish`, `withdraw` and
    `join`. `now` is any clock in seconds that does not go back. Among equals (all foreground, or
    all background) a disk serves in the order of submission.

    Attributes:
        name: what settings call the policy.
    """

    @property
    def name(self) -> str: ...  # noqa: D102 - documented in the class

    def submit(self, request: ReadRequest, now: float) -> None:
        """Take in a request. Disks of it that are not there are passed over.

        Raises:
            ValueError: none of its disks is there, or a request of this id waits already.
        """
        ...

    def next(self, disk: int, now: float) -> ReadRequest | None:
        """What an idle disk reads now; that becomes its outstanding read.

        Returns:
            None: nothing for it; nor ever for a disk that is not there.

        Raises:
            ValueError: the disk is not idle.
        """
        ...

    def wake(self, disk: int, now: float) -> float | None:
        """When to ask `next` for an idle disk again, at the latest, if nothing happens before.

        Only a policy that may leave a disk idle while requests wait for it has something to say.
        """
        ...

    def finish(self, disk: int, now: float, *, learn: bool = True) -> None:
        """The outstanding read of a disk is over; without one nothing happens.

        Args:
            disk: which.
            now: when.
            learn: whether the time that it took says how fast the disk is; not so if it failed.
        """
        ...

    def cancel(self, request_id: int) -> bool:
        """A waiting request is wanted no more.

        Returns:
            False: it does not wait; it is outstanding, done or unknown.
        """
        ...

    def withdraw(self, disk: int) -> list[ReadRequest]:
        """A disk is gone: it is offered nothing any more, and its outstanding read is forgotten.

        Returns:
            The waiting requests that no other disk of theirs can serve, oldest first; they wait
            no longer. Those that another can serve go on waiting.
        """
        ...

    def join(self, disk: int) -> None:
        """A disk is there, new or returned; nothing is known of its speed."""
        ...

    def load(self, disk: int, now: float) -> DiskLoad:
        """What a disk has to do.

        Raises:
            KeyError: it is not there.
        """
        ...


SCHEDULERS: Final[Registry[Scheduler]] = Registry("scheduling policy", StoreUsageError)
"""Every policy by its name; each takes `disks`, the numbers of those that are there."""
