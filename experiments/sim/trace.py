"""What a swarm asks of its VoD server, range by range. Pure."""

from experiments.sim.origin import Asked
from experiments.sim.world import World
from experiments.swarms.scenario import Scenario

__all__ = ["trace_origin"]


def trace_origin(scenario: Scenario) -> tuple[Asked, ...]:
    """Every range that viewers ask the server for in a run, in the order of asking."""
    world = World(scenario)
    world.asked = []
    world.run()
    return tuple(world.asked)
