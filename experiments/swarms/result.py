"""What a run came to: the facts that an engine hands in, and the figures that follow from them.

Both engines end here, so that a figure means the same whichever made it. Pure.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from experiments.swarms.fluid import bound_of
from experiments.swarms.scenario import Scenario

__all__ = ["LoadSample", "RunFacts", "RunResult", "ViewerRow", "conclude"]

_CAP_SLACK = 1.02
_CAP_SLACK_BYTES = 64 * 1024
_MOST_TIMES = 100
_FIRST = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewerRow:
    """One viewer of a run. Bytes, and seconds after the beginning of the run."""

    number: int
    arrived_at: float
    departed_at: float
    """When it left the swarm."""
    start_seconds: float | None
    """From its arrival to the first picture; None: there never was one."""
    stalls: int
    stall_seconds: float
    played_bytes: int
    """Distinct bytes of film that it played."""
    bytes_from_peers: int
    """Useful ones, from other viewers."""
    bytes_from_seed: int
    """Useful ones, from the operator's seed."""
    bytes_from_origin: int
    """From the VoD server."""
    bytes_wasted: int
    """Received from the swarm and thrown away."""
    bytes_regretted: int
    """From the VoD server, and brought by a peer in time all the same."""
    bytes_uploaded: int
    """All that it sent to peers."""
    upload_rate: float
    """Its upload cap, bytes per second."""
    origin_bytes_by_reason: Mapping[str, int] = field(default_factory=dict)
    """For what it asked the VoD server."""
    stalled_at: Sequence[float] = ()
    """When its stalls began."""
    is_right: bool = True
    """Whether its film is the source's, byte for byte, where that was looked at."""

    @property
    def is_within_cap(self) -> bool:
        """Whether it sent no more than its cap allows for the time of its presence."""
        presence = self.departed_at - self.arrived_at
        return self.bytes_uploaded <= self.upload_rate * presence * _CAP_SLACK + _CAP_SLACK_BYTES


@dataclass(frozen=True, slots=True)
class LoadSample:
    """The operator's load at one moment.

    Attributes:
        seconds: after the beginning of the run.
        http_bytes: sent by the VoD server so far.
        seed_bytes: sent by the seed so far.
        watching: viewers that watch.
    """

    seconds: float
    http_bytes: int
    seed_bytes: int
    watching: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """What an engine hands in."""

    engine: str
    rows: Sequence[ViewerRow]
    http_bytes: int
    """Sent by the VoD server, at its sockets."""
    seed_bytes: int
    """Sent by the operator's seed."""
    tracker_bytes: int
    """Sent by the tracker; 0 in the simulator."""
    total_bytes: int
    """Sent by everyone, operator and viewers, protocol included where it is known (fig. 5.11)."""
    load: Sequence[LoadSample]
    wall_seconds: float
    cpu_seconds: float
    peak_memory_bytes: int
    """Most memory that the run held, files in memory included."""
    pauses: Sequence[tuple[float, float]] = ()
    """When the machine let a program of the run stand still, and how long; in seconds."""
    notes: Sequence[str] = ()
    """What a reader must know, such as a choice that this engine can only come near to."""
    compiled: bool = False
    """Whether machine code made of the simulator's sources carried it out: see `cpu_seconds`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """The figures of a run, as they are kept: see docs/measures.md."""

    scenario: dict[str, Any]
    engine: str
    viewers: int
    offload: float
    bound: float
    efficiency: float | None
    copies: float
    stalls: int
    stall_seconds: float
    viewers_stalled: int
    start_seconds_p50: float | None
    start_seconds_p95: float | None
    waste: float | None
    regret_bytes: int
    peer_bytes: int
    operator_bytes: int
    operator_http_bytes: int
    operator_seed_bytes: int
    operator_tracker_bytes: int
    total_bytes: int
    origin_bytes_by_reason: dict[str, int]
    upload_used: float | None
    """Share of all upload capacity, over the viewers' presence, that was used."""
    upload_cap_respected: bool
    verified: bool
    load: list[list[float]]
    """[seconds, HTTP bytes so far, seed bytes so far, viewers watching] over time."""
    wall_seconds: float
    cpu_seconds: float
    peak_memory_bytes: int
    offload_first_ten: float | None = None
    """Of the viewers who came first, by what they received: a young swarm's."""
    stall_times: list[float] = field(default_factory=list)
    """Seconds at which stalls began, the first hundred."""
    pauses: list[list[float]] = field(default_factory=list)
    """[seconds, how long]: times at which the machine let the viewers' programs stand still."""
    notes: list[str] = field(default_factory=list)
    compiled: bool = False
    """Whether the simulator was compiled: that changes what the run cost, and nothing else."""

    def to_dict(self) -> dict[str, Any]:
        """As plain data, for JSON."""
        return asdict(self)


def conclude(scenario: Scenario, facts: RunFacts, described: Mapping[str, Any]) -> RunResult:
    """The figures of a run.

    Args:
        scenario: what was carried out.
        facts: what came of it.
        described: the scenario as plain data.
    """
    rows = facts.rows
    played = sum(row.played_bytes for row in rows)
    operator = facts.http_bytes + facts.seed_bytes + facts.tracker_bytes
    offload = 1 - operator / played if played else 0.0
    bound = bound_of(scenario)
    from_peers = sum(row.bytes_from_peers for row in rows)
    starts = [math.inf if row.start_seconds is None else row.start_seconds for row in rows]
    capacity = sum(row.upload_rate * (row.departed_at - row.arrived_at) for row in rows)
    reasons = sum((Counter(dict(row.origin_bytes_by_reason)) for row in rows), Counter[str]())
    return RunResult(
        scenario=dict(described),
        engine=facts.engine,
        viewers=len(rows),
        offload=round(offload, 4),
        bound=round(bound, 4),
        efficiency=round(offload / bound, 4) if bound > 0 else None,
        copies=round(operator / scenario.film.film_bytes, 4),
        stalls=sum(row.stalls for row in rows),
        stall_seconds=round(sum(row.stall_seconds for row in rows), 3),
        viewers_stalled=sum(row.stalls > 0 for row in rows),
        start_seconds_p50=_percentile(starts, 50),
        start_seconds_p95=_percentile(starts, 95),
        waste=round(sum(row.bytes_wasted for row in rows) / from_peers, 4) if from_peers else None,
        regret_bytes=sum(row.bytes_regretted for row in rows),
        peer_bytes=from_peers,
        operator_bytes=operator,
        operator_http_bytes=facts.http_bytes,
        operator_seed_bytes=facts.seed_bytes,
        operator_tracker_bytes=facts.tracker_bytes,
        total_bytes=facts.total_bytes,
        origin_bytes_by_reason=dict(sorted(reasons.items())),
        upload_used=(
            round(sum(row.bytes_uploaded for row in rows) / capacity, 4) if capacity else None
        ),
        upload_cap_respected=all(row.is_within_cap for row in rows),
        verified=all(row.is_right for row in rows),
        load=[[round(s.seconds, 2), s.http_bytes, s.seed_bytes, s.watching] for s in facts.load],
        wall_seconds=round(facts.wall_seconds, 2),
        cpu_seconds=round(facts.cpu_seconds, 2),
        peak_memory_bytes=facts.peak_memory_bytes,
        offload_first_ten=_offload_of(sorted(rows, key=lambda row: row.number)[:_FIRST]),
        stall_times=sorted(round(at, 2) for row in rows for at in row.stalled_at)[:_MOST_TIMES],
        pauses=[[round(at, 2), round(lasted, 3)] for at, lasted in facts.pauses[:_MOST_TIMES]],
        notes=list(facts.notes),
        compiled=facts.compiled,
    )


def _offload_of(rows: Sequence[ViewerRow]) -> float | None:
    """By what these viewers received; None if they played nothing."""
    played = sum(row.played_bytes for row in rows)
    from_operator = sum(row.bytes_from_origin + row.bytes_from_seed for row in rows)
    return round(1 - from_operator / played, 4) if played else None


def _percentile(values: Sequence[float], rank: float) -> float | None:
    """The nearest-rank percentile: a value that was measured; None where one is not a number."""
    if not values or not all(math.isfinite(value) for value in values):
        return None
    return round(float(np.percentile(values, rank, method="inverted_cdf")), 4)
