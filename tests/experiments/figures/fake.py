"""An engine that makes up its figures: the same for the same scenario, and in a moment."""

import os
import time

import numpy as np

from experiments.errors import LabError, ScenarioError
from experiments.swarms.engine import Progress
from experiments.swarms.result import LoadSample, RunFacts, ViewerRow, conclude
from experiments.swarms.text import describe

QUALITY = {"rarest-first": 0.7, "in-order": 0.85, "beta": 0.75, "hybrid": 0.9}


class FakeEngine:
    """Offload is upload / bit rate, times a quality of the picker, and some chance.

    A scenario with the name of a mishap has it.
    """

    name = "sim"

    def __init__(self):
        self.runs = []

    def run(self, scenario, say=lambda _: None):
        if scenario.name == "fails":
            raise LabError("the tracker did not start")
        if scenario.name == "cannot":
            raise ScenarioError("latency is nothing for this engine")
        if scenario.name == "dies":
            os._exit(3)
        say(Progress(5.0, 10.0, 2, 1, None))
        if scenario.name == "lasts":
            time.sleep(60)
        say(Progress(10.0, 10.0, scenario.viewers, 0, 0.5))
        self.runs.append(scenario)
        return conclude(scenario, facts(scenario), describe(scenario))


def facts(scenario):
    rng = np.random.default_rng(scenario.random_seed)
    film = scenario.film.film_bytes
    share = min(1.0, scenario.links[0].upload_rate / scenario.film.rate) * QUALITY[scenario.picker]
    rows = []
    for viewer in scenario.crowd():
        peers = round(film * share * rng.uniform(0.98, 1.0))
        rows.append(
            ViewerRow(
                number=viewer.number,
                arrived_at=viewer.arrives_seconds,
                departed_at=viewer.arrives_seconds + scenario.film.duration_seconds,
                start_seconds=0.25,
                stalls=0,
                stall_seconds=0.0,
                played_bytes=film,
                bytes_from_peers=peers,
                bytes_from_seed=0,
                bytes_from_origin=film - peers,
                bytes_wasted=peers // 100,
                bytes_regretted=1000,
                bytes_uploaded=peers,
                upload_rate=viewer.link.upload_rate,
            )
        )
    http = sum(row.bytes_from_origin for row in rows)
    total = sum(row.bytes_from_peers for row in rows) + http
    load = [LoadSample(float(n), http * n // 20, 0, n) for n in range(21)]
    return RunFacts(
        engine="sim",
        rows=rows,
        http_bytes=http,
        seed_bytes=0,
        tracker_bytes=0,
        total_bytes=total,
        load=load,
        wall_seconds=0.5,
        cpu_seconds=0.4,
        peak_memory_bytes=50_000_000,
        notes=("made up",),
    )


def make_fake(name):
    """What create_engine is, of fakes."""
    return FakeEngine()
