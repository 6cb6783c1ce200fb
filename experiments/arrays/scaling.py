"""The source's array made small enough for a real run. Pure.

Only what is proportional is changed: a read takes longer, a stream brings fewer bytes, there are
fewer disks, and so fewer streams, films and extents in memory; what a seek takes of a read stays.
"""

from dataclasses import replace
from typing import Final

from experiments.arrays.disk import SATA_1, DiskModel
from experiments.arrays.scenario import ArrayScenario, Load
from experiments.arrays.work import Work

__all__ = ["FILM_SECONDS", "SCALED", "scaled", "scaled_work"]

FILM_SECONDS: Final = 60.0
"""A film of a real run goes round after so long, in the simulator as well: who has come to its end
may read what others have just read of its beginning."""

_SLOWER: Final = 10 / 3
"""How much longer a read takes than on the source's disks."""
_RATE: Final = 49_152.0
"""r_c, bytes per second: an extent of 5 s is a whole number of BitTorrent's blocks."""
_DISKS: Final = 4
_HOLD_SECONDS: Final = 45.0
_GAP_SECONDS: Final = 0.5
"""Between two streams that begin at random for as long as the run goes on."""
_WATCH_SECONDS: Final = 40.0
_AFTER_ARRIVALS_SECONDS: Final = 40.0


def scaled(disks: int) -> ArrayScenario:
    """The source's array with so many disks, scaled: a quarter of a second for a read."""
    thinner = ArrayScenario().stream_rate / _RATE
    disk = DiskModel(
        access_seconds=SATA_1.access_seconds * _SLOWER, rate=SATA_1.rate / thinner / _SLOWER
    )
    return ArrayScenario(
        disks=(disk,) * disks,
        stream_rate=_RATE,
        scheduler="lazy",
        hold_seconds=_HOLD_SECONDS,
        load=Load(window_seconds=5.0),
    )


SCALED: Final = scaled(_DISKS)


def scaled_work(work: Work) -> Work:
    """What is measured in a cell of the source's array, on the scaled one."""
    old = work.scenario
    new = SCALED.with_(
        allocation=old.allocation,
        scheduler=old.scheduler,
        faults=old.faults,
        admission=old.admission,
    )
    smaller = new.model_streams / old.model_streams
    load, streams = old.load, work.streams
    if load.mean_gap_seconds is not None:
        gap = _GAP_SECONDS
        if old.watch_seconds is not None:  # as many come while one is watched
            gap = load.mean_gap_seconds / smaller * _WATCH_SECONDS / old.watch_seconds
            streams = None if streams is None else round(streams * smaller)
            new = new.with_(watch_seconds=_WATCH_SECONDS)
        load = replace(load, mean_gap_seconds=gap)
        new = new.with_(hold_seconds=_AFTER_ARRIVALS_SECONDS)
    extents = round(old.cache_bytes / old.unit_bytes * smaller)
    new = new.with_(
        load=load, films=round(old.films * smaller), cache_bytes=extents * new.unit_bytes
    )
    return replace(work, scenario=new, streams=streams)
