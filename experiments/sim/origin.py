"""The VoD server, and what one viewer knows of the way to it."""

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from experiments.sim.cut import Cut
from experiments.sim.links import Transfer
from toast.common.geometry import BLOCK_BYTES
from toast.policy.handover import Order, OriginEstimate

if TYPE_CHECKING:
    from experiments.sim.viewer import SimViewer

__all__ = ["Asked", "Fetch", "OriginMeter", "asked_by"]

# As the real client: what it assumes before it has measured, and how it judges what it measured.
_ASSUMED = OriginEstimate(rtt_seconds=0.1, rate=2_500_000.0, up=True)
_SAMPLES = 20
_LEAST_BYTES = 64 * 1024


class Asked(NamedTuple):
    """A range of the film that the server was asked for.

    Attributes:
        seconds: when, after the beginning of the run.
        offset: first byte.
        size: bytes.
    """

    seconds: float
    offset: int
    size: int


def asked_by(order: Order, cut: Cut, now: float) -> Iterator[Asked]:
    """The ranges of an order."""
    start = cut.geometry.piece_start(order.piece)
    for first, end in order.blocks:
        size = cut.size(order.piece, (1 << end) - (1 << first))
        yield Asked(now, start + first * BLOCK_BYTES, size)


class OriginMeter:
    """Pessimistic, as the real client's: nine of ten answers begin sooner, and come faster."""

    __slots__ = ("_rates", "_rtts", "estimate")

    def __init__(self) -> None:
        self._rtts: deque[float] = deque(maxlen=_SAMPLES)
        self._rates: deque[float] = deque(maxlen=_SAMPLES)
        self.estimate = _ASSUMED

    def note(self, rtt: float, seconds: float, size: int) -> None:
        """An answer has come."""
        self._rtts.append(rtt)
        if size >= _LEAST_BYTES and seconds > 0:
            self._rates.append(size / seconds)
        rates = sorted(self._rates)
        self.estimate = OriginEstimate(
            rtt_seconds=sorted(self._rtts)[int(len(self._rtts) * 0.9)],
            rate=rates[len(rates) // 10] if rates else _ASSUMED.rate,
            up=True,
        )


class Fetch(Transfer):
    """The answer to one order.

    Args:
        viewer: who asked.
        order: for what.
    """

    __slots__ = ("_asked_at", "_begun_at", "blocks", "order", "size", "viewer")

    def __init__(self, viewer: "SimViewer", order: Order) -> None:
        world = viewer.world
        super().__init__(world.origin, viewer.downlink, world.settings.line_rate)
        self.viewer = viewer
        self.order = order
        self.blocks = sum((1 << end) - (1 << first) for first, end in order.blocks)
        self.size = world.cut.size(order.piece, self.blocks)
        self.left = float(self.size)
        self._asked_at = self._begun_at = world.events.now
        if world.asked is not None:
            world.asked += asked_by(order, world.cut, world.events.now)
        wait = viewer.latency + world.settings.server_seconds + world.server_latency
        world.events.at(world.events.now + wait, self._begin)

    def _begin(self, _: object) -> None:
        if self.viewer.is_watching:
            self._begun_at = self.viewer.world.events.now
            self.uplink.start(self)

    def sent(self) -> bool:
        """All of it is here."""
        now = self.viewer.world.events.now
        self.viewer.meter.note(self._begun_at - self._asked_at, now - self._begun_at, self.size)
        self.viewer.supplied(self)
        return False
