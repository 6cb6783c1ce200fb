"""Whether the real server sustains what the simulator says: less holds, more does not."""

import asyncio
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from experiments.arrays.real import SCALED, run_real
from experiments.arrays.search import sustained
from experiments.figures.jobs import commit, machine
from experiments.figures.make import write_whole

__all__ = ["CONFIRMED", "confirm", "show_confirmed"]

CONFIRMED: Final = "4.2"
"""The figure that can be made for real."""
_PLACEMENTS: Final = ("naive", "raid1", "rda")
_SHARES: Final = (0.95, 1.05)


def confirm(
    folder: Path,
    *,
    seeds: int,
    notes: Console,
    placements: Sequence[str] = _PLACEMENTS,
    shares: Sequence[float] = _SHARES,
) -> dict[str, Any]:
    """Run the real server at shares of what the simulator sustains, one after the other.

    What there is a result of already is not run again.

    Args:
        folder: of the results; one file.
        seeds: runs of each.
        notes: where it is told how far it is.
        placements: which.
        shares: of the simulator's number of streams.

    Raises:
        LabError: a run failed.
    """
    path = folder / f"{CONFIRMED}-real.json"
    rows: list[dict[str, Any]] = (
        json.loads(path.read_text("utf-8"))["runs"] if path.exists() else []
    )
    for seed in range(1, seeds + 1):
        for placement in placements:
            scenario = SCALED.with_(allocation=placement)
            for share in shares:
                place = {"placement": placement, "share": share, "seed": seed}
                if any(place.items() <= row.items() for row in rows):
                    continue
                limit = sustained(scenario, seed=seed)
                # At the least one stream to either side: arrays this small have few.
                streams = min(round(share * limit), limit - 1)
                if share > 1:
                    streams = max(round(share * limit), limit + 1)
                notes.print(f"{placement}: {streams} streams, {limit} simulated", highlight=False)
                load = round(os.getloadavg()[0], 2)
                result = asyncio.run(
                    run_real(scenario, streams, seed=seed, folder=folder / "real-runs")
                )
                rows.append(
                    {
                        **place,
                        "simulated_streams": limit,
                        "commit": commit(),
                        "load_before": load,
                        **result.to_dict(),
                    }
                )
                write_whole(path, (json.dumps(_summary(rows), indent=1) + "\n").encode())
    return _summary(rows)


def show_confirmed(confirmed: Mapping[str, Any]) -> None:
    """What came of it, on a terminal."""
    table = Table(box=None, pad_edge=False)
    for heading in ("placement", "simulated", "streams", "incidents", "mean, s", "longest, s"):
        table.add_column(heading, justify="right")
    for row in confirmed["runs"]:
        numbers = (row["simulated_streams"], row["streams"], row["incidents"])
        seconds = (row["starved_mean_seconds"], row["starved_max_seconds"])
        table.add_row(row["placement"], *map(str, numbers), *(f"{each:.2f}" for each in seconds))
    console = Console()
    console.print(table)
    console.print(
        f"below: {confirmed['held_below']} of {confirmed['runs_below']} hold; "
        f"above: {confirmed['starved_above']} of {confirmed['runs_above']} starve",
        highlight=False,
    )


def _summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    below = [row for row in rows if row["share"] < 1]
    above = [row for row in rows if row["share"] > 1]
    return {
        "figure": CONFIRMED,
        "engine": "real",
        "note": "Two disks, 5 s of film in reads of a quarter of a second: 3.3 times as long "
        "as the source's, with 15 times fewer bytes, and the same part of it a seek.",
        "machine": machine(),
        "held_below": sum(row["incidents"] == 0 for row in below),
        "runs_below": len(below),
        "starved_above": sum(row["incidents"] > 0 for row in above),
        "runs_above": len(above),
        "runs": rows,
    }
