"""Fill in the tables of pages that are measured, from docs/evidence/swarms.

    .venv/bin/python docs/tables.py

A table stands between `<!-- table NAME -->` and `<!-- end NAME -->`. `tests/test_docs.py` fails
while one of them is not what this writes.
"""  # noqa: INP001  # a script beside the pages that it fills in, no package

import itertools
import json
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from experiments.figures.agreement import TIE

ROOT: Final = Path(__file__).parents[1]
EVIDENCE: Final = ROOT / "docs/evidence/swarms"

BEHAVIOURS: Final = ("streaming", "seeding", "download-only")
PICKERS: Final = ("hybrid", "in-order", "beta", "rarest-first")
UPLINKS: Final = {"2e6": "full", "1.5e6": "three quarters", "1e6": "half"}
"""Bits per second, as sweeps write them, and what that is of the film's rate."""

FIGURES: Final = (*(f"5.{n}" for n in range(3, 12)), "arrivals")
VERDICTS: Final = {True: "reproduced", False: "not", None: "cannot tell"}

CLIENTS: Final = {"toast": "**ours**"} | {
    name: f"`{name}`" for name in ("naive", "unicast", "web-seed-sequential", "web-seed-deadlines")
}

Cell = tuple[str, str, str]
"""Behaviour, uplinks, picker."""


def simulated() -> dict[Cell, dict[str, Any]]:
    """Of each cell: offload, its 95 % interval, bound."""
    found = {}
    for figure in ("5.6", "5.5", "5.3"):  # 5.3 has every cell of viewers who leave at the end
        for cell in _read(f"figure-{figure}-sim-compressed.json")["cells"]:
            axes = cell["axes"]
            uplinks = f"{float(axes['upload'].removesuffix(' Mb/s')):g}e6"
            found[axes["behaviour"], uplinks, axes["picker"]] = cell
    for cell in _read("three-quarters-sim-compressed.json"):
        axes = cell["axes"]
        found[axes["behaviour"], axes["links.upload_bps"], axes["picker"]] = cell
    return found


def real(cell: Cell) -> dict[str, Any] | None:
    """The result of 300 real viewers and its commit, if there is one of the cell."""
    behaviour, uplinks, picker = cell
    name = f"real-compressed-picker-{picker}-upload_bps-{uplinks}-behaviour-{behaviour}-1.json"
    path = EVIDENCE / "sweep-compressed" / name
    if not path.exists():
        return None
    record: dict[str, Any] = json.loads(path.read_text("utf-8"))
    result: dict[str, Any] = record["result"]
    if not (result["upload_cap_respected"] and result["verified"]):
        raise ValueError(f"{name}: a cap was exceeded, or a film is not whole")
    return {**result, "commit": record["commit"]}


def beside_real() -> Iterable[str]:
    """Real viewers beside simulated ones."""
    heads = "behaviour", "uplinks", "picker", "real", "sim", "bound", "real, of the bound"
    yield f"| {' | '.join(heads)} | halts (real) | commit (real) |"
    yield "|---|---|---|---|---|---|---|---|---|"
    cells = simulated()
    for behaviour in BEHAVIOURS:
        for uplinks, share in UPLINKS.items():
            for picker in PICKERS:
                sim, seen = cells[behaviour, uplinks, picker], real((behaviour, uplinks, picker))
                columns = [
                    behaviour,
                    share,
                    picker,
                    "",
                    _mean(sim),
                    f"{sim['bound']:.3f}",
                    "",
                    "",
                    "",
                ]
                if seen is not None:
                    columns[3] = f"{seen['offload']:.3f}"
                    columns[6] = f"{seen['efficiency']:.0%}".replace("%", " %")
                    columns[7] = str(seen["stalls"])
                    if seen["stalls"]:
                        columns[7] += f", of {seen['stall_seconds']:.2g} s"
                    columns[8] = seen["commit"][:7]
                yield f"| {' | '.join(columns)} |"


def agreement() -> Iterable[str]:
    """How far apart the two are, in points of offload."""
    heads = "cells that both have", "farthest apart", "next", "mean", "pickers in the same order"
    yield f"| {' | '.join(heads)} |"
    yield "|---|---|---|---|---|"
    both = {cell: sim for cell, sim in simulated().items() if real(cell) is not None}
    seen = {cell: _real_offload(cell) for cell in both}
    apart = {cell: 100 * abs(seen[cell] - sim["offload"]) for cell, sim in both.items()}
    far = sorted(apart, key=lambda cell: -apart[cell])[:2]
    worst = [f"{apart[cell]:.1f}: {cell[2]}, {cell[0]}, {UPLINKS[cell[1]]}" for cell in far]
    alike = [
        (both[one]["offload"] - both[other]["offload"]) * (seen[one] - seen[other]) > 0
        for one, other in itertools.combinations(both, 2)
        if one[:2] == other[:2] and abs(both[one]["offload"] - both[other]["offload"]) > TIE
    ]
    mean = sum(apart.values()) / len(apart)
    yield f"| {len(both)} | {' | '.join(worst)} | {mean:.1f} | {sum(alike)} of {len(alike)} |"


def _real_offload(cell: Cell) -> float:
    result = real(cell)
    assert result is not None, "asked of cells that have one"
    return float(result["offload"])


def claims() -> Iterable[str]:
    """What the source says of its figures, and what was seen."""
    yield "| figure | seeds | the source says | seen | |"
    yield "|---|---|---|---|---|"
    for figure in FIGURES:
        told = _read(f"figure-{figure}-sim-compressed.json")
        seeds = max(len(cell["seeds"]) for cell in told["cells"])
        for claim in told["claims"]:
            verdict = VERDICTS[claim["reproduced"]]
            yield f"| {figure} | {seeds} | {claim['claim']} | {claim['words']} | {verdict} |"


def baselines() -> Iterable[str]:
    """Ours beside what a person would use instead, each with the same few viewers."""
    heads = "behaviour", "uplinks", "client", "offload", "bound", "halts", "halted, s"
    yield f"| {' | '.join(heads)} | start p50, ms | start p95, ms | wasted |"
    yield "|---|---|---|---|---|---|---|---|---|---|"
    records = [json.loads(path.read_text("utf-8")) for path in (EVIDENCE / "baselines").iterdir()]
    for behaviour in BEHAVIOURS[:2]:
        for uplinks in ("2 Mb/s", "1 Mb/s"):
            for client, name in CLIENTS.items():
                place = {"behaviour": behaviour, "upload": uplinks, "client": client}
                (result,) = (each["result"] for each in records if each["axes"] == place)
                starts = (round(1000 * result[f"start_seconds_p{n}"]) for n in (50, 95))
                waste = result["waste"]
                columns = [behaviour, uplinks, name, f"{result['offload']:.3f}"]
                columns += [f"{result['bound']:.3f}", str(result["stalls"])]
                columns += [f"{result['stall_seconds']:.2f}", *(str(start) for start in starts)]
                columns += ["" if waste is None else f"{waste:.1%}".replace("%", " %")]
                yield f"| {' | '.join(columns)} |"


TABLES: Final[Mapping[str, Callable[[], Iterable[str]]]] = {
    "agreement": agreement,
    "baselines": baselines,
    "beside-real": beside_real,
    "claims": claims,
}


def filled(page: str) -> str:
    """A page with its tables as they are now.

    Raises:
        ValueError: a table is named that there is none of.
    """
    for name in re.findall(r"<!-- table (\S+) -->", page):
        if name not in TABLES:
            raise ValueError(f"there is no table {name}, only {', '.join(TABLES)}")
        begin, end = f"<!-- table {name} -->\n", f"<!-- end {name} -->"
        before, _, rest = page.partition(begin)
        _, found, after = rest.partition(end)
        if not found:
            raise ValueError(f"the table {name} has no end")
        page = before + begin + "\n".join(TABLES[name]()) + "\n" + end + after
    return page


def _mean(cell: Mapping[str, Any]) -> str:
    width = cell["half_width_95"]
    return f"{cell['offload']:.3f}" + (f" ± {width:.3f}" if round(width, 3) >= 0.001 else "")


def _read(name: str) -> Any:
    return json.loads((EVIDENCE / name).read_text("utf-8"))


PAGES: Final = ("docs/baselines.md", "docs/swarms.md")


def main() -> None:
    """Fill in every page."""
    for name in PAGES:
        path = ROOT / name
        path.write_text(filled(path.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main()
