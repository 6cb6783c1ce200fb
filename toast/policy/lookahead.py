"""The give-up horizon: how soon a piece may be due and still be begun with peers.

The source ("Toast", ch. 5): a piece that holds 4 s of video, needed in less than 4 s, cannot come
in time from a peer slower than the bit rate; it is left to the server. Too short a horizon wastes
what comes late, too long a one gives to the server what a peer could have brought.
"""

import math
from collections.abc import Callable
from typing import Any, Protocol

from toast.common.registry import Registry
from toast.policy.errors import PolicyError

__all__ = [
    "FixedHorizon",
    "HorizonRule",
    "PeerRate",
    "TransferHorizon",
    "create_horizon",
    "horizon_names",
]


class HorizonRule(Protocol):
    """Says how much slack a piece must have to be asked of peers."""

    @property
    def name(self) -> str:
        """The name it is registered under."""

    def horizon(
        self,
        *,
        piece_bytes: int,
        film_rate: float,
        peer_rate: float | None,
        queued_bytes: int,
        hand_over_seconds: float,
    ) -> float:
        """The horizon in seconds.

        Args:
            piece_bytes: size of a piece.
            film_rate: bytes of film per second.
            peer_rate: bytes/second at which neighbours were lately seen to bring one piece, or
                None while nobody knows.
            queued_bytes: asked of those neighbours and not yet come: it comes first.
            hand_over_seconds: what the origin needs if a piece must be taken from peers after all.
        """


class TransferHorizon:
    """The time for one piece behind all that is queued, and for the hand-over if it fails.

    Args:
        lo: least horizon, seconds.
        hi: greatest horizon, seconds. With scarce uplinks 15 s were still worth their price.

        safety: factor on the expected transfer time. A piece that just misses is sent twice: at
            half upload 1.5 instead of 1 cut the waste from 8 % to 1.5 % of what peers sent.

    Raises:
        PolicyError: the bounds are no range, or the factor is less than one.
    """

    name = "transfer"

    def __init__(self, lo: float = 0.5, hi: float = 30.0, safety: float = 1.5) -> None:
        if not 0 <= lo <= hi:
            raise PolicyError(f"horizon: {lo} to {hi} s is no range")
        if not safety >= 1:
            raise PolicyError(f"horizon: a safety factor of {safety} is less than 1")
        self.safety = safety
        self.lo = lo
        self.hi = hi

    def horizon(
        self,
        *,
        piece_bytes: int,
        film_rate: float,
        peer_rate: float | None,
        queued_bytes: int,
        hand_over_seconds: float,
    ) -> float:
        """Seconds; while no peer's rate is known, peers are taken to keep up with the film."""
        rate = film_rate if peer_rate is None else peer_rate
        if rate <= 0:
            return self.hi
        seconds = self.safety * (queued_bytes + piece_bytes) / rate + hand_over_seconds
        return min(max(seconds, self.lo), self.hi)


class FixedHorizon:
    """Always the same: for experiments, and as the rule to beat.

    Args:
        seconds: the horizon.

    Raises:
        PolicyError: it is negative.
    """

    name = "fixed"

    def __init__(self, seconds: float = 4.0) -> None:
        if not seconds >= 0:
            raise PolicyError(f"horizon: {seconds} s is not possible")
        self.seconds = seconds

    def horizon(
        self,
        *,
        piece_bytes: int,  # noqa: ARG002 - the protocol's
        film_rate: float,  # noqa: ARG002 - the protocol's
        peer_rate: float | None,  # noqa: ARG002 - the protocol's
        queued_bytes: int,  # noqa: ARG002 - the protocol's
        hand_over_seconds: float,  # noqa: ARG002 - the protocol's
    ) -> float:
        """The seconds given."""
        return self.seconds


class PeerRate:
    """How fast peers send, remembered: what a horizon rule needs to know of them.

    A rise counts at once. A fall is believed slowly, and only while something is asked for: an
    idle link says nothing of its speed.

    Args:
        memory_seconds: in which a rate that is no longer seen falls to 37 %.

    Attributes:
        value: bytes/second; None until peers have sent something.
    """

    def __init__(self, memory_seconds: float = 10.0) -> None:
        self.value: float | None = None
        self._memory_seconds = memory_seconds
        self._at: float | None = None

    def observe(self, now: float, rate: float, *, busy: bool) -> None:
        """Take note of a rate.

        Args:
            now: the time, seconds.
            rate: bytes/second that all neighbours together send.
            busy: whether anything is asked of them.
        """
        elapsed = 0.0 if self._at is None else max(0.0, now - self._at)
        self._at = now
        if self.value is None or rate > self.value:
            self.value = rate if rate > 0 else self.value
        elif busy:
            keep = math.exp(-elapsed / self._memory_seconds)
            self.value = max(rate + (self.value - rate) * keep, 1.0)


_RULES: Registry[HorizonRule] = Registry("horizon rule", PolicyError)
_FACTORIES: dict[str, Callable[..., HorizonRule]] = {
    "transfer": TransferHorizon,
    "fixed": FixedHorizon,
}
for _name, _factory in _FACTORIES.items():
    _RULES.register(_name, _factory)


def create_horizon(name: str, **params: Any) -> HorizonRule:
    """A horizon rule by name.

    Raises:
        PolicyError: no such rule, or not its parameters.
    """
    return _RULES.create(name, **params)


def horizon_names() -> tuple[str, ...]:
    """The names of all horizon rules, sorted."""
    return _RULES.names()
