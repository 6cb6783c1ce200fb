"""An array in virtual time."""

import pytest

from experiments.arrays.audience import Audience
from experiments.arrays.disk import DiskModel, Fault, FaultKind
from experiments.arrays.scenario import ArrayScenario, Load
from experiments.arrays.sim import create_scheduler, simulate
from experiments.errors import ScenarioError

EVEN = DiskModel(jitter_share=0.0)
SMALL = ArrayScenario(
    disks=(EVEN,) * 2, allocation="naive", hold_seconds=60.0, load=Load(window_seconds=1.0)
)


def run(streams, seed=1, **changes):
    return simulate(SMALL.with_(**changes), streams, seed=seed)


def test_as_many_streams_as_the_model_says_and_no_more():
    """Two disks: 134.9 streams; each read takes 74 ms of the 5 s for which it is wanted."""
    assert run(134).incidents == 0
    assert run(144).incidents > 0


def test_disks_are_busy_by_the_model():
    result = run(100, hold_seconds=300.0)
    # The lead, a second read for each stream in the first moments, is a sixtieth of it all.
    assert result.busy_share == pytest.approx(100 / result.model_streams, rel=0.03)
    assert result.reads == pytest.approx(100 * 61, rel=0.02)


def test_the_same_seed_brings_the_same_figures():
    changes = {"disks": (DiskModel(),) * 2, "allocation": "rda", "scheduler": "lazy"}
    assert run(130, **changes) == run(130, **changes)
    assert run(130, **changes) != run(130, seed=2, **changes)


def test_it_can_end_with_the_first_starvation():
    result = simulate(SMALL, 200, seed=1, stop_at_starvation=True)
    assert result.incidents >= 1
    assert result.reads < run(200).reads


def test_a_sick_disk_starves_those_whose_films_it_has():
    result = run(120, faults=(Fault(disk=0, share=1.0),))
    assert result.starved_streams == 60
    assert result.incidents > 60


def test_with_two_copies_a_sick_disk_is_given_less():
    changes = {"allocation": "rda", "disks": (EVEN,) * 4}
    sick = (Fault(disk=0, share=1.0),)
    assert run(210, scheduler="lazy", faults=sick, **changes).incidents == 0
    assert run(210, scheduler="matched", faults=sick, **changes).incidents == 0


def test_what_was_read_lately_is_in_memory():
    load = Load(zipf=1.0, window_seconds=1.0)
    plain = run(60, load=load, films=3)
    cached = run(60, load=load, films=3, cache_bytes=1 << 30)
    assert cached.reads < plain.reads
    assert cached.hit_share > 0.9


def test_a_film_that_goes_round_is_still_in_memory():
    scenario = SMALL.with_(load=Load(zipf=1.0, window_seconds=1.0), films=1, cache_bytes=1 << 30)
    audience = Audience(scenario, 1, film_seconds=20.0)
    assert simulate(scenario, 1, seed=1, audience=audience).reads == 20 / scenario.unit_seconds
    assert simulate(scenario, 1, seed=1).reads > 60 / scenario.unit_seconds


def test_small_reads_cost_an_access_each():
    result = run(20, read_seconds=0.5)
    assert result.model_streams == pytest.approx(
        2 * 0.5 / (0.017 + 0.375e6 / (525e6 / 8)), abs=0.01
    )
    assert run(40, read_seconds=0.5).incidents == 0
    assert run(50, read_seconds=0.5).incidents > 0


def test_a_link_is_a_limit_of_its_own():
    assert run(20, link_rate=20 * 0.75e6).incidents == 0
    assert run(26, link_rate=20 * 0.75e6).incidents > 0


def test_a_dead_disk_takes_away_what_lies_there_only():
    dead = (Fault(disk=0, kind=FaultKind.DEATH, begin_seconds=10.0),)
    assert run(60, faults=dead).lost == 30
    both = run(60, faults=dead, allocation="raid1")
    assert both.lost == 0
    assert both.incidents == 0


def test_a_disk_that_comes_back_is_used_again():
    away = (Fault(disk=0, kind=FaultKind.DEATH, begin_seconds=10.0, end_seconds=12.0),)
    assert run(100, faults=away, allocation="raid1").incidents == 0


@pytest.mark.parametrize("kind", [FaultKind.ERROR, FaultKind.CORRUPT])
def test_a_bad_read_is_made_from_the_other_replica(kind):
    faults = (Fault(disk=0, kind=kind, share=0.5),)
    result = run(60, faults=faults, allocation="raid1")
    assert (result.lost, result.incidents) == (0, 0)
    assert run(60, faults=faults).lost > 20


def test_a_stalled_disk_is_passed_over():
    stall = (Fault(disk=0, kind=FaultKind.STALL, begin_seconds=10.0, end_seconds=40.0),)
    assert run(60, faults=stall, allocation="raid1", scheduler="lazy").incidents == 0
    assert run(60, faults=stall, allocation="raid1", scheduler="matched").incidents == 0
    assert run(60, faults=stall).starved_streams == 30


def test_admission_keeps_those_who_are_let_in_fed():
    load = Load(mean_gap_seconds=60.0 / 200)
    changes = {"load": load, "watch_seconds": 60.0, "allocation": "raid1"}
    crowded = run(400, **changes)
    guarded = run(400, admission=True, **changes)
    assert crowded.incidents > 0
    assert guarded.incidents == 0
    assert guarded.refused > 50
    assert guarded.streams + guarded.refused == 400


@pytest.mark.parametrize(
    "name", ["shortest-queue", "expected-delay", "lazy", "lazy-plain", "matched"]
)
def test_schedulers_are_the_servers_own(name):
    assert type(create_scheduler(name, 4)).__module__.startswith("vodserver.scheduling.")


def test_nobody_is_no_load():
    with pytest.raises(ScenarioError, match="one stream or more"):
        run(0)
