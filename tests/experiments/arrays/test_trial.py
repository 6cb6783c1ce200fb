"""Runs of the comparison with nginx, in small: that they work, and not how fast."""

import os
import time

import pytest

from experiments.arrays.demand import DEMANDS, asked, places
from experiments.arrays.disk import DiskModel
from experiments.arrays.library import make_library
from experiments.arrays.rivals import RIVALS, cpu_seconds
from experiments.arrays.scenario import ArrayScenario, Load
from experiments.arrays.trial import play, pull
from experiments.errors import LabError
from tests.experiments.arrays.mounts import need_mounts

TINY = ArrayScenario(
    disks=(DiskModel(access_seconds=0.001, rate=100e6),) * 2,
    stream_rate=49_152 / 5.0,
    hold_seconds=2.0,
    scheduler="lazy",
    load=Load(window_seconds=0.2),
)
SLOW = TINY.with_(disks=(DiskModel(access_seconds=4.0, rate=100e6),) * 2, hold_seconds=20.0)
STREAMS = 4


@pytest.fixture
def library(tmp_path):
    films = places(asked(DEMANDS["uniform"], 2, STREAMS, 1), 2)
    return make_library(tmp_path / "films", TINY, films, 1)


@pytest.fixture(params=["toast", "film per disk", "raid0 of 32 KiB"])
def rival(request, tmp_path):
    if request.param != "toast":
        need_mounts(tmp_path)
    return RIVALS[request.param]


@pytest.mark.lab
@pytest.mark.slow
async def test_clients_play_from_any_of_them(tmp_path, library, rival):
    told = await play(
        rival,
        TINY,
        library,
        "uniform",
        STREAMS,
        seed=1,
        folder=tmp_path / "runs",
    )
    assert told["streams"] == STREAMS
    assert told["reads"] >= STREAMS
    assert told["server_cores"] >= 0
    assert list((tmp_path / "runs").iterdir()) == []


@pytest.mark.lab
@pytest.mark.slow
async def test_a_run_ends_when_a_client_has_starved(tmp_path, library):
    began = time.monotonic()
    told = await play(
        RIVALS["toast"], SLOW, library, "uniform", STREAMS, seed=1, folder=tmp_path / "runs"
    )
    assert told["incidents"] > 0
    assert time.monotonic() - began < SLOW.hold_seconds


@pytest.mark.lab
@pytest.mark.slow
async def test_clients_that_pull_tell_what_a_server_could_feed(tmp_path, library, rival):
    how = {"seconds": 1.0, "seed": 1, "folder": tmp_path / "runs"}
    slow = TINY.with_(disks=(DiskModel(access_seconds=0.1, rate=100e6),) * 2)
    told = await pull(rival, slow, library, STREAMS, **how)
    assert 0 < told["streams_worth"] < 2 * slow.model_streams


@pytest.mark.slow
def test_films_are_made_once(tmp_path):
    library = make_library(tmp_path / "films", TINY, [0, 3], 1)
    names = sorted(path.name for path in library.films.iterdir())
    assert names == ["film-0.bin", "film-3.bin"]
    size = library.films.joinpath("film-3.bin").stat().st_size
    assert size == library.extents * TINY.unit_bytes
    made = library.films.joinpath("film-3.bin").stat().st_mtime_ns
    assert make_library(tmp_path / "films", TINY, [3, 0], 1) == library
    assert library.films.joinpath("film-3.bin").stat().st_mtime_ns == made
    make_library(tmp_path / "films", TINY, [1], 1)
    assert [path.name for path in library.films.iterdir()] == ["film-1.bin"]


def test_films_that_nobody_waits_for_are_not_made(tmp_path):
    with pytest.raises(LabError, match="not wanted any more"):
        make_library(tmp_path / "films", TINY, [0], 1, unwanted=lambda: True)
    assert not (tmp_path / "films" / "ready").exists()


def test_films_that_cannot_be_made_are_a_line(tmp_path):
    (tmp_path / "films").write_text("in the way")
    with pytest.raises(LabError, match="the films cannot be made"):
        make_library(tmp_path / "films", TINY, [0], 1)


def test_what_a_session_computes_is_counted():
    before = cpu_seconds(os.getsid(0))
    until = time.process_time() + 0.05
    while time.process_time() < until:
        pass
    assert cpu_seconds(os.getsid(0)) >= before + 0.03
