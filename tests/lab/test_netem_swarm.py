"""Real viewers on real NetEm, in a user-mode Linux guest: films whole, and nothing left."""

import asyncio
import json
import sys

import pytest

from experiments.processes import program
from tests.lab.guests import guests, needs_uml

pytestmark = [pytest.mark.lab, pytest.mark.slow, pytest.mark.timeout(400), needs_uml]

NETWORK = """
name = "the source's machines"
[classes.source]
preset = "source"
[[hosts]]
name = "server"
class = "source"
[[hosts]]
name = "viewer"
class = "source"
count = {viewers}
"""
SCENARIO = """
name = "{name}"
viewers = {viewers}
picker_options = {{ in_order_seconds = {in_order} }}
seed_upload_bps = 0
[film]
bit_rate_bps = 1e6
duration_seconds = {seconds}
piece_bytes = 65536
[arrivals]
spacing_seconds = {spacing}
[[links]]
upload_bps = 1e6
"""


async def test_a_swarm_watches_a_film_whole_over_netem(full, figures, tmp_path):
    """20 viewers at 1 Mb/s at full size, 3 otherwise; 4 ms on all that each machine sends."""
    before = guests()
    size = (
        {"viewers": 20, "seconds": 45, "spacing": 2.25, "in_order": 11}
        if full
        else {"viewers": 3, "seconds": 5, "spacing": 1, "in_order": 2}
    )
    network, scenario = tmp_path / "network.toml", tmp_path / "scenario.toml"
    network.write_text(NETWORK.format(**size))
    scenario.write_text(SCENARIO.format(name="netem", **size))
    words = ["swarm", scenario, "--engine", "real", "--network", network]
    words += ["--backend", "uml", "--congestion-control", "cubic", "--json"]
    run = await asyncio.create_subprocess_exec(
        sys.executable,
        program("toast-lab"),
        *map(str, words),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, errors = await run.communicate()
    assert run.returncode == 0, errors.decode()
    result = json.loads(output)
    assert any("by kernel (Linux 6" in note for note in result["notes"])
    assert any("congestion control cubic" in note for note in result["notes"])
    assert result["verified"]
    assert result["upload_cap_respected"]
    if full:
        assert result["stalls"] == 0
    for name in ("viewers", "offload", "bound", "stalls", "verified", "waste"):
        figures[f"netem_swarm_{name}"] = result[name]
    async with asyncio.timeout(60):
        while guests() - before:  # noqa: ASYNC110 - the kernel tells nobody
            await asyncio.sleep(0.05)
