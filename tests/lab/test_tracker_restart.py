"""The tracker is killed while real viewers watch: nobody halts, and it soon knows all again."""

import asyncio
import json
import shlex
import sys
from pathlib import Path

import pytest

from experiments.real import house
from experiments.real.engine import RealEngine
from experiments.swarms.scenario import Arrivals, Film, Link, Scenario
from tracker.settings import TrackerSettings

pytestmark = [pytest.mark.slow, pytest.mark.lab]


@pytest.mark.timeout(400)
async def test_real_viewers_do_not_notice_that_their_tracker_is_killed(
    full, figures, tmp_path, monkeypatch
):
    viewers, seconds, kill, down = (24, 90.0, 45.0, 3.0) if full else (6, 12.0, 6.0, 1.0)
    report = tmp_path / "report"
    stand_in = tmp_path / "toast-tracker"
    script = Path(__file__).with_name("mortal_tracker.py")
    stand_in.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {script} "$@"\n')
    stand_in.chmod(0o700)
    monkeypatch.setenv("MORTAL_REPORT", str(report))
    monkeypatch.setenv("MORTAL_KILL_SECONDS", str(kill))
    monkeypatch.setenv("MORTAL_DOWN_SECONDS", str(down))
    real = house.program
    monkeypatch.setattr(
        house, "program", lambda name: str(stand_in) if name == "toast-tracker" else real(name)
    )
    scenario = Scenario(
        name="restart",
        viewers=viewers,
        film=Film(bit_rate_bps=1e6, duration_seconds=seconds, piece_bytes=64 * 1024),
        arrivals=Arrivals(spacing_seconds=2.0),
        links=(Link(upload_bps=1e6),),
        picker_options={"in_order_seconds": seconds / 4},
        seed_upload_bps=0,
    )
    result = await asyncio.to_thread(RealEngine(tmp_path / "run").run, scenario, lambda _: None)

    told = json.loads(report.read_text())
    interval = TrackerSettings().interval_seconds
    figures |= {
        "restart_real_viewers": viewers,
        "restart_known_before": told["before"],
        "restart_known_at_once": told["at_once"],
        "restart_real_whole_after_seconds": round(told["whole_after"], 2),
        "restart_real_whole_after_intervals": round(told["whole_after"] / interval, 3),
        "restart_real_stalls": result.stalls,
        "restart_real_offload": result.offload,
    }
    assert result.stalls == 0
    assert result.verified
    assert told["before"] >= 2
    assert told["whole_after"] <= interval
