"""The real server over emulated disks, in small: that it works, and not how fast."""

import json

import pytest

from experiments.arrays import real
from experiments.arrays.disk import DiskModel, Fault, FaultKind
from experiments.arrays.real import RealRun, run_real
from experiments.arrays.scenario import ArrayScenario, Load
from experiments.errors import LabError
from tests.experiments.arrays.make import make_result

TINY = ArrayScenario(
    disks=(DiskModel(access_seconds=0.001, rate=100e6),) * 2,
    stream_rate=49_152 / 5.0,
    hold_seconds=2.0,
    scheduler="lazy",
    load=Load(window_seconds=0.2),
)


@pytest.mark.slow
@pytest.mark.lab
async def test_clients_play_from_the_real_server(tmp_path):
    drawn = Load(zipf=1.0, clustered=True, mean_gap_seconds=0.05)
    scenario = TINY.with_(allocation="naive", load=drawn, films=4, cache_bytes=1 << 20)
    result = (await run_real(scenario, 3, seed=1, folder=tmp_path)).result
    assert result.streams == 3
    assert result.reads >= 6
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.lab
async def test_a_film_that_no_disk_can_bring_is_an_error_in_a_line(tmp_path):
    dead = TINY.with_(faults=tuple(Fault(disk=n, kind=FaultKind.DEATH) for n in (0, 1)))
    with pytest.raises(LabError, match="3 streams were not given"):
        await run_real(dead, 3, seed=1, folder=tmp_path)


@pytest.mark.slow
@pytest.mark.lab
async def test_streams_that_the_server_paces_end_with_their_film(tmp_path):
    scenario = TINY.with_(admission=True, watch_seconds=5.0)
    result = (await run_real(scenario, 3, seed=1, folder=tmp_path)).result
    assert (result.streams, result.refused, result.incidents) == (3, 0, 0)


async def test_faults_are_switched_as_the_scenario_has_them(tmp_path, monkeypatch):
    seen, slept = [], []
    path = tmp_path / "faults.json"
    now = 100.0

    async def sleep(seconds):
        nonlocal now
        if path.exists():
            seen.append([(row["disk"], row["share"]) for row in json.loads(path.read_text())])
        slept.append(seconds)
        now += seconds

    monkeypatch.setattr(real.asyncio, "sleep", sleep)
    monkeypatch.setattr(real.time, "monotonic", lambda: now)
    faults = (
        Fault(disk=0, share=0.2),
        Fault(disk=1, share=1.0, begin_seconds=2.0, end_seconds=5.0),
    )
    await real._switch_faults(TINY.with_(faults=faults), 101.0, path)
    assert slept == [1.0, 2.0, 3.0]
    assert seen == [[(0, 0.2)], [(0, 0.2), (1, 1.0)]]
    assert [row["disk"] for row in json.loads(path.read_text())] == [0]


def test_how_late_a_run_woke_is_told_with_its_figures():
    told = RealRun(make_result([[0.5]]), 0.01234, 0.2).to_dict()
    assert (told["incidents"], told["late_p99_seconds"], told["late_max_seconds"]) == (
        1,
        0.0123,
        0.2,
    )
