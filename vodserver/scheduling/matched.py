"""Choose late, and for all disks and requests at once."""

from itertools import islice
from typing import ClassVar, Final

from vodserver.scheduling.assignment import assign
from vodserver.scheduling.base import SCHEDULERS
from vodserver.scheduling.engine import DiskState, Waiting
from vodserver.scheduling.lazy import Lazy

__all__ = ["Matched"]

_WINDOW: Final = 16
"""Requests that are planned for at a time: bounds the cost of a decision. All that wait would take
another half of a hundredth off the longest waits."""

_OLDEST: Final = 4
"""Of a disk so many count at the most, so that the plan sees further than one disk's queue."""

_TURNS: Final = 3
"""Reads of a disk that are planned; who gets none of them waits on."""

_LATER: Final = 6
"""Whoever is given no turn is taken to be read so many reads' time after the first."""

_OVERTAKEN: Final = 4
"""Nobody is overtaken by what came later by more than so many reads' time."""


class Matched(Lazy):
    """`Lazy`, but a disk that becomes free takes what is best for all who wait, not for it alone.

    The next three turns of each disk are given to the requests that wait there, near this disk and
    oldest first, so that the sum of the squares of their times, from submission to the end of the
    read, is the least that there can be (an assignment of requests to turns); the disk takes what
    has its first turn. It is planned anew each time, since meanwhile others came. What a disk
    leaves to faster ones, and for how long, is as it is in `Lazy`; so is what is taken where the
    plan has nothing for this disk.
    """

    name: ClassVar[str] = "matched"

    def _pick(self, disk: int, state: DiskState, offers: list[Waiting]) -> Waiting:
        oldest = offers[0]
        latest = oldest.since + _OVERTAKEN * state.service.seconds(oldest.request.size)
        offers = [entry for entry in offers if entry.since <= latest][:_OLDEST]
        if all(set(entry.queues) == set(oldest.queues) for entry in offers):
            return oldest  # the others are no worse off for waiting here
        window, disks = self._near(disk, offers)
        columns = {each: nth * _TURNS for nth, each in enumerate(disks)}
        lasts = len(columns) * _TURNS
        rows = [self._costs(entry, columns, lasts + nth) for nth, entry in enumerate(window)]
        given = assign(rows, lasts + len(rows))
        turn_of = dict(zip((entry.number for entry in window), given, strict=True))
        first = columns[disk]
        own = [entry for entry in offers if first <= turn_of[entry.number] < first + _TURNS]
        if not own:
            return super()._pick(disk, state, offers)
        return min(own, key=lambda entry: turn_of[entry.number])

    def _near(self, disk: int, offers: list[Waiting]) -> tuple[list[Waiting], list[int]]:
        """The requests that are planned for, oldest first, and all disks of them."""
        window = {entry.number: entry for entry in offers}
        disks = [disk, *(each for entry in offers for each in entry.queues)]
        disks = list(dict.fromkeys(disks))
        for other in disks:  # those of what is found stand at the end, and are looked at later
            for entry in islice(self._disks[other].foreground.entries.values(), _OLDEST):
                if len(window) < _WINDOW and entry.number not in window:
                    window[entry.number] = entry
                    disks += [each for each in entry.queues if each not in disks]
        return [window[number] for number in sorted(window)], disks

    def _costs(self, entry: Waiting, columns: dict[int, int], last: int) -> list[tuple[int, float]]:
        """The turns that a request may be given, each with the square of its time in all."""
        waited = self._now - entry.since
        size = entry.request.size
        costs: list[tuple[int, float]] = []
        latest = 0.0
        for disk in entry.queues:
            state = self._disks[disk]
            model = self._model(state)
            ends = waited + self._remaining(state) + model.seconds(size)
            usual = model.seconds(model.typical_bytes)
            turns = range(_TURNS)
            costs += [(columns[disk] + turn, (ends + turn * usual) ** 2) for turn in turns]
            latest = max(latest, ends + _LATER * usual)
        costs.append((last, latest**2))
        return costs


SCHEDULERS.register(Matched.name, Matched)
