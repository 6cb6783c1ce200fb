"""Pressing play: the first picture beside plain HTTP, at 100 Mb/s and 50 ms below TCP."""

import asyncio
import os
import shutil
from pathlib import Path

import pytest

from experiments.start.films import long_film
from experiments.start.house import StartHouse
from experiments.start.lab import measure_decoder, measure_seeks, measure_start

pytestmark = [pytest.mark.lab, pytest.mark.slow]

CACHE = Path(__file__).parents[2] / "run" / "start"


@pytest.fixture(autouse=True)
def _able():
    if os.geteuid() or not Path("/dev/net/tun").exists():
        pytest.skip("a TUN network needs root and /dev/net/tun")
    if shutil.which("ffmpeg") is None:
        pytest.skip("the films are made with ffmpeg, which is not installed")


@pytest.fixture(scope="session")
def folder(full, tmp_path_factory):
    """Where films and the store are: kept for the next time in full size, they take a minute."""
    if not full:
        return tmp_path_factory.mktemp("start")
    CACHE.mkdir(parents=True, exist_ok=True)
    return CACHE


def note(figures, name, start):
    """The figures of a start, as `figures` wants them: numbers by name, in milliseconds."""
    told = start.as_json()
    for what in ("toast", "plain"):
        for quantile in ("p50", "p95"):
            figures[f"{name}_{what}_{quantile}_ms"] = told[what][quantile]
            figures[f"{name}_{what}_{quantile}_interval_ms"] = told[what][f"{quantile}_interval"]
    figures[f"{name}_extra_ms"] = told["extra"]
    figures[f"{name}_extra_interval_ms"] = told["extra_interval"]
    figures[f"{name}_plain_player"] = told["player"]
    figures[f"{name}_marks_ms"] = told["marks"]


@pytest.mark.timeout(2400)
async def test_the_first_picture(full, figures, folder):
    """Index in front and behind, Matroska; alone and with ten peers; also from the middle."""
    minutes, runs, crowds = (60, 20, (0, 10)) if full else (4, 1, (0,))
    kinds = ("front", "end", "mkv") if full else ("end",)
    films = [await asyncio.to_thread(long_film, folder, kind, minutes) for kind in kinds]
    worst: dict[str, float] = {"p50": 0.0, "p95": 0.0, "extra": -1.0}
    async with StartHouse.open(folder, films, peers=max(crowds)) as house:
        for film in films:
            for peers in crowds:
                async with house.peers(film, peers):
                    for place, seconds in (("begin", 0.0), ("half", film.duration / 2)):
                        start = await measure_start(
                            house, film, peers=peers, seconds=seconds, runs=runs
                        )
                        note(figures, f"start_{film.kind}_{peers}_peers_{place}", start)
                        worst["p50"] = max(worst["p50"], start.toast.p50)
                        worst["p95"] = max(worst["p95"], start.toast.p95)
                        worst["extra"] = max(worst["extra"], start.extra)
            if full:
                decoder = await measure_decoder(house, film, seconds=0.0, runs=5)
                for kind, took in decoder.items():
                    figures[f"start_{film.kind}_ffmpeg_{kind}_ms"] = round(took * 1e3, 1)
    for name, value in worst.items():
        figures[f"start_{name}_worst_ms"] = round(value * 1e3, 1)
    figures["start_congestion_control"] = house.network.facts["congestion_control"]
    report = house.network.report
    figures["start_forwarder_cpu_share"] = round(report["cpu_seconds"] / report["seconds"], 3)
    assert worst["p95"] < 30.0
    if full:
        assert worst["extra"] <= 0.1


@pytest.mark.timeout(600)
async def test_the_picture_after_a_seek(full, figures, folder):
    """To places that are not there; and 30 s back, which costs no byte."""
    film = await asyncio.to_thread(long_film, folder, "front" if full else "end", 60 if full else 4)
    async with StartHouse.open(folder, [film], peers=0) as house:
        seen = await measure_seeks(
            house, film, seeks=24 if full else 2, back_seconds=30.0 if full else 10.0
        )
    figures["seek_p50_ms"] = round(seen.seeks.p50 * 1e3, 1)
    figures["seek_p95_ms"] = round(seen.seeks.p95 * 1e3, 1)
    figures["seek_p95_interval_ms"] = [round(each * 1e3, 1) for each in seen.seeks.p95_interval]
    figures["seek_back_bytes"] = seen.back_bytes
    figures["seek_back_ms"] = round(seen.back_seconds * 1e3, 1)
    assert seen.back_bytes == 0
    if full:
        assert seen.seeks.p95 <= 0.5
