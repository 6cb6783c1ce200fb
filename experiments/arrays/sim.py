"""An array in virtual time: paced streams, disks as data, the server's own placement and scheduler.

The rules of the server are followed where the model can see them: one read at a time on a disk;
whoever wants what is being read already joins that read; a read that failed is asked of the other
replicas; a disk that brings nothing for half a second is passed over until it does. Pure.
"""

import heapq
from collections import OrderedDict, defaultdict
from collections.abc import Mapping
from functools import partial
from typing import Final

import numpy as np

from experiments.arrays.audience import Audience, Stream
from experiments.arrays.disk import Fault, FaultKind, read_seconds
from experiments.arrays.entrance import Entrance
from experiments.arrays.playback import Playback
from experiments.arrays.result import ArrayResult, conclude
from experiments.arrays.scenario import ArrayScenario
from experiments.errors import ScenarioError
from vodserver.scheduling import SCHEDULERS, Lazy, ReadRequest, Scheduler

__all__ = ["create_scheduler", "simulate"]

_STALL_SECONDS: Final = 0.5  # `ArraySettings.stall_seconds`
_CHANCES: Final = 1 << 12
_BEGIN, _ASK, _DONE, _WAKE, _QUIET, _SWITCH = range(6)
"""What happens: a stream begins, a stream wants its next read, a read is over, a disk is asked
again, a disk brings nothing, a disk dies or comes back."""


def create_scheduler(name: str, disks: int) -> Scheduler:
    """A scheduler by its name; `lazy-plain` leaves no read to a faster disk."""
    if name == "lazy-plain":
        return Lazy(disks=range(disks), plain=True)
    return SCHEDULERS.create(name, disks=range(disks))


def simulate(
    scenario: ArrayScenario,
    streams: int,
    *,
    seed: int,
    audience: Audience | None = None,
    stop_at_starvation: bool = False,
) -> ArrayResult:
    """Run an array.

    Args:
        scenario: the array and its load.
        streams: how many come.
        seed: of all chance; the same seed brings the same streams, however many come.
        audience: of this scenario and seed, if there is one already.
        stop_at_starvation: end with the first.

    Raises:
        ScenarioError: there is nothing to run.
    """
    if streams < 1:
        raise ScenarioError("a run has one stream or more")
    crowd = (audience or Audience(scenario, seed)).streams(streams)
    return _Run(scenario, crowd, seed, stop_at_starvation=stop_at_starvation).result()


class _Wanted:
    """A read that is wanted: by whom, of which disks."""

    __slots__ = ("disks", "key", "waiting")

    def __init__(self, key: int, disks: tuple[int, ...]) -> None:
        self.key = key
        self.disks = disks
        self.waiting: list[tuple[int, float]] = []  # stream, since when


class _Run:
    def __init__(
        self, scenario: ArrayScenario, crowd: list[Stream], seed: int, *, stop_at_starvation: bool
    ) -> None:
        self._scenario = scenario
        self._crowd = crowd
        self._stop = stop_at_starvation
        self._models = scenario.disks
        self._faults: Mapping[int, list[Fault]] = defaultdict(list)
        for fault in scenario.faults:
            self._faults[fault.disk].append(fault)
        self._scheduler = create_scheduler(scenario.scheduler, len(scenario.disks))
        units = None
        if scenario.watch_seconds is not None:
            units = max(1, round(scenario.watch_seconds / scenario.unit_seconds))
        make = partial(Playback, scenario.lead_seconds, scenario.unit_seconds, units)
        self._clients = [make() for _ in crowd]
        self._size = scenario.unit_bytes
        self._per_extent = scenario.extent_seconds / scenario.unit_seconds
        chance = np.random.default_rng([seed, 3])
        self._chances = chance.uniform(size=_CHANCES).tolist()
        self._drawn = 0
        self._end = crowd[-1].begins_seconds + scenario.hold_seconds
        self._events: list[tuple[float, int, int]] = []
        self._wanted: dict[int, _Wanted] = {}  # by key: waits, or is being read
        self._reading: dict[int, tuple[_Wanted, float]] = {}  # by disk, and when it ends
        self._idle = set(range(len(scenario.disks)))
        self._quiet: set[int] = set()
        self._gone: set[int] = set()
        self._parked: list[_Wanted] = []
        self._memory: OrderedDict[int, None] = OrderedDict()
        self._room = scenario.cache_bytes // self._size
        self._link_free = 0.0
        self._responses: list[float] = []
        self._lost: set[int] = set()
        self._refused: set[int] = set()
        self._reads = self._asked = self._joined = 0
        self._busy = 0.0
        self._requests: dict[int, _Wanted] = {}
        self._numbers = 0
        self._entrance = Entrance(scenario) if scenario.admission else None

    def result(self) -> ArrayResult:
        """Run, and say what came of it."""
        events = self._events
        for number, stream in enumerate(self._crowd):
            events.append((stream.begins_seconds, _BEGIN, number))
        for fault in self._scenario.faults:
            if fault.kind is FaultKind.DEATH:
                events.append((fault.begin_seconds, _SWITCH, fault.disk))
                if fault.end_seconds < self._end:
                    events.append((fault.end_seconds, _SWITCH, fault.disk))
        heapq.heapify(events)
        handlers = (self._begin, self._ask, self._done, self._wake, self._look, self._switch)
        now = 0.0
        while events:
            now, kind, number = heapq.heappop(events)
            if now > self._end or handlers[kind](number, now):
                break
        return self._conclude(min(now, self._end) if self._stop else self._end)

    # --- streams

    def _begin(self, number: int, now: float) -> bool:
        if self._entrance is not None:
            waits = [self._scheduler.load(d, now) for d in range(len(self._models))]
            if not self._entrance.admit(self._crowd[number], waits, now):
                self._refused.add(number)
                return False
        return self._ask(number, now)

    def _ask(self, number: int, now: float) -> bool:
        """A stream wants its next read."""
        client, stream = self._clients[number], self._crowd[number]
        # A film goes round: what others read of it for the first time is then the same again.
        unit = client.received % max(1, round(len(stream.extents) * self._per_extent))
        extent = int(unit / self._per_extent + 1e-9) % len(stream.extents)
        key = (stream.film << 24) + unit
        self._asked += 1
        if key in self._memory:
            self._memory.move_to_end(key)
            self._joined += 1
            return self._give(number, now, now)
        wanted = self._wanted.get(key)
        if wanted is None:
            wanted = self._wanted[key] = _Wanted(key, stream.extents[extent])
            wanted.waiting.append((number, now))
            self._submit(wanted, now)
        else:
            self._joined += 1
            wanted.waiting.append((number, now))
        return False

    def _give(self, number: int, asked: float, now: float) -> bool:
        """A stream is sent a read. Whether the run is to end."""
        client = self._clients[number]
        if self._scenario.link_rate is not None:
            now = max(now, self._link_free) + self._size / self._scenario.link_rate
            self._link_free = now
        self._responses.append(now - asked)
        if client.receive(now) and self._stop:
            return True
        if client.is_complete:
            if self._entrance is not None:
                self._entrance.leave(self._crowd[number])
            return False
        due = client.due()
        heapq.heappush(self._events, (now if due is None else max(due, now), _ASK, number))
        return False

    # --- disks

    def _submit(self, wanted: _Wanted, now: float) -> None:
        there = [disk for disk in wanted.disks if disk not in self._gone]
        if not there:
            self._lose(wanted)
            return
        if all(disk in self._quiet for disk in there):
            self._parked.append(wanted)
            return
        self._numbers += 1
        self._requests[self._numbers] = wanted
        self._scheduler.submit(ReadRequest(self._numbers, tuple(there), self._size), now)
        for disk in there:
            if disk in self._idle:
                self._dispatch(disk, now)

    def _lose(self, wanted: _Wanted) -> None:
        del self._wanted[wanted.key]
        self._lost.update(number for number, _ in wanted.waiting)

    def _dispatch(self, disk: int, now: float) -> None:
        request = self._scheduler.next(disk, now)
        if request is None:
            due = self._scheduler.wake(disk, now)
            if due is not None:
                # A moment later at the least, or rounding could have it asked for ever.
                heapq.heappush(self._events, (max(due, now + 1e-6), _WAKE, disk))
            return
        wanted = self._requests.pop(request.id)
        self._idle.discard(disk)
        place = ((wanted.key * 2654435761) % 1000003) / 1000003
        took = read_seconds(
            self._models[disk],
            self._faults[disk],
            request.size,
            now,
            place=place,
            chance=self._chance(),
        )
        ends = now + took
        self._reading[disk] = wanted, ends
        heapq.heappush(self._events, (ends, _DONE, disk))
        if any(f.kind is FaultKind.STALL and f.is_on(now) for f in self._faults[disk]):
            heapq.heappush(self._events, (now + _STALL_SECONDS, _QUIET, disk))
        self._reads += 1
        settled = self._end - self._scenario.hold_seconds
        self._busy += max(0.0, min(ends, self._end) - max(now, settled))

    def _chance(self) -> float:
        self._drawn += 1
        return float(self._chances[self._drawn % _CHANCES])

    def _dispatch_idle(self, now: float) -> None:
        for disk in tuple(self._idle):
            self._dispatch(disk, now)

    def _wake(self, disk: int, now: float) -> bool:
        if disk in self._idle:
            self._dispatch(disk, now)
        return False

    def _done(self, disk: int, now: float) -> bool:
        """A disk's read is over."""
        reading = self._reading.get(disk)
        if reading is None or reading[1] != now:
            return False  # of a disk that died meanwhile
        wanted, _ = reading
        del self._reading[disk]
        failed = self._fails(disk, now)
        self._scheduler.finish(disk, now, learn=not failed)
        self._idle.add(disk)
        if disk in self._quiet:
            self._quiet.discard(disk)
            self._scheduler.join(disk)
            parked, self._parked = self._parked, []
            for each in parked:
                self._submit(each, now)
        over = False
        if failed:
            wanted.disks = tuple(other for other in wanted.disks if other != disk)
            self._submit(wanted, now)
        elif self._wanted.get(wanted.key) is wanted:
            del self._wanted[wanted.key]
            self._keep(wanted.key)
            for number, asked in wanted.waiting:
                over = self._give(number, asked, now) or over
        self._dispatch_idle(now)
        return over

    def _fails(self, disk: int, now: float) -> bool:
        kinds = (FaultKind.ERROR, FaultKind.CORRUPT)
        return any(
            fault.kind in kinds and fault.is_on(now) and self._chance() < fault.share
            for fault in self._faults[disk]
        )

    def _keep(self, key: int) -> None:
        if self._room:
            self._memory[key] = None
            if len(self._memory) > self._room:
                self._memory.popitem(last=False)

    def _look(self, disk: int, now: float) -> bool:
        """A disk has brought nothing for so long that the others are asked."""
        reading = self._reading.get(disk)
        if reading is None or reading[1] <= now or disk in self._quiet:
            return False
        self._quiet.add(disk)
        wanted, _ = reading
        lone = self._scheduler.withdraw(disk)
        others = [d for d in wanted.disks if d not in self._quiet and d not in self._gone]
        if others and self._wanted.get(wanted.key) is wanted:
            self._submit(wanted, now)
        self._parked += [self._requests.pop(request.id) for request in lone]
        self._dispatch_idle(now)
        return False

    def _switch(self, disk: int, now: float) -> bool:
        """A disk dies, or comes back."""
        if disk in self._gone:
            self._gone.discard(disk)
            self._scheduler.join(disk)
            self._idle.add(disk)
        else:
            self._gone.add(disk)
            self._idle.discard(disk)
            lone = self._scheduler.withdraw(disk)
            reading = self._reading.pop(disk, None)
            moved = [self._requests.pop(request.id) for request in lone]
            for wanted in (*moved, *([reading[0]] if reading else [])):
                self._submit(wanted, now)
        self._dispatch_idle(now)
        return False

    def _conclude(self, now: float) -> ArrayResult:
        for client in self._clients:
            client.end(now)
        admitted = [n for n in range(len(self._clients)) if n not in self._refused]
        return conclude(
            incidents=[self._clients[number].incidents for number in admitted],
            responses=self._responses,
            refused=len(self._refused),
            lost=len(self._lost),
            reads=self._reads,
            busy_share=self._busy / (len(self._models) * self._scenario.hold_seconds),
            hit_share=self._joined / max(self._asked, 1),
            model_streams=self._scenario.model_streams,
        )
