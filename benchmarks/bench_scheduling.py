"""Which replica is read: waiting times of the scheduling policies, in a queue model.

Requests arrive at random (Poisson) at an array of eight disks, each for an extent that two
random disks hold, so many that the disks are busy for a given part of the time; a read takes
1 +- 0.3 units (normal, and at least 0.1). Times are virtual: from arrival to the end of the read,
in units of one read. "single" is the same with one replica: there a slow disk is overloaded.
"one queue" is `lazy` with every extent on every disk: what no two replicas can bring. "in order"
is the p99 that the same reads, ended at the same moments, would have had if those who came first
had been served first: a policy that is as fair as can be, and idles no less, cannot have less.

Run it as: python benchmarks/bench_scheduling.py [--seeds N] [--requests N] [--load PART] [--json]
"""

import argparse
import heapq
import json
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from vodserver.scheduling import SCHEDULERS, ReadRequest, Scheduler

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
    Policy("matched", "matched"),
    Policy("one queue", "lazy", replicas=DISKS),
)
ARRAYS = {
    "equal": np.ones(DISKS),
    "one slow": np.array([0.5] + [1.0] * (DISKS - 1)),
    "one very slow": np.array([0.1] + [1.0] * (DISKS - 1)),
}
"""Speed of each disk, by the name of the array."""


def arrivals(
    rng: np.random.Generator, count: int, rate: float, replicas: int
) -> Iterator[tuple[float, ReadRequest, float]]:
    """Time, request and duration (on a disk of speed 1) of each."""
    times = np.cumsum(rng.exponential(1 / rate, count)).tolist()
    pairs = rng.permuted(np.tile(np.arange(DISKS), (count, 1)), axis=1).tolist()
    durations = np.maximum(rng.normal(1.0, 0.3, count), 0.1).tolist()
    for number, (at, pair, lasts) in enumerate(zip(times, pairs, durations, strict=True)):
        yield at, ReadRequest(number, tuple(pair[:replicas]), SIZE), lasts


def simulate(
    policy: Policy, speeds: np.ndarray, load: float, count: int, seed: int
) -> tuple[float, float, float]:
    """Mean and 99th percentile of the time that a request takes, and that in order of arrival.

    The first tenth is not counted.
    """
    scheduler = policy.make()
    rng = np.random.default_rng(seed)
    speed = speeds.tolist()
    source = arrivals(rng, count, load * float(speeds.sum()), policy.replicas)
    arrived: dict[int, float] = {}
    lasting: dict[int, float] = {}
    reading: dict[int, int] = {}
    ends = [0.0] * DISKS
    took: list[float] = []
    began: list[float] = []
    ended: list[float] = []
    events: list[tuple[float, int]] = []  # (when, disk): its read ends, or it is asked again
    following = next(source, None)
    while following is not None or events:
        if following is not None and (not events or following[0] <= events[0][0]):
            now, request, lasting[request.id] = following
            arrived[request.id] = now
            began.append(now)
            scheduler.submit(request, now)
            following = next(source, None)
        else:
            now, disk = heapq.heappop(events)
            if disk in reading and now >= ends[disk]:
                took.append(now - arrived.pop(reading.pop(disk)))
                ended.append(now)
                scheduler.finish(disk, now)
        for disk in range(DISKS):
            if disk in reading:
                continue
            taken = scheduler.next(disk, now)
            if taken is not None:
                reading[disk] = taken.id
                ends[disk] = now + lasting.pop(taken.id) / speed[disk]
                heapq.heappush(events, (ends[disk], disk))
            elif (due := scheduler.wake(disk, now)) is not None and due > now:
                heapq.heappush(events, (due, disk))
    counted = np.array(took[len(took) // 10 :])
    in_order = (np.array(ended) - np.array(began))[len(took) // 10 :]
    return (
        float(counted.mean()),
        float(np.quantile(counted, 0.99)),
        float(np.quantile(in_order, 0.99)),
    )


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
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = []
    for array, speeds in ARRAYS.items():
        for policy in POLICIES:
            runs = [
                simulate(policy, speeds, options.load, options.requests, seed)
                for seed in range(options.seeds)
            ]
            tails = [tail for _, tail, _ in runs]
            rows.append(
                {
                    "array": array,
                    "policy": policy.label,
                    "mean": statistics.fmean(mean for mean, _, _ in runs),
                    "p99": statistics.fmean(tails),
                    "p99_deviation": statistics.stdev(tails) if len(tails) > 1 else 0.0,
                    "p99_in_order": statistics.fmean(fair for _, _, fair in runs),
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
    print(f"load {options.load:g}, {options.requests} requests, {options.seeds} seeds; in reads")
    print(
        f"{'array':<14} {'policy':<15} {'mean':>7} {'p99':>7} {'+-':>5} {'ratio':>6} "
        f"{'in order':>8} {'earlier':>8}"
    )
    reference = {row["array"]: row["p99"] for row in rows if row["policy"] == "shortest-queue"}
    for row in rows:
        earlier = "" if row["p99_earlier"] is None else f"{row['p99_earlier']:.2f}"
        print(
            f"{row['array']:<14} {row['policy']:<15} {row['mean']:>7.2f} {row['p99']:>7.2f} "
            f"{row['p99_deviation']:>5.2f} {row['p99'] / reference[row['array']]:>6.2f} "
            f"{row['p99_in_order']:>8.2f} {earlier:>8}"
        )
    print("\nsubmit + next + finish, microseconds, with 10 and 10 000 waiting")
    for label, cost in costs.items():
        print(f"{label:<15} {cost[10]:>6.1f} {cost[10_000]:>6.1f}")


if __name__ == "__main__":
    main()
