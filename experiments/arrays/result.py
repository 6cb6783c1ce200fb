"""What a run of an array came to. Pure."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

__all__ = ["ArrayResult", "conclude"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayResult:
    """The figures of a run."""

    streams: int
    """That were let in."""

    refused: int
    """That were not."""

    lost: int
    """Streams of which a part was on no disk that could bring it."""

    incidents: int
    """Times that a client's buffer was empty."""

    starved_streams: int
    """Streams that this happened to."""

    starved_mean_seconds: float
    """Mean length of an incident; 0 if there was none."""

    starved_max_seconds: float
    """The longest."""

    starved_seconds: float
    """All of them together."""

    reads: int
    """That the disks made."""

    response_mean_seconds: float
    """From when a read was due to when it was there, those from memory included."""

    response_p50_seconds: float
    """The median."""

    response_p99_seconds: float
    """The 99th percentile."""

    busy_share: float | None
    """Of the disks' time, from the beginning of the last stream on; None: not measured."""

    hit_share: float | None
    """Of the reads that streams wanted, those that were in memory or on their way already; None:
    not measured."""

    model_streams: float
    """N of the closed form."""

    def to_dict(self) -> dict[str, Any]:
        """As plain data, for JSON."""
        return asdict(self)


def conclude(
    *,
    incidents: Sequence[Sequence[float]],
    responses: Sequence[float],
    refused: int,
    lost: int,
    reads: int,
    busy_share: float | None,
    hit_share: float | None,
    model_streams: float,
) -> ArrayResult:
    """The figures of a run.

    Args:
        incidents: of each stream that was let in, how long each starvation lasted.
        responses: seconds that each read took.
        refused: streams that were not let in.
        lost: streams that could not be read on.
        reads: that the disks made.
        busy_share: of the disks' time.
        hit_share: of the reads that cost no disk anything.
        model_streams: N of the closed form.
    """
    lengths = np.array([length for each in incidents for length in each], dtype=np.float64)
    took = np.array(responses if len(responses) else [0.0])
    return ArrayResult(
        streams=len(incidents),
        refused=refused,
        lost=lost,
        incidents=len(lengths),
        starved_streams=sum(bool(each) for each in incidents),
        starved_mean_seconds=round(float(lengths.mean()), 4) if len(lengths) else 0.0,
        starved_max_seconds=round(float(lengths.max()), 4) if len(lengths) else 0.0,
        starved_seconds=round(float(lengths.sum()), 3),
        reads=reads,
        response_mean_seconds=round(float(took.mean()), 5),
        response_p50_seconds=round(float(np.median(took)), 5),
        response_p99_seconds=round(float(np.quantile(took, 0.99)), 5),
        busy_share=None if busy_share is None else round(busy_share, 4),
        hit_share=None if hit_share is None else round(hit_share, 4),
        model_streams=round(model_streams, 2),
    )
