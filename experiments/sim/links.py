"""Links: an uplink is shared equally by what it sends at once, as far as the downlinks take it.

Where a downlink is capped, each transfer into it gets an equal part of the cap at most, and what an
uplink cannot bring to one it gives to its others (max-min, per uplink). So no cap is ever exceeded.
Between two changes all rates are constant: only changes are events, and each costs as many steps as
the uplink has transfers, which upload slots keep few.
"""

import math
from abc import ABC, abstractmethod

from experiments.sim.events import Events

__all__ = ["Downlink", "Transfer", "Uplink"]

_DUST = 1e-3  # bytes: what rounding leaves of a transfer that is over


class Downlink:
    """What comes to one viewer.

    Args:
        rate: bytes/second at most; +inf if there is no cap.
    """

    __slots__ = ("incoming", "rate")

    def __init__(self, rate: float = math.inf) -> None:
        self.rate = rate
        self.incoming: dict[int, Transfer] = {}

    @property
    def share(self) -> float:
        """Bytes/second for each of the transfers."""
        return self.rate / (len(self.incoming) or 1)


class Transfer(ABC):
    """Bytes on their way from an uplink to a downlink; what becomes of them is its kind's matter.

    Attributes:
        left: bytes still to be sent.
        rate: bytes/second now.
        most_rate: of the line between them, bytes/second.
        active: whether the uplink sends it.
    """

    __slots__ = ("active", "downlink", "left", "most_rate", "rate", "uplink")

    def __init__(self, uplink: "Uplink", downlink: Downlink, most_rate: float = math.inf) -> None:
        self.uplink = uplink
        self.downlink = downlink
        self.most_rate = most_rate
        self.left = 0.0
        self.rate = 0.0
        self.active = False

    @abstractmethod
    def sent(self) -> bool:
        """All is sent. Returns whether there is more: then `left` says how much."""


class Uplink:
    """What one viewer, or the server, sends.

    Args:
        rate: bytes/second, all together; +inf if there is no cap.
        events: the time.
    """

    __slots__ = ("_events", "_limited", "_moved_at", "_version", "active", "rate", "sent_bytes")

    def __init__(self, rate: float, events: Events) -> None:
        self.rate = rate
        self.active: list[Transfer] = []
        self.sent_bytes = 0.0
        self._events = events
        self._moved_at = 0.0
        self._version = 0
        self._limited = math.isinf(rate)

    def start(self, transfer: Transfer) -> None:
        """Send something more, `left` bytes of it."""
        self.advance()
        transfer.active = True
        self.active.append(transfer)
        self._changed(transfer.downlink, transfer, comes=True)

    def stop(self, transfer: Transfer) -> None:
        """Send the rest of something no more."""
        if transfer.active:
            self.advance()
            self._drop(transfer)

    def advance(self) -> None:
        """Bring what is sent up to now."""
        now = self._events.now
        elapsed = now - self._moved_at
        if elapsed > 0:
            for transfer in self.active:
                moved = transfer.rate * elapsed
                transfer.left -= moved
                self.sent_bytes += moved
            self._moved_at = now

    def _drop(self, transfer: Transfer) -> None:
        transfer.active = False
        transfer.rate = 0.0
        self.active.remove(transfer)
        self._changed(transfer.downlink, transfer, comes=False)

    def _changed(self, downlink: Downlink, transfer: Transfer, *, comes: bool) -> None:
        """Someone came or went: share anew, also where others feed the same capped downlink."""
        if math.isfinite(downlink.rate):
            if comes:
                downlink.incoming[id(transfer)] = transfer
            else:
                del downlink.incoming[id(transfer)]
            for uplink in {t.uplink: None for t in downlink.incoming.values()}:
                if uplink is not self:
                    uplink.advance()
                    uplink.share()
        self.share()

    def share(self) -> None:
        """Give each transfer its rate; call it when something changed, after `advance`."""
        active = self.active
        if not active:
            self._version += 1
            return
        if self._limited or math.isfinite(active[0].downlink.rate) or len(active) > 1:
            self._fill()
        else:
            active[0].rate = min(self.rate, active[0].most_rate)
        self._expect()

    def _fill(self) -> None:
        if self._limited:
            for transfer in self.active:  # what one of them leaves helps no other
                transfer.rate = min(transfer.downlink.share, transfer.most_rate)
            return
        limits = sorted(
            ((min(t.downlink.share, t.most_rate), n) for n, t in enumerate(self.active))
        )
        rate, heads = self.rate, len(limits)
        for limit, place in limits:
            given = min(limit, rate / heads)
            self.active[place].rate = given
            rate -= given
            heads -= 1

    def _expect(self) -> None:
        """Look again when the next of them is sent."""
        self._version += 1
        soonest = math.inf
        for transfer in self.active:
            if transfer.rate > 0:
                seconds = transfer.left / transfer.rate
                soonest = min(soonest, seconds)
        if soonest < math.inf:
            self._events.at(self._moved_at + soonest, self._over, self._version)

    def _over(self, version: int) -> None:
        if version != self._version:
            return  # something changed since
        self.advance()
        ended = [transfer for transfer in self.active if transfer.left <= _DUST]
        for transfer in ended:
            if transfer.active and not transfer.sent() and transfer.active:
                self._drop(transfer)
        self._expect()
