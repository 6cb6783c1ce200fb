"""The real server over emulated disks, in small: that it works, and not how fast."""

import io
import json

import pytest
from rich.console import Console

from experiments.arrays import confirm as confirming
from experiments.arrays.disk import DiskModel, Fault, FaultKind
from experiments.arrays.real import run_real, scaled
from experiments.arrays.result import conclude
from experiments.arrays.scenario import ArrayScenario, Load
from experiments.errors import LabError

TINY = ArrayScenario(
    disks=(DiskModel(access_seconds=0.001, rate=100e6),) * 2,
    stream_rate=49_152 / 5.0,
    hold_seconds=2.0,
    scheduler="lazy",
    load=Load(window_seconds=0.2),
)


def test_scaling_keeps_what_a_seek_takes_of_a_read():
    for disks in (2, 8):
        plain = ArrayScenario(disks=ArrayScenario().disks[:disks])
        ours = scaled(disks)
        assert ours.model_streams == pytest.approx(plain.model_streams * 0.3)
        model, source = ours.disks[0], plain.disks[0]
        assert model.access_seconds / model.seconds(ours.unit_bytes, 0.5, 0.5) == pytest.approx(
            source.access_seconds / source.seconds(plain.unit_bytes, 0.5, 0.5)
        )


@pytest.mark.slow
@pytest.mark.lab
async def test_clients_play_from_the_real_server(tmp_path):
    result = await run_real(TINY, 3, seed=1, folder=tmp_path)
    assert result.streams == 3
    assert result.reads >= 6
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.lab
async def test_a_film_that_no_disk_can_bring_is_an_error_in_a_line(tmp_path):
    dead = [Fault(disk=n, kind=FaultKind.DEATH) for n in (0, 1)]
    with pytest.raises(LabError, match="3 streams were not given"):
        await run_real(TINY, 3, seed=1, folder=tmp_path, faults=dead)


def test_what_was_confirmed_is_not_run_again(tmp_path, monkeypatch, capsys):
    asked = []

    async def fake(scenario, streams, *, seed, folder):
        asked.append((scenario.allocation, streams, seed))
        incidents = [[0.5]] if streams > 12 else [[]]
        return confirming_result(incidents)

    monkeypatch.setattr(confirming, "run_real", fake)
    monkeypatch.setattr(confirming, "sustained", lambda scenario, *, seed: 12)
    notes = Console(file=io.StringIO())
    for _ in range(2):
        told = confirming.confirm(tmp_path, seeds=2, notes=notes, placements=("rda",))
    assert asked == [("rda", 11, 1), ("rda", 13, 1), ("rda", 11, 2), ("rda", 13, 2)]
    assert (told["held_below"], told["starved_above"]) == (2, 2)
    assert json.loads((tmp_path / "4.2-real.json").read_text()) == told
    confirming.show_confirmed(told)
    assert "below: 2 of 2 hold; above: 2 of 2 starve" in capsys.readouterr().out


def confirming_result(incidents):
    return conclude(
        incidents=incidents,
        responses=[0.1],
        refused=0,
        lost=0,
        reads=1,
        busy_share=0.0,
        hit_share=0.0,
        model_streams=12.0,
    )
