"""From what viewers report and the operator counts to the figures of a run. Pure.

The formulas are those of docs/measures.md; every figure can be computed again from the reports.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from experiments.bound import Behaviour, FluidScenario, ViewerPlan, offload_bound
from experiments.decoder import DecodeResult
from experiments.errors import LabError

__all__ = ["OperatorBytes", "RunFacts", "ViewerReport", "failures", "summarize"]

_CAP_SLACK = 1.02
_CAP_SLACK_BYTES = 64 * 1024
_RECEIPTS_SLACK = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewerReport:
    """What one viewer says of its viewing; bytes, seconds, unix seconds."""

    film_bytes: int
    start_seconds: float
    stalls: int
    stall_seconds: float
    bytes_from_peers: int
    bytes_from_seed: int
    bytes_from_origin: int
    bytes_wasted: int
    bytes_uploaded: int
    presence_seconds: float
    arrived_at: float
    departed_at: float
    sha256: str | None
    complete: bool
    choice_share: float | None
    requested_pieces: int
    bytes_regretted: int = 0
    origin_payload_by_reason: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def from_event(cls, event: Mapping[str, Any], *, viewer: str) -> "ViewerReport":
        """Read a report as `toast watch --json` prints it; what it has besides is left aside.

        Raises:
            LabError: a field is missing, or of the wrong kind.
        """
        values: dict[str, Any] = {}
        for name, kinds in _KINDS.items():
            value = event.get(name)
            if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
                raise LabError(f"the report of {viewer} has no usable '{name}' ({value!r})")
            values[name] = value
        reasons = values["origin_payload_by_reason"]
        if not all(isinstance(count, int) for count in reasons.values()):
            raise LabError(f"the report of {viewer} counts no bytes by reason ({reasons!r})")
        return cls(**values)


_COUNTS = "film_bytes stalls bytes_from_peers bytes_from_seed bytes_from_origin bytes_wasted"
_TIMES = "start_seconds stall_seconds presence_seconds arrived_at departed_at"
_KINDS: dict[str, tuple[type, ...]] = {
    **dict.fromkeys((*_COUNTS.split(), "bytes_uploaded", "requested_pieces"), (int,)),
    "bytes_regretted": (int,),
    "origin_payload_by_reason": (dict,),
    **dict.fromkeys(_TIMES.split(), (int, float)),
    "sha256": (str, type(None)),
    "complete": (bool,),
    "choice_share": (int, float, type(None)),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorBytes:
    """What the operator's programs sent, counted at their own sockets."""

    http: int
    """By the VoD server over HTTP: films, .torrent files, titles, and all headers."""
    seed: int
    """By its seed: pieces and protocol."""
    tracker: int
    """By the tracker."""

    @property
    def total(self) -> int:
        """All of it."""
        return self.http + self.seed + self.tracker


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """Everything that the figures of one run are computed from."""

    film_bytes: int
    duration_seconds: float
    film_sha256: str
    upload_cap: float
    behaviour: Behaviour
    reports: Sequence[ViewerReport]
    operator: OperatorBytes
    decode: DecodeResult | None


def summarize(facts: RunFacts) -> dict[str, Any]:
    """The figures of a run, under the names that docs/measures.md gives them.

    Raises:
        LabError: nobody watched.
    """
    reports = facts.reports
    if not reports:
        raise LabError("nobody watched: there is nothing to measure")
    played = facts.film_bytes * len(reports)
    offload = 1 - facts.operator.total / played
    bound = offload_bound(_scenario(facts))
    from_peers = sum(report.bytes_from_peers for report in reports)
    wasted = sum(report.bytes_wasted for report in reports)
    receipts = sum(report.bytes_from_seed + report.bytes_from_origin for report in reports)
    served = facts.operator.http + facts.operator.seed
    starts = [report.start_seconds for report in reports]
    requested = sum(report.requested_pieces for report in reports)
    chosen = sum((report.choice_share or 0.0) * report.requested_pieces for report in reports)
    decode = facts.decode
    return {
        "viewers": len(reports),
        "film_bytes": facts.film_bytes,
        "duration_seconds": facts.duration_seconds,
        "offload": round(offload, 4),
        "bound": round(bound, 4),
        "efficiency": round(offload / bound, 4) if bound > 0 else None,
        "copies": round(facts.operator.total / facts.film_bytes, 4),
        "waste": round(wasted / from_peers, 4) if from_peers else None,
        "stalls": sum(report.stalls for report in reports),
        "stall_seconds": round(sum(report.stall_seconds for report in reports), 3),
        "start_seconds_p50": _percentile(starts, 50),
        "start_seconds_p95": _percentile(starts, 95),
        "verified": all(r.complete and r.sha256 == facts.film_sha256 for r in reports),
        "decode_errors": decode.errors if decode else None,
        "frames_decoded": decode.frames if decode else None,
        "frames_expected": decode.expected_frames if decode else None,
        "decode_halt_seconds": decode.halt_seconds if decode else None,
        "upload_cap_respected": all(within_cap(r, facts.upload_cap) for r in reports),
        "operator_bytes": facts.operator.total,
        "operator_http_bytes": facts.operator.http,
        "operator_seed_bytes": facts.operator.seed,
        "operator_tracker_bytes": facts.operator.tracker,
        "receipts_bytes": receipts,
        "receipts_agree": _agree(served, receipts, wasted),
        "peer_bytes": from_peers,
        "wasted_bytes": wasted,
        "regretted_bytes": sum(report.bytes_regretted for report in reports),
        "origin_bytes_by_reason": dict(
            sorted(sum((Counter(r.origin_payload_by_reason) for r in reports), Counter()).items())
        ),
        "choice_share": round(chosen / requested, 4) if requested else None,
    }


def failures(figures: Mapping[str, Any]) -> list[str]:
    """What a run did not show of what every run must show, in words; empty if it is well."""
    found = []
    if figures["stalls"]:
        found.append(f"{figures['stalls']} stalls")
    if not figures["verified"]:
        found.append("a viewer's film is not the source's")
    if figures["decode_errors"]:
        found.append(f"{figures['decode_errors']} decoding errors")
    if not figures["upload_cap_respected"]:
        found.append("a viewer sent more than its cap")
    return found


def within_cap(report: ViewerReport, upload_cap: float) -> bool:
    """Whether a viewer sent no more than its cap allows for the time of its presence."""
    allowed = upload_cap * report.presence_seconds * _CAP_SLACK + _CAP_SLACK_BYTES
    return report.bytes_uploaded <= allowed


def _agree(served: int, receipts: int, wasted: int) -> bool:
    """Whether viewers received what the operator sent, within 2 %.

    A viewer cannot say from whom the bytes came that it threw away: they may all be the seed's, or
    none.
    """
    least, most = receipts * (1 - _RECEIPTS_SLACK), (receipts + wasted) * (1 + _RECEIPTS_SLACK)
    return least <= served <= most


def _scenario(facts: RunFacts) -> FluidScenario:
    """The run as it was, for the bound: real arrivals, and for seeding viewers the real end."""
    first = min(report.arrived_at for report in facts.reports)
    return FluidScenario(
        film_bytes=facts.film_bytes,
        duration_seconds=facts.duration_seconds,
        end_seconds=max(report.departed_at for report in facts.reports) - first,
        viewers=tuple(
            ViewerPlan(
                arrival_seconds=report.arrived_at - first,
                upload_rate=facts.upload_cap,
                behaviour=facts.behaviour,
            )
            for report in facts.reports
        ),
    )


def _percentile(values: Sequence[float], rank: float) -> float | None:
    """The nearest-rank percentile: a value that was measured; None where one is not a number."""
    if not all(math.isfinite(value) for value in values):
        return None
    return round(float(np.percentile(values, rank, method="inverted_cdf")), 4)
