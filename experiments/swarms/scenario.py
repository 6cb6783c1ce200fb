"""A swarm to try out, as data: who watches what, when, over which links, by which policies.

Both engines take the same scenario. Pure: nothing here reads a clock, a file or a global generator.
Bit rates stand here as people write them, in bits per second (`_bps`); everything behind them is in
bytes per second. Times are seconds.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

import numpy as np

from experiments.bound import Behaviour
from experiments.errors import ScenarioError
from experiments.swarms.clients import create_options
from toast.common.errors import UsageError
from toast.common.geometry import BLOCK_BYTES, Geometry
from toast.policy.lookahead import create_horizon
from toast.policy.neighbours import create_neighbours
from toast.policy.pickers import create_picker

__all__ = [
    "ArrivalKind",
    "Arrivals",
    "Choking",
    "Client",
    "Film",
    "Link",
    "Scenario",
    "SwarmViewer",
]

_MOST_VIEWERS: Final = 10_000
_MOST_FILM_BYTES: Final = 1 << 42
_MOST_PIECES: Final = 1 << 20


class ArrivalKind(StrEnum):
    """How viewers come."""

    UNIFORM = "uniform"
    """One every `spacing_seconds`."""
    POISSON = "poisson"
    """At random, one every `spacing_seconds` on average."""
    ALL_AT_ONCE = "all-at-once"
    """All at the beginning."""
    TRACE = "trace"
    """At the times given."""


class Choking(StrEnum):
    """Whom a viewer who still downloads sends to."""

    TIT_FOR_TAT = "tit-for-tat"
    """To those who send most to it, and to one at random (stock BitTorrent)."""
    SEED = "seed"
    """To those who take most from it, as one does who has everything (source, fig. 5.7)."""


class Client(StrEnum):
    """What viewers run."""

    TOAST = "toast"
    """Our viewer."""
    UNICAST = "unicast"
    """A plain HTTP player: no swarm at all."""
    WEB_SEED_SEQUENTIAL = "web-seed-sequential"
    """Stock libtorrent, pieces in order, the server as a BEP 19 web seed."""
    WEB_SEED_DEADLINES = "web-seed-deadlines"
    """Stock libtorrent with deadlines on the next pieces, the server as a BEP 19 web seed."""
    NAIVE = "naive"
    """In-order priorities, and the whole piece from the server shortly before it is due."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Film:
    """What is watched."""

    bit_rate_bps: float = 2e6
    """Bits of film per second."""
    duration_seconds: float = 3600.0
    """How long it is."""
    piece_bytes: int = 256 * 1024
    """Size of a BitTorrent piece."""
    file: Path | None = None
    """A film of one's own, with its own times; its size and length then replace those above."""

    def __post_init__(self) -> None:
        _positive("film.bit_rate_bps", self.bit_rate_bps)
        _positive("film.duration_seconds", self.duration_seconds)
        if self.piece_bytes < BLOCK_BYTES or self.piece_bytes & (self.piece_bytes - 1):
            raise ScenarioError(
                f"film.piece_bytes is {self.piece_bytes}, and must be a power of two >= 16384"
            )
        if not BLOCK_BYTES <= self.film_bytes <= _MOST_FILM_BYTES:
            raise ScenarioError(
                f"film.duration_seconds: a film of {self.film_bytes} bytes fits no disk of a lab"
            )
        if self.film_bytes / self.piece_bytes > _MOST_PIECES:
            raise ScenarioError("film.piece_bytes is too small: the film has over a million pieces")

    @property
    def rate(self) -> float:
        """Bytes of film per second."""
        return self.bit_rate_bps / 8

    @property
    def film_bytes(self) -> int:
        """Its size."""
        return round(self.rate * self.duration_seconds)

    @property
    def geometry(self) -> Geometry:
        """How it is cut."""
        return Geometry(self.film_bytes, self.piece_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrivals:
    """When viewers come."""

    kind: ArrivalKind = ArrivalKind.UNIFORM
    """In which manner."""
    spacing_seconds: float = 36.0
    """From one to the next; the mean, if it is left to chance."""
    times_seconds: tuple[float, ...] = ()
    """For a trace: when each viewer comes."""

    def __post_init__(self) -> None:
        if self.kind is not ArrivalKind.ALL_AT_ONCE:
            _at_least("arrivals.spacing_seconds", self.spacing_seconds, 0.0)
        for time in self.times_seconds:
            _at_least("arrivals.times_seconds", time, 0.0)
        if (self.kind is ArrivalKind.TRACE) != bool(self.times_seconds):
            raise ScenarioError("arrivals.times_seconds is for kind = 'trace', and needed there")

    def times(self, viewers: int, rng: np.random.Generator) -> tuple[float, ...]:
        """When each of so many viewers comes, rising, the first at 0.

        Raises:
            ScenarioError: a trace of another length.
        """
        match self.kind:
            case ArrivalKind.UNIFORM:
                return tuple(n * self.spacing_seconds for n in range(viewers))
            case ArrivalKind.POISSON:
                gaps = rng.exponential(self.spacing_seconds, max(0, viewers - 1))
                return (0.0, *np.cumsum(gaps).tolist())
            case ArrivalKind.ALL_AT_ONCE:
                return (0.0,) * viewers
            case ArrivalKind.TRACE:
                if len(self.times_seconds) != viewers:
                    raise ScenarioError(
                        f"arrivals.times_seconds has {len(self.times_seconds)} times"
                        f" for {viewers} viewers"
                    )
                first = min(self.times_seconds)
                return tuple(sorted(time - first for time in self.times_seconds))


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """The link of one class of viewers."""

    upload_bps: float = 2e6
    """Upload cap, bits per second."""
    download_bps: float | None = None
    """Download cap, bits per second; None: no cap."""
    latency_seconds: float = 0.0
    """One-way delay of everything that such a viewer sends."""
    loss: float = 0.0
    """Share of the packets that such a viewer sends that are lost, by chance; real viewers only."""
    share: float = 1.0
    """How many viewers are of this class, in proportion to the others' shares."""

    def __post_init__(self) -> None:
        _at_least("links.upload_bps", self.upload_bps, 0.0)
        if self.download_bps is not None:
            _positive("links.download_bps", self.download_bps)
        _at_least("links.latency_seconds", self.latency_seconds, 0.0)
        _share("links.loss", self.loss)
        _positive("links.share", self.share)

    @property
    def upload_rate(self) -> float:
        """Upload cap, bytes per second."""
        return self.upload_bps / 8

    @property
    def download_rate(self) -> float | None:
        """Download cap, bytes per second; None: no cap."""
        return None if self.download_bps is None else self.download_bps / 8


@dataclass(frozen=True, slots=True)
class SwarmViewer:
    """One viewer of a scenario.

    Attributes:
        number: from 0, in the order of arrival.
        arrives_seconds: after the beginning of the run.
        link: how it is connected.
        seek: when it jumps, in seconds after its arrival, and to which film time; None: never.
        leaves_seconds: after its arrival, when it goes for good, wherever the film is; None: it
            stays as long as its behaviour says.
    """

    number: int
    arrives_seconds: float
    link: Link
    leaves_seconds: float | None = None
    seek: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A swarm, all of it.

    Raises:
        ScenarioError: it cannot exist; the message names the field.
    """

    name: str = "scenario"
    """A word for it, for files and titles."""
    film: Film = field(default_factory=Film)
    """What is watched."""
    viewers: int = 300
    """How many watch."""
    arrivals: Arrivals = field(default_factory=Arrivals)
    """When they come."""
    behaviour: Behaviour = Behaviour.STREAMING
    """When they leave."""
    leaving_share: float = 0.0
    """Share of the viewers who leave sooner: at a moment left to chance, evenly over the film."""
    seeking_share: float = 0.0
    """Share of the viewers who jump once: at a moment and to a place left to chance."""
    links: tuple[Link, ...] = field(default_factory=lambda: (Link(),))
    """Over what they are connected: one class, or a mix."""
    client: Client = Client.TOAST
    """What they run; what follows `client_options` up to `connections` is for ours alone."""
    client_options: Mapping[str, Any] = field(default_factory=dict)
    """What can be chosen of a client that is not ours."""
    picker: str = "hybrid"
    """Piece picker, by name."""
    picker_options: Mapping[str, Any] = field(default_factory=dict)
    """Its parameters."""
    horizon: str = "transfer"
    """Give-up rule, by name."""
    horizon_options: Mapping[str, Any] = field(default_factory=dict)
    """Its parameters."""
    neighbours: str = "ahead"
    """Whom viewers connect to, by name."""
    neighbours_options: Mapping[str, Any] = field(default_factory=dict)
    """Its parameters."""
    buffer_fraction: float | None = None
    """Share of the film that a viewer may keep; None: all of it."""
    request_queue_seconds: float = 1.0
    """How far ahead requests are queued at a neighbour."""
    choking: Choking = Choking.TIT_FOR_TAT
    """Whom viewers send to while they download."""
    upload_slots: int = 8
    """Peers that a viewer sends to at once."""
    peer_exchange: bool = False
    """Whether viewers tell each other of others."""
    connections: int = 60
    """Most peers that a viewer is connected to."""
    seed_upload_bps: float = 2e6
    """Upload cap of the operator's seed; 0: there is none."""
    origin_rate_bps: float | None = None
    """Most that the VoD server sends, all viewers together; None: no cap."""
    server_latency_seconds: float = 0.0
    """One-way delay of everything that the operator's machine sends."""
    server_loss: float = 0.0
    """Share of the packets that it sends that are lost, by chance; real viewers only."""
    congestion_control: str = ""
    """TCP's on an emulated network, by the kernel's name; empty: the machine's; real viewers
    only."""
    utp: bool = False
    """Whether viewers reach each other over uTP alone, and not over TCP; real viewers only."""
    run_seconds: float | None = None
    """When the run ends, after the first arrival; None: when the last viewer has seen the film."""
    random_seed: int = 1
    """Of all chance."""

    def __post_init__(self) -> None:
        if not self.name or not all(c.isalnum() or c in "._-" for c in self.name):
            raise ScenarioError(
                f"name is {self.name!r}, and must be letters, digits, '.', '_', '-'"
            )
        if not 1 <= self.viewers <= _MOST_VIEWERS:
            raise ScenarioError(f"viewers is {self.viewers}, and must be from 1 to {_MOST_VIEWERS}")
        if not self.links:
            raise ScenarioError("links is empty: give one class of viewers at least")
        for name, make in _POLICIES.items():
            _check_policy(name, make, getattr(self, name), getattr(self, f"{name}_options"))
        _check_policy("client", create_options, self.client, self.client_options)
        if self.buffer_fraction is not None and not 0 < self.buffer_fraction <= 1:
            raise ScenarioError(
                f"buffer_fraction is {self.buffer_fraction}, and must be above 0 and at most 1"
            )
        self._check_restless()
        _share("server_loss", self.server_loss)
        _positive("request_queue_seconds", self.request_queue_seconds)
        for name in ("upload_slots", "connections"):
            _at_least(name, getattr(self, name), 1)
        for name in ("origin_rate_bps", "run_seconds"):
            if getattr(self, name) is not None:
                _positive(name, getattr(self, name))
        for name in ("seed_upload_bps", "server_latency_seconds"):
            _at_least(name, getattr(self, name), 0.0)
        _at_least("random_seed", self.random_seed, 0)

    def _check_restless(self) -> None:
        for name in ("leaving_share", "seeking_share"):
            _share(name, getattr(self, name))
        if self.seeking_share and self.client is not Client.TOAST:
            raise ScenarioError(f"seeking_share is for our own client alone, not for {self.client}")

    @property
    def needs_network(self) -> bool:
        """Whether something of it can only be had between machines, real or emulated."""
        delays = (self.server_latency_seconds, *(link.latency_seconds for link in self.links))
        return any(delays) or self.loses

    @property
    def loses(self) -> bool:
        """Whether packets are lost in it."""
        return any((self.server_loss, *(link.loss for link in self.links)))

    def crowd(self) -> tuple[SwarmViewer, ...]:
        """Every viewer, in the order of arrival: the same for the same scenario.

        Classes are dealt out evenly over the arrivals, in proportion to their shares.
        """
        rng = np.random.default_rng([self.random_seed, 0xA221])
        times = self.arrivals.times(self.viewers, rng)
        shares = np.array([link.share for link in self.links], dtype=np.float64)
        shares /= shares.sum()
        leaving, seeks = self._leaving(), self._seeks()
        dealt = np.zeros(len(self.links))
        crowd = []
        for number, time in enumerate(times):
            # The class that lags most behind its share of those who have come.
            chosen = int(np.argmax((number + 1) * shares - dealt))
            dealt[chosen] += 1
            link, leaves = self.links[chosen], leaving.get(number)
            crowd.append(SwarmViewer(number, time, link, leaves, seeks.get(number)))
        return tuple(crowd)

    def _leaving(self) -> dict[int, float]:
        """Who leaves sooner, and how long after its arrival."""
        rng = np.random.default_rng([self.random_seed, 0x1EAF])
        count = round(self.leaving_share * self.viewers)
        who = rng.permutation(self.viewers)[:count]
        moments = rng.uniform(0.0, self.film.duration_seconds, count)
        return dict(zip(who.tolist(), moments.tolist(), strict=True))

    def _seeks(self) -> dict[int, tuple[float, float]]:
        """Who jumps, how long after its arrival, and to which film time."""
        rng = np.random.default_rng([self.random_seed, 0x5EEC])
        count = round(self.seeking_share * self.viewers)
        who = rng.permutation(self.viewers)[:count].tolist()
        jumps = rng.uniform(0.0, self.film.duration_seconds, (count, 2)).tolist()
        return {number: (after, to) for number, (after, to) in zip(who, jumps, strict=True)}

    @property
    def end_seconds(self) -> float:
        """When the run is over at the latest, if nobody stalls."""
        last = self.crowd()[-1].arrives_seconds + self.film.duration_seconds
        return last if self.run_seconds is None else max(last, self.run_seconds)

    def with_(self, **changes: Any) -> "Scenario":
        """The same but for some fields."""
        return replace(self, **changes)


_POLICIES: Final = {
    "picker": create_picker,
    "horizon": create_horizon,
    "neighbours": create_neighbours,
}


def _check_policy(field_name: str, make: Any, name: str, options: Mapping[str, Any]) -> None:
    try:
        make(name, **options)
    except UsageError as error:
        raise ScenarioError(f"{field_name}: {error}") from error


def _positive(name: str, value: float) -> None:
    if not (math.isfinite(value) and value > 0):
        raise ScenarioError(f"{name} is {value}, and must be above 0")


def _share(name: str, value: float) -> None:
    if not 0 <= value <= 1:
        raise ScenarioError(f"{name} is {value}, and must be from 0 to 1")


def _at_least(name: str, value: float, least: float) -> None:
    if not (math.isfinite(value) and value >= least):
        raise ScenarioError(f"{name} is {value}, and must be at least {least:g}")
