"""Figures of our own: what lies between viewers, in round trips, loss and the ways to send."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from experiments.figures.claims import apart, lies_in
from experiments.figures.figure import Figure, FigureCell, make_cell
from experiments.figures.results import Results
from experiments.swarms.presets import SCALES
from experiments.swarms.scenario import Link

__all__ = ["PATHS", "PATHS_STARTS"]

_MS: Final = 1e-3
_NEAR: Final = "0.1 ms"
_ROUND_TRIPS: Final = (_NEAR, "20 ms", "50 ms", "100 ms", "200 ms")
_LOSSES: Final = ("0.5 % lost", "1 % lost", "2 % lost", "5 % lost")
_CONTROLS: Final = ("reno", "bbr")
_UTP: Final = "uTP"
_ASYMMETRIC: Final = "1 up, 8 down"


def _path(upload_bps: float, seconds: float = 50 * _MS, loss: float = 0.0) -> dict[str, Any]:
    """Fields of a scenario whose round trips take so long, and in which all lose so much."""
    return {
        "links": (Link(upload_bps=upload_bps, latency_seconds=seconds / 2, loss=loss),),
        "server_latency_seconds": seconds / 2,
        "server_loss": loss,
    }


def _paths(bit_rate: float) -> Mapping[str, Mapping[str, Any]]:
    """Whatever is not said is 50 ms without loss, over TCP with the machine's own control."""
    lossy = _path(bit_rate, loss=0.01)
    uneven = _path(bit_rate / 2)
    uneven["links"] = (replace(uneven["links"][0], download_bps=4 * bit_rate),)
    return {
        **{label: _path(bit_rate, float(label.split()[0]) * _MS) for label in _ROUND_TRIPS},
        **{label: _path(bit_rate, loss=float(label.split()[0]) / 100) for label in _LOSSES},
        **{f"{name}, 1 % lost": {**lossy, "congestion_control": name} for name in _CONTROLS},
        _UTP: {**_path(bit_rate), "utp": True},
        _ASYMMETRIC: uneven,
    }


def _cells(scale: str) -> tuple[FigureCell, ...]:
    return tuple(
        make_cell(scale, "hybrid", "2 Mb/s", extra={"path": label}, changes=changes)
        for label, changes in _paths(SCALES[scale].film.bit_rate_bps).items()
    )


def _at(path: str) -> dict[str, str]:
    return {"path": path}


def _most_stalls(results: Results) -> float:
    return max(cell.estimate("stalls").mean for cell in results.cells)


def _slowest_start(results: Results) -> float:
    """Seconds beyond ten round trips, of the cells without loss."""
    return max(
        results.mean("start_seconds_p95", **_at(label)) - 10 * float(label.split()[0]) * _MS
        for label in _ROUND_TRIPS
    )


PATHS: Final = Figure(
    name="paths",
    title="What lies between viewers, hybrid, streaming, 2 Mb/s",
    x=("path",),
    series="picker",
    cells=_cells,
    claims=(
        lies_in("nobody stalls on any path", _most_stalls, 0.0, 0.0, lambda value: f"{value:g}"),
        apart(
            "round trips of 200 ms change less than 5 points",
            [(_at(label), _at(_NEAR)) for label in _ROUND_TRIPS[1:]],
            0.05,
        ),
        apart(
            "a loss of 2 % changes less than 5 points",
            [(_at(label), _at("50 ms")) for label in _LOSSES[:-1]],
            0.05,
        ),
        apart(
            "which congestion control TCP has changes less than 3 points at 1 % loss",
            [(_at(f"{name}, 1 % lost"), _at("1 % lost")) for name in _CONTROLS],
            0.03,
        ),
        apart("uTP changes less than 3 points", [(_at(_UTP), _at("50 ms"))], 0.03),
    ),
    note=(
        "The claims are our own. Round trips are 50 ms where none is said, uplinks as fast as the"
        " film but in the last. The simulator knows round trips and uplinks, but no packets."
    ),
)
"""Not one of the source's."""

PATHS_STARTS: Final = replace(
    PATHS,
    name="paths-starts",
    title="First pictures by what lies between viewers: seconds, 19 of 20",
    field="start_seconds_p95",
    claims=(
        lies_in(
            "a first picture takes ten round trips and half a second at most",
            _slowest_start,
            -10.0,
            0.5,
            lambda value: f"ten round trips and {value:.2f} s",
        ),
    ),
)
"""The same runs."""
