"""What is to be verified, and in which order: a queue with a few workers."""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Iterator

from vodserver.seed.offer import Offer

__all__ = ["Verifier"]

Check = Callable[[Offer, int], Awaitable[None]]


class Verifier:
    """Verifies extents a few at a time: first what peers lack now, then what is new, then spares.

    The reads are the store's, at background priority: who wants to watch goes first.

    Args:
        check: verifies an extent that no replica is chosen for.
        check_spares: verifies the other replicas of an extent.
    """

    def __init__(self, check: Check, check_spares: Check) -> None:
        self._check = check
        self._check_spares = check_spares
        # Of a disk that is lost there may be very many: none is looked for among all the others.
        self._urgent: OrderedDict[tuple[int, int], Offer] = OrderedDict()
        self._new: deque[Offer] = deque()
        self._spare: deque[Offer] = deque()
        self._line: Iterator[tuple[Check, Offer, int]] = iter(())
        self._sparing: Offer | None = None
        self._some = asyncio.Event()

    def hasten(self, offer: Offer, number: int) -> None:
        """Verify an extent before all else."""
        self._urgent.setdefault((id(offer), number), offer)
        self._some.set()

    def begin(self, offer: Offer) -> None:
        """Verify a title for the first time; titles are verified one after another."""
        self._new.append(offer)
        self._some.set()

    def add_spares(self, offer: Offer) -> None:
        """Verify the replicas of a title that are not read, when there is nothing else to do."""
        if offer not in self._spare:
            self._spare.append(offer)
        self._some.set()

    async def work(self) -> None:
        """Verify, for ever."""
        while True:
            job = self._next()
            if job is None:
                self._some.clear()
                await self._some.wait()
                continue
            check, offer, number = job
            await check(offer, number)

    def _next(self) -> tuple[Check, Offer, int] | None:
        if self._urgent:
            (_, number), offer = self._urgent.popitem(last=False)
            return self._check, offer, number
        if self._sparing is not None and self._new:
            self._spare.appendleft(self._sparing)  # what is verified already is passed over then
            self._line, self._sparing = iter(()), None
        while True:
            job = next(self._line, None)
            if job is not None:
                return job
            if self._new:
                offer = self._new.popleft()
                self._line, self._sparing = _jobs(self._check, offer), None
            elif self._spare:
                self._sparing = self._spare.popleft()
                self._line = _jobs(self._check_spares, self._sparing)
            else:
                self._sparing = None
                return None


def _jobs(check: Check, offer: Offer) -> Iterator[tuple[Check, Offer, int]]:
    for number in range(len(offer.chosen)):
        yield check, offer, number
