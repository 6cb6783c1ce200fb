"""The scenario of the source at three sizes (spec of the source, section 2)."""

from collections.abc import Mapping
from typing import Final

from experiments.swarms.scenario import Arrivals, Film, Scenario

__all__ = ["SCALES", "scaled"]

SCALES: Final[Mapping[str, Scenario]] = {
    # 300 viewers of an hour at 2 Mb/s in 4 h, one every 36 s for the first 3 h.
    "source": Scenario(
        name="source",
        film=Film(duration_seconds=858e6 / 250e3),
        arrivals=Arrivals(spacing_seconds=36.0),
        run_seconds=4 * 3600.0,
    ),
    # The same in a twentieth of the time, for real viewers: 100 watch at once here too.
    "compressed": Scenario(
        name="compressed",
        film=Film(duration_seconds=180.0),
        arrivals=Arrivals(spacing_seconds=1.8),
        picker_options={"in_order_seconds": 45.0},
        run_seconds=720.0,
    ),
    # Small enough for every change to be tried.
    "quick": Scenario(
        name="quick",
        viewers=20,
        film=Film(duration_seconds=45.0, piece_bytes=64 * 1024),
        arrivals=Arrivals(spacing_seconds=2.25),
        picker_options={"in_order_seconds": 11.0},
        run_seconds=90.0,
    ),
}
"""By name. The in-order range of hybrid is a quarter of the film, as the source's best was."""


def scaled(scale: str, *, upload: float = 1.0, picker: str = "hybrid") -> Scenario:
    """The scenario of the source.

    Args:
        scale: "source", "compressed" or "quick".
        upload: the viewers' upload cap as a share of the film's bit rate.
        picker: which one; hybrid comes with the range that fits the scale.
    """
    scenario = SCALES[scale]
    link = scenario.links[0]
    options = scenario.picker_options if picker == "hybrid" else {}
    return scenario.with_(
        picker=picker,
        picker_options=options,
        links=(type(link)(upload_bps=upload * scenario.film.bit_rate_bps),),
    )
