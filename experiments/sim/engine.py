"""The simulator as an engine: what it cost is measured here, outside the pure part."""

import resource
import time
from dataclasses import replace

from experiments.compiled.loading import is_compiled
from experiments.errors import ScenarioError
from experiments.sim import world as world_module
from experiments.sim.settings import SimSettings
from experiments.sim.world import World
from experiments.swarms.engine import Say
from experiments.swarms.result import RunFacts, RunResult, conclude
from experiments.swarms.scenario import Client, Scenario
from experiments.swarms.text import describe
from toast.common.timemap import TimeMap
from toast.media import probe
from toast.policy.errors import PolicyError

__all__ = ["SimEngine"]


class SimEngine:
    """Carries scenarios out in virtual time: the same seed, the same result.

    Args:
        settings: of the world around the viewers; None: as close a look as the size allows.
    """

    name = "sim"

    def __init__(self, settings: SimSettings | None = None) -> None:
        self._settings = settings

    def run(self, scenario: Scenario, say: Say = lambda _: None) -> RunResult:
        """Carry a scenario out, from the first arrival to the end.

        Raises:
            ScenarioError: only real viewers can do that.
            MediaError: the film's file cannot be read.
        """
        wall, cpu = time.perf_counter(), time.process_time()
        if scenario.client is not Client.TOAST:
            raise ScenarioError(
                f"client is {scenario.client.value!r}: the simulator knows our viewer alone; "
                "take the real engine"
            )
        if scenario.loses or scenario.congestion_control or scenario.utp:
            raise ScenarioError(
                "links.loss, server_loss, congestion_control, utp: the simulator has no packets;"
                " take the real engine"
            )
        played, timemap = _with_file(scenario)
        try:
            world = World(played, timemap=timemap, settings=self._settings, say=say)
        except PolicyError as error:
            raise ScenarioError(f"buffer_fraction: {error}") from error
        end = world.run()
        rows = [viewer.row(end) for viewer in world.viewers]
        facts = RunFacts(
            engine=self.name,
            rows=rows,
            http_bytes=world.http_bytes,
            seed_bytes=world.seed_bytes,
            tracker_bytes=0,
            total_bytes=(
                world.http_bytes + world.seed_bytes + sum(row.bytes_uploaded for row in rows)
            ),
            load=world.load,
            wall_seconds=time.perf_counter() - wall,
            cpu_seconds=time.process_time() - cpu,
            peak_memory_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            notes=world.notes,
            compiled=is_compiled(world_module),
        )
        return conclude(played, facts, describe(scenario))


def _with_file(scenario: Scenario) -> tuple[Scenario, TimeMap | None]:
    """A film of one's own: its size, its length and its times."""
    path = scenario.film.file
    if path is None:
        return scenario, None
    try:
        size = path.stat().st_size
    except OSError as error:
        raise ScenarioError(f"film.file: {path} cannot be read: {error.strerror}") from error
    info = probe(path)
    film = replace(
        scenario.film,
        bit_rate_bps=size * 8 / info.duration,
        duration_seconds=info.duration,
    )
    return scenario.with_(film=film), info.timemap
