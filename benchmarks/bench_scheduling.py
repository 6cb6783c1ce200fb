"""Which replica is read: waiting times of the scheduling policies, in a queue model.

Requests arrive at random (Poisson) at an array of eight disks, each for an extent that two
random disks hold, so many that the disks are busy for a given part of the time; a read takes
1 +- 0.3 units (normal, and at least 0.1). Times are virtual: from arrival to the end of the read,
in units of one read. "single" is the same with one replica: there a slow disk is overloaded.
"one queue" is `lazy` with every extent on every disk: what no two replicas can bring. "in order"
is the p99 that the same reads, ended at the same moments, would have had if those who came first
had been served first: a policy that is as fair as can be, and idles no less, cannot have less.
"foreseen" is the p99 after the disks' turns have been dealt out anew by one who knows all that will
come: each turn to a request that one of the two disks holds, for the least sum of squares of times.

Run it as: python benchmarks/bench_scheduling.py [--seeds N] [--requests N] [--load PART]
           [--deviation PART] [--json]
"""

import argparse
import heapq
import json
import statistics
import time
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from vodserver.scheduling import SCHEDULERS, ReadRequest, Scheduler
from vodserver.scheduling.assignment import assign

DISKS = 8
SIZE = 1 << 20
EARLIER = {
    ("equal", "shortest-queue"): 5.86,
    ("equal", "expected-delay"): 5.27,
    ("equal", "lazy"): 4.74,
    ("one slow", "shortest-queue"): 7.97,
    ("one slow", "expected-delay"): 5.37,
    ("one slow", "lazy"): 5.30,
}
"""p99 of a quick model that was made before any of this was written."""


@dataclass(frozen=True)
class Policy:
    """A row of the table."""

    label: str
    name: str
    replicas: int = 2
    plain: bool = False
    foreseen: bool = False

    def make(self) -> Scheduler:
        """A new scheduler of this policy."""
        options = {"plain": True} if self.plain else {}
        # Nothing is known of the disks beforehand but the order of magnitude.
        return SCHEDULERS.create(
            self.name, disks=range(DISKS), access_seconds=0.25, rate=SIZE / 0.75, **options
        )


POLICIES = (
    Policy("single", "shortest-queue", replicas=1),
    Policy("shortest-queue", "shortest-queue"),
    Policy("expected-delay", "expected-delay"),
    Policy("lazy, plain", "lazy", plain=True),
    Policy("lazy", "lazy"),
    Policy("matched", "matched", foreseen=True),
    Policy("one queue", "lazy", replicas=DISKS),
)
ARRAYS = {
    "equal": np.ones(DISKS),
    "one slow": np.array([0.5] + [1.0] * (DISKS - 1)),
    "one very slow": np.array([0.1] + [1.0] * (DISKS - 1)),
}
"""Speed of each disk, by the name of the array."""


def arrivals(
    rng: np.random.Generator, count: int, rate: float, replicas: int, deviation: float
) -> Iterator[tuple[float, ReadRequest, float]]:
    """Time, request and duration (on a disk of speed 1) of each."""
    times = np.cumsum(rng.exponential(1 / rate, count)).tolist()
    pairs = rng.permuted(np.tile(np.arange(DISKS), (count, 1)), axis=1).tolist()
    durations = np.maximum(rng.normal(1.0, deviation, count), 0.1).tolist()
    for number, (at, pair, lasts) in enumerate(zip(times, pairs, durations, strict=True)):
        yield at, ReadRequest(number, tuple(pair[:replicas]), SIZE), lasts


@dataclass(frozen=True)
class Turn:
    """A read that a disk made."""

    disk: int
    began: float
    ended: float


@dataclass(frozen=True)
class Times:
    """How long requests took in a run: the mean, and 99th percentiles of what was and could be."""

    mean: float
    p99: float
    p99_in_order: float
    p99_foreseen: float | None


def simulate(
    policy: Policy, speeds: np.ndarray, load: float, *, count: int, deviation: float, seed: int
) -> Times:
    """One run. The first tenth is not counted."""
    scheduler = policy.make()
    rng = np.random.default_rng(seed)
    speed = speeds.tolist()
    source = arrivals(rng, count, load * float(speeds.sum()), policy.replicas, deviation)
    arrived: dict[int, float] = {}
    lasting: dict[int, float] = {}
    held_by: list[tuple[int, ...]] = []
    reading: dict[int, tuple[int, float]] = {}
    ends = [0.0] * DISKS
    took: list[float] = []
    turns: list[Turn] = []
    events: list[tuple[float, int]] = []  # (when, disk): its read ends, or it is asked again
    following = next(source, None)
    while following is not None or events:
        if following is not None and (not events or following[0] <= events[0][0]):
            now, request, lasting[request.id] = following
            arrived[request.id] = now
            held_by.append(request.disks)
            scheduler.submit(request, now)
            following = next(source, None)
        else:
            now, disk = heapq.heappop(events)
            if disk in reading and now >= ends[disk]:
                number, began = reading.pop(disk)
                took.append(now - arrived[number])
                turns.append(Turn(disk, began, now))
                scheduler.finish(disk, now)
        for disk in range(DISKS):
            if disk in reading:
                continue
            taken = scheduler.next(disk, now)
            if taken is not None:
                reading[disk] = taken.id, now
                ends[disk] = now + lasting.pop(taken.id) / speed[disk]
                heapq.heappush(events, (ends[disk], disk))
            elif (due := scheduler.wake(disk, now)) is not None and due > now:
                heapq.heappush(events, (due, disk))
    uncounted = count // 10
    counted = took[uncounted:]
    came = list(arrived.values())
    in_order = [turn.ended - at for turn, at in zip(turns, came, strict=True)]
    foreseen = None
    if policy.foreseen:
        foreseen = float(np.quantile(dealt_anew(came, held_by, turns, max(took))[uncounted:], 0.99))
    return Times(
        statistics.fmean(counted),
        float(np.quantile(counted, 0.99)),
        float(np.quantile(in_order[uncounted:], 0.99)),
        foreseen,
    )


def dealt_anew(
    came: Sequence[float], held_by: Sequence[tuple[int, ...]], turns: Sequence[Turn], longest: float
) -> list[float]:
    """How long each request takes if turns are given for the least sum of squares of that.

    Args:
        came: when each came, rising.
        held_by: which disks hold it.
        turns: all that there are.
        longest: no turn is looked at that begins so long after a request came.
    """
    order = sorted(turns, key=lambda turn: turn.began)
    of_disk: list[list[int]] = [[] for _ in range(DISKS)]
    for number, turn in enumerate(order):
        of_disk[turn.disk].append(number)
    begins = [[order[number].began for number in numbers] for numbers in of_disk]
    rows = [
        [
            (number, (order[number].ended - at) ** 2)
            for disk in disks
            for number in of_disk[disk][
                bisect_left(begins[disk], at) : bisect_right(begins[disk], at + longest)
            ]
        ]
        for at, disks in zip(came, held_by, strict=True)
    ]
    given = assign(rows, len(order))
    return [order[number].ended - at for number, at in zip(given, came, strict=True)]


def operation_microseconds(policy: Policy, waiting: int, rounds: int = 20_000) -> float:
    """What submit, next and finish of a request take together with so many waiting."""
    scheduler = policy.make()
    pairs = np.random.default_rng(1).permuted(
        np.tile(np.arange(DISKS), (waiting + rounds, 1)), axis=1
    )[:, : policy.replicas]
    requests = [ReadRequest(n, tuple(row), SIZE) for n, row in enumerate(pairs.tolist())]
    for request in requests[:waiting]:
        scheduler.submit(request, 0.0)
    begin = time.perf_counter()
    for turn, request in enumerate(requests[waiting:]):
        scheduler.submit(request, float(turn))
        scheduler.next(turn % DISKS, float(turn))
        scheduler.finish(turn % DISKS, turn + 1.0)
    return (time.perf_counter() - begin) / rounds * 1e6


def main() -> None:
    """Simulate every policy on every array, and time its operations."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--load", type=float, default=0.9)
    parser.add_argument("--deviation", type=float, default=0.3, help="of a read, in reads")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = []
    for array, speeds in ARRAYS.items():
        for policy in POLICIES:
            runs = [
                simulate(
                    policy,
                    speeds,
                    options.load,
                    count=options.requests,
                    deviation=options.deviation,
                    seed=seed,
                )
                for seed in range(options.seeds)
            ]
            tails = [run.p99 for run in runs]
            foreseen = [run.p99_foreseen for run in runs if run.p99_foreseen is not None]
            rows.append(
                {
                    "array": array,
                    "policy": policy.label,
                    "mean": statistics.fmean(run.mean for run in runs),
                    "p99": statistics.fmean(tails),
                    "p99_deviation": statistics.stdev(tails) if len(tails) > 1 else 0.0,
                    "p99_in_order": statistics.fmean(run.p99_in_order for run in runs),
                    "p99_foreseen": statistics.fmean(foreseen) if foreseen else None,
                    "p99_earlier": EARLIER.get((array, policy.label)),
                }
            )
    costs = {
        policy.label: {waiting: operation_microseconds(policy, waiting) for waiting in (10, 10_000)}
        for policy in POLICIES
    }
    if options.json:
        print(json.dumps({"rows": rows, "microseconds": costs}))
        return
    show(rows, costs, options)


def show(rows: list[dict], costs: dict, options: argparse.Namespace) -> None:
    """Print two tables."""
    print(
        f"load {options.load:g}, {options.requests} requests, {options.seeds} seeds; "
        f"a read is 1 +- {options.deviation:g}"
    )
    print(
        f"{'array':<14} {'policy':<15} {'mean':>7} {'p99':>7} {'+-':>5} {'ratio':>6} "
        f"{'in order':>8} {'foreseen':>8} {'earlier':>8}"
    )
    reference = {row["array"]: row["p99"] for row in rows if row["policy"] == "shortest-queue"}
    for row in rows:
        earlier, foreseen = (
            "" if row[key] is None else f"{row[key]:.2f}" for key in ("p99_earlier", "p99_foreseen")
        )
        print(
            f"{row['array']:<14} {row['policy']:<15} {row['mean']:>7.2f} {row['p99']:>7.2f} "
            f"{row['p99_deviation']:>5.2f} {row['p99'] / reference[row['array']]:>6.2f} "
            f"{row['p99_in_order']:>8.2f} {foreseen:>8} {earlier:>8}"
        )
    print("\nsubmit + next + finish, microseconds, with 10 and 10 000 waiting")
    for label, cost in costs.items():
        print(f"{label:<15} {cost[10]:>6.1f} {cost[10_000]:>6.1f}")


if __name__ == "__main__":
    main()
