"""The source's array, scaled: what must not change does not."""

import pytest

from experiments.arrays.catalog import ARRAY_FIGURES
from experiments.arrays.scaling import FILM_SECONDS, SCALED, scaled, scaled_work
from experiments.arrays.scenario import ArrayScenario
from experiments.arrays.trials import REAL_FIGURES


def cell(figure, name):
    (found,) = (c for c in ARRAY_FIGURES[figure].cells("source") if c.name == name)
    return found.scenario


def test_scaling_keeps_what_a_seek_takes_of_a_read():
    for disks in (2, 8):
        plain = ArrayScenario(disks=ArrayScenario().disks[:disks])
        ours = scaled(disks)
        assert ours.model_streams == pytest.approx(plain.model_streams * 0.3)
        model, source = ours.disks[0], plain.disks[0]
        assert model.access_seconds / model.seconds(ours.unit_bytes, 0.5, 0.5) == pytest.approx(
            source.access_seconds / source.seconds(plain.unit_bytes, 0.5, 0.5)
        )


def test_placement_scheduler_and_faults_stay():
    old = cell("4.5", "rda-lazy-40pct").scenario
    new = scaled_work(cell("4.5", "rda-lazy-40pct")).scenario
    assert (new.allocation, new.scheduler, new.faults) == ("rda", "lazy", old.faults)
    assert new.load == old.load
    assert new.disks == SCALED.disks


def test_popular_films_and_memory_are_fewer_by_what_streams_are():
    old = cell("4.3", "naive-worst-1.0").scenario
    new = scaled_work(cell("4.3", "naive-worst-1.0")).scenario
    fewer = new.model_streams / old.model_streams
    assert (new.load.zipf, new.load.clustered) == (1.0, True)
    assert new.films == round(1600 * fewer)
    assert new.cache_bytes / new.unit_bytes == pytest.approx(
        old.cache_bytes / old.unit_bytes * fewer, abs=1
    )


def test_as_many_are_offered_while_one_is_watched():
    old = cell("admission", "admission-on-rda")
    new = scaled_work(old)

    def offered(work):
        return work.scenario.watch_seconds / work.scenario.load.mean_gap_seconds

    assert offered(new) / new.scenario.model_streams == pytest.approx(1.5)
    assert offered(old) / old.scenario.model_streams == pytest.approx(1.5)
    assert new.scenario.admission
    assert new.streams == 240


@pytest.mark.parametrize("figure", REAL_FIGURES)
def test_films_go_round_in_whole_rounds_of_the_disks(figure):
    for each in ARRAY_FIGURES[figure].cells("source"):
        scenario = scaled_work(each.scenario).scenario
        seconds = scenario.watch_seconds or FILM_SECONDS
        assert seconds / scenario.extent_seconds % len(scenario.disks) == 0
