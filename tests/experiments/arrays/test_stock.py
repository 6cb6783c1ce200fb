"""Stores of real runs: films lie where the simulator has them."""

import pytest

from experiments.arrays.audience import Audience
from experiments.arrays.disk import DiskModel
from experiments.arrays.scenario import ArrayScenario, Load
from experiments.arrays.stock import film_name, make_store
from experiments.errors import LabError
from vodserver.store import open_store

TINY = ArrayScenario(
    disks=(DiskModel(),) * 4, stream_rate=16_384 / 5.0, films=6, watch_seconds=20.0
)


@pytest.mark.parametrize(
    ("allocation", "load"),
    [
        ("naive", Load(zipf=1.0, clustered=True)),
        ("naive", Load(overload=0.8)),
        ("raid0", Load()),
        ("raid1", Load(overload=0.8)),
        ("random", Load()),
        ("rda", Load(zipf=0.5)),
    ],
)
def test_every_extent_lies_where_the_audience_has_it(tmp_path, allocation, load):
    scenario = TINY.with_(allocation=allocation, load=load)
    audience = Audience(scenario, 3)
    audience.streams(5)
    assert make_store(scenario, audience, 3, tmp_path) == 16_384
    with open_store(tmp_path / "store") as store:
        for number, extents in enumerate(audience.films):
            title = store.title(film_name(number))
            assert [tuple(extent.disks) for extent in title.extents] == list(extents)


def test_a_store_that_lies_otherwise_is_refused(tmp_path, monkeypatch):
    audience = Audience(TINY, 3)
    audience.streams(3)
    other = Audience(TINY, 4)
    monkeypatch.setattr(Audience, "chance_of_places", other.chance_of_places)
    with pytest.raises(LabError, match="film-0 does not lie on the disks"):
        make_store(TINY, audience, 3, tmp_path)


def test_what_cannot_be_written_is_an_error_in_a_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(LabError, match="do not go into a store"):
        make_store(TINY, Audience(TINY, 3), 3, tmp_path / "file")
