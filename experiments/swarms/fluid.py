"""The bound of a scenario: what a perfect swarm would have reached in it."""

from functools import lru_cache

from experiments.bound import FluidScenario, ViewerPlan, offload_bound
from experiments.swarms.scenario import Scenario

__all__ = ["bound_of"]

_FEWEST_PIECES = 200
_MOST_PIECES = 400


def bound_of(scenario: Scenario) -> float:
    """The highest offload that any policy could reach (spec of the source, section 5).

    Clients, pickers and neighbours do not matter to it; a baseline has the bound of the scenario
    that it is run in.
    """
    crowd = scenario.crowd()
    viewers = tuple(
        ViewerPlan(
            arrival_seconds=viewer.arrives_seconds,
            upload_rate=viewer.link.upload_rate,
            download_rate=viewer.link.download_rate,
            behaviour=scenario.behaviour,
            stays_seconds=viewer.leaves_seconds,
            seek=viewer.seek,
        )
        for viewer in crowd
    )
    pieces = min(_MOST_PIECES, max(_FEWEST_PIECES, scenario.film.geometry.pieces // 8))
    return _bound(
        FluidScenario(
            film_bytes=scenario.film.film_bytes,
            duration_seconds=scenario.film.duration_seconds,
            viewers=viewers,
            pieces=pieces,
            end_seconds=scenario.run_seconds,
        )
    )


@lru_cache(maxsize=256)
def _bound(fluid: FluidScenario) -> float:
    return offload_bound(fluid)
