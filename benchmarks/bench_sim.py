"""How fast the simulator is: microseconds of processor time per piece and viewer.

The floor beside it is an empty event loop: as many events through the same heap, and nothing done.
The least of several rounds counts, taken in turns: what else the machine does hits both.
"""

import argparse
import heapq
import json
import resource
import time
from dataclasses import replace

import numpy as np

from experiments.sim.settings import SimSettings
from experiments.sim.world import World
from experiments.swarms.presets import scaled
from experiments.swarms.scenario import Scenario


def small_source(viewers: int, minutes: float) -> Scenario:
    """The source's scenario with fewer viewers and a shorter film, as many watching at once."""
    source = scaled("source")
    seconds = 60.0 * minutes
    spacing = source.arrivals.spacing_seconds * seconds / source.film.duration_seconds
    return source.with_(
        viewers=viewers,
        film=replace(source.film, duration_seconds=seconds),
        arrivals=replace(source.arrivals, spacing_seconds=spacing * 300 / viewers),
        run_seconds=None,
    )


def simulate(scenario: Scenario) -> tuple[float, World]:
    """Processor seconds of a run, and what it came to."""
    begun = time.process_time()
    world = World(scenario, settings=SimSettings.fitting(300, 3273))
    world.run()
    return time.process_time() - begun, world


def empty_loop(events: int) -> float:
    """Processor seconds for so many events in a heap of a thousand."""
    times = np.random.default_rng(1).random(events).tolist()
    begun = time.process_time()
    heap = [(when, n, None, None) for n, when in enumerate(times[:1000])]
    heapq.heapify(heap)
    for n, when in enumerate(times):
        at, *_ = heapq.heappop(heap)
        heapq.heappush(heap, (at + when, n, None, None))
    return time.process_time() - begun


def main() -> None:
    """One line for us, one for the floor, JSON at the end."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--viewers", type=int, default=60)
    parser.add_argument("--minutes", type=float, default=10.0, help="length of the film")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--source", action="store_true", help="the source's own scale, once")
    args = parser.parse_args()
    scenario = scaled("source") if args.source else small_source(args.viewers, args.minutes)
    rounds = 1 if args.source else args.rounds
    seconds = floor = float("inf")
    for _ in range(rounds):
        took, world = simulate(scenario)
        seconds = min(seconds, took)
        floor = min(floor, empty_loop(world.events.happened))
    count = scenario.viewers * scenario.film.geometry.pieces
    decisions = sum(viewer.decisions for viewer in world.viewers)
    print(f"simulator   {seconds / count * 1e6:7.1f} us per piece and viewer, {seconds:.1f} s")
    print(f"empty loop  {floor / count * 1e6:7.1f} us for as many events")
    print(
        json.dumps(
            {
                "pieces_and_viewers": count,
                "us_per_piece_and_viewer": round(seconds / count * 1e6, 2),
                "events_per_piece_and_viewer": round(world.events.happened / count, 2),
                "decisions_per_piece_and_viewer": round(decisions / count, 3),
                "times_the_empty_loop": round(seconds / floor, 1),
                "source_scale_seconds": round(seconds / count * 300 * 3273, 1),
                "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
            }
        )
    )


if __name__ == "__main__":
    main()
