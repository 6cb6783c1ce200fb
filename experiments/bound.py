"""The most that peers could have delivered in a scenario: the figure beside every measured offload.

A fluid relaxation. Uplinks are pooled, transfers take no time beyond their bytes, nobody chokes
anybody, and the server knows the future. Time goes in steps. In each step
  1. what a viewer's playhead has reached and it still lacks comes from the server;
  2. a piece that no present viewer holds is injected by the server, to the viewer that needs it
     first: one copy has to come from there in any case, and the earlier it is, the more uplinks
     can spread it (without this, viewers who arrive together could give each other nothing);
  3. the uplinks of all who are present send what present viewers lack and others hold, earliest
     due first. This loses no byte that another order would have brought in time.
A pooled uplink may serve its own viewer: to forbid that would make the figure depend on whom the
server injects to, and a cleverer injection could then pass it.
A viewer stays as long as its behaviour allows; a download-only viewer therefore takes its last
piece no sooner than it must. Who will leave sooner is known beforehand, as all else: it takes and
is counted for what it plays. Pure: numbers in, a number out.
"""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from experiments.errors import ScenarioError

__all__ = ["Behaviour", "FluidScenario", "ViewerPlan", "evenly_spaced", "offload_bound"]

_DUST = 1e-9  # share of a piece below which rounding alone is missing
_MAX_STEPS = 2_000_000


class Behaviour(StrEnum):
    """When a viewer leaves."""

    DOWNLOAD_ONLY = "download-only"
    """As soon as it has the whole film."""
    STREAMING = "streaming"
    """When its playhead reaches the end."""
    SEEDING = "seeding"
    """At the end of the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewerPlan:
    """One viewer of a scenario."""

    arrival_seconds: float
    """When it comes and starts to play."""
    upload_rate: float
    """Its upload cap in bytes per second; may be infinite."""
    download_rate: float | None = None
    """Its download cap in bytes per second; None for no cap."""
    behaviour: Behaviour = Behaviour.STREAMING
    """When it leaves."""
    stays_seconds: float | None = None
    """It goes so long after its arrival even if it has not seen all; None: it sees all."""
    seek: tuple[float, float] | None = None
    """So long after its arrival it jumps to this film time; None: it does not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FluidScenario:
    """Who watches what, and when."""

    film_bytes: int
    """Size of the film."""
    duration_seconds: float
    """Its length; bytes are due at a constant rate."""
    viewers: tuple[ViewerPlan, ...]
    """All viewers of the run."""
    pieces: int = 200
    """Into how many pieces the film is cut; more are finer and slower. A step is the time in which
    one piece plays."""
    end_seconds: float | None = None
    """When the run ends, for seeding viewers; None: when the last viewer has seen the film."""
    server_start_seconds: float = 0.0
    """What is due within this time after a viewer's arrival is the server's: no peer can be found
    and asked sooner. At 0 that is the first piece alone."""
    free_seed_rate: float = 0.0
    """Upload in bytes per second of a seed that has the film and whose bytes nobody counts."""

    def __post_init__(self) -> None:
        if self.film_bytes <= 0 or self.duration_seconds <= 0 or self.pieces < 1:
            raise ScenarioError("a scenario needs a film of some bytes, seconds and pieces")
        if not self.viewers:
            raise ScenarioError("a scenario needs a viewer")
        for viewer in self.viewers:
            if not np.isfinite(viewer.arrival_seconds) or not viewer.upload_rate >= 0:
                raise ScenarioError("a viewer needs a time of arrival and an upload cap >= 0")
            if viewer.download_rate is not None and not viewer.download_rate > 0:
                raise ScenarioError("a viewer's download cap is above 0, or None")
            if viewer.stays_seconds is not None and not viewer.stays_seconds >= 0:
                raise ScenarioError("a viewer stays for some seconds, or None")
            if viewer.seek is not None and not min(viewer.seek) >= 0:
                raise ScenarioError("a viewer seeks after some seconds to some seconds, or None")


def evenly_spaced(count: int, spacing_seconds: float, viewer: ViewerPlan) -> tuple[ViewerPlan, ...]:
    """Viewers like the given one, the first at its arrival, the others one per spacing."""
    return tuple(
        ViewerPlan(
            arrival_seconds=viewer.arrival_seconds + number * spacing_seconds,
            upload_rate=viewer.upload_rate,
            download_rate=viewer.download_rate,
            behaviour=viewer.behaviour,
            stays_seconds=viewer.stays_seconds,
            seek=viewer.seek,
        )
        for number in range(count)
    )


def offload_bound(scenario: FluidScenario) -> float:
    """The highest offload that any policy could reach: peer bytes / film bytes played.

    Arrivals are rounded to steps, so the figure is as fine as 1 / pieces.

    Raises:
        ScenarioError: the run would take more steps than anyone waits for.
    """
    return _Run(scenario).offload()


class _Run:
    """The state of one run; amounts are in pieces, times in steps."""

    def __init__(self, scenario: FluidScenario) -> None:
        viewers = scenario.viewers
        step = scenario.duration_seconds / scenario.pieces
        self.pieces = scenario.pieces
        arrivals = np.array([viewer.arrival_seconds for viewer in viewers])
        self.arrival = np.rint((arrivals - arrivals.min()) / step).astype(np.int64)
        self.due = self.arrival[:, None] + np.arange(self.pieces)[None, :]
        self.plays = np.ones(self.due.shape, dtype=np.bool_)
        for row, viewer in enumerate(viewers):
            if viewer.seek is not None:
                self._jump(row, *(min(self.pieces, round(at / step)) for at in viewer.seek))
        seen = np.where(self.plays, self.due, -1).max(axis=1) + 1  # when each has seen the film
        seen = np.maximum(seen, self.arrival)
        last = max(int(self.arrival.max()) + self.pieces, int(seen.max()))
        self.end = last
        if scenario.end_seconds is not None:
            run = round((scenario.end_seconds - float(arrivals.min())) / step)
            self.end = max(last, run)
        if self.end > _MAX_STEPS:
            raise ScenarioError("the run has too many steps: use fewer pieces or a shorter run")
        behaviours = [viewer.behaviour for viewer in viewers]
        self.leaves_early = np.array([b is Behaviour.DOWNLOAD_ONLY for b in behaviours])
        self.departure = np.where(
            np.array([b is Behaviour.SEEDING for b in behaviours]),
            self.end,
            seen - self.leaves_early,
        )
        stays = np.array([v.stays_seconds for v in viewers], dtype=np.float64) / step  # NaN: all
        played = np.where(np.isnan(stays), self.pieces, np.rint(stays))
        self.departure = np.minimum(
            self.departure,
            np.where(
                np.isnan(stays), self.end, self.arrival + np.where(np.isnan(stays), 0, played)
            ),
        )
        gone = self.arrival + np.where(np.isnan(stays), 2 * self.end, played)
        self.plays &= self.due < gone[:, None]
        per_step = step / (scenario.film_bytes / scenario.pieces)
        self.upload = np.array([viewer.upload_rate for viewer in viewers]) * per_step
        self.download = per_step * np.array(
            [np.inf if v.download_rate is None else v.download_rate for v in viewers]
        )
        self.free_seed = scenario.free_seed_rate * per_step
        self.order = np.argsort(self.due, axis=None, kind="stable")
        self.missing = np.ones(self.due.shape)
        server_start = int(np.ceil(scenario.server_start_seconds / step - _DUST))
        self.for_peers = self.due >= self.arrival[:, None] + max(1, server_start)
        self.peer_bytes = 0.0

    def _jump(self, row: int, after: int, to: int) -> None:
        """A viewer that has seen `after` pieces goes on with piece `to`."""
        self.due[row, max(after, to) :] += after - to
        self.plays[row, after:to] = False

    def offload(self) -> float:
        for now in range(self.end):
            present: npt.NDArray[np.bool_] = np.logical_and(
                self.arrival <= now, now < self.departure
            )
            # By the server, where it still is missing.
            self.missing[(self.due <= now) & self.plays] = 0.0
            if present.any() and (self.missing[present] > 0).any():
                taken = self._inject(present)
                self._share(now, present, taken)
        return self.peer_bytes / max(1, int(self.plays.sum()))

    def _inject(self, present: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
        """One copy of what nobody holds; returns what each viewer's downlink carried of it."""
        taken = np.zeros(len(present))
        lost = ~(self.missing[present] <= _DUST).any(axis=0) & self.plays[present].any(axis=0)
        if self.free_seed or not lost.any():
            return taken
        candidates = np.flatnonzero(present)
        pieces = np.flatnonzero(lost)
        place = np.ix_(candidates, pieces)
        due = np.where(self.plays[place], self.due[place], np.iinfo(np.int64).max)
        first = candidates[np.argmin(due, axis=0)]
        for piece, viewer in zip(pieces, first, strict=True):  # in order of due time per viewer
            amount = min(self.missing[viewer, piece], self.download[viewer] - taken[viewer])
            self.missing[viewer, piece] -= amount
            taken[viewer] += amount
        return taken

    def _share(
        self, now: int, present: npt.NDArray[np.bool_], taken: npt.NDArray[np.float64]
    ) -> None:
        """Let the pooled uplinks send for one step, earliest due first."""
        held = np.asarray((self.missing[present] <= _DUST).any(axis=0))
        if self.free_seed:
            held[:] = True
        wanted = present[:, None] & held[None, :] & self.for_peers & self.plays
        # The last piece ends a download-only viewer's stay: not before it must.
        wanted[:, -1] &= ~self.leaves_early | (self.due[:, -1] <= now + 1)
        need = np.where(wanted, self.missing, 0.0)
        limits = self.download - taken
        if np.isfinite(limits).any():
            sums = np.minimum(np.cumsum(need, axis=1), limits[:, None])
            need = np.diff(sums, axis=1, prepend=0.0)
        sums = np.cumsum(need.ravel()[self.order])
        budget = self.upload[present].sum() + self.free_seed
        sent = np.diff(np.minimum(sums, budget), prepend=0.0)
        self.peer_bytes += float(sent.sum())
        self.missing.ravel()[self.order] -= sent
