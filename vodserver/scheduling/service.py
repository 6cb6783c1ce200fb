"""How long a disk takes, learned from the reads that it did."""

from typing import Final

__all__ = ["DEFAULT_ACCESS_SECONDS", "DEFAULT_RATE", "ServiceModel"]

DEFAULT_ACCESS_SECONDS: Final = 0.017
DEFAULT_RATE: Final = 525e6 / 8
"""The thesis's disks (chapter 3): 17 ms and 525 Mb/s, until a disk has shown its own figures."""

_TYPICAL_BYTES: Final = 1 << 20
_DECAY: Final = 0.95
"""Weight of an observation after one more: about the last 20 reads count, so that a disk which
begins to stutter is known for it within a second or two of reading."""

_SLOPE_WEIGHT: Final = float(1 << 17) ** 2
"""How much spread of the sizes (bytes squared) it takes to trust their slope: reads of one size
say what a read costs, but not how much of that is access and how much transfer."""

_CLIP: Final = 4.0
"""An observation moves the fit by no more than this many mean deviations at once."""


class ServiceModel:
    """Exponentially weighted least squares of seconds = t_a + bytes / r_d.

    One late read (a remapped sector, a busy bus) is clipped to a few mean deviations and hardly
    moves the fit; reads that go on being late widen the deviation each time, and are believed
    after a few.

    Args:
        access_seconds: t_a to begin with, > 0.
        rate: r_d to begin with, bytes per second, > 0.

    Attributes:
        access_seconds: t_a, >= 0.
        rate: r_d, bytes per second, > 0.
        deviation: mean absolute error of the fit, seconds.
        reads: how many reads it has learned from.
        typical_bytes: mean size of the reads.
    """

    __slots__ = (
        "_prior",
        "_weight",
        "_xx",
        "_xy",
        "_y",
        "access_seconds",
        "deviation",
        "rate",
        "reads",
        "typical_bytes",
    )

    def __init__(
        self, access_seconds: float = DEFAULT_ACCESS_SECONDS, rate: float = DEFAULT_RATE
    ) -> None:
        if not (access_seconds > 0 and rate > 0):
            raise ValueError("a disk takes time for an access and for each byte")
        self._prior = (access_seconds, 1 / rate)
        self.access_seconds = access_seconds
        self.rate = rate
        self.typical_bytes = float(_TYPICAL_BYTES)
        self.deviation = 0.25 * self.seconds(_TYPICAL_BYTES)
        self.reads = 0
        self._weight = 0.0
        self._y = 0.0  # weighted mean of the seconds
        self._xx = 0.0  # weighted sums of squares about the means
        self._xy = 0.0

    def seconds(self, size: float, count: float = 1.0) -> float:
        """What `count` reads of `size` bytes in all are expected to take."""
        return count * self.access_seconds + size / self.rate

    def remaining(self, size: float, elapsed: float) -> float:
        """What a read that has lasted `elapsed` seconds is expected to take yet.

        A read that is overdue is expected to go on for as long as it is overdue: the later it is,
        the less likely is it that all is well.
        """
        return max(abs(self.seconds(size) - elapsed), self.deviation)

    def learn(self, size: int, seconds: float) -> None:
        """Take one read into the fit."""
        self.reads += 1
        if self._weight == 0.0:
            self.typical_bytes = float(size)
            self._y = seconds
            self.deviation = 0.25 * seconds
        else:
            expected = self.seconds(size)
            most = _CLIP * self.deviation
            error = min(max(seconds - expected, -most), most)
            seconds = expected + error
            self.deviation += (1 - _DECAY) * 2 * (abs(error) - self.deviation)
            # Reads that never vary must not make the first one that does an outlier for ever.
            self.deviation = max(self.deviation, 0.01 * expected)
        # Weighted incremental covariance (West 1979), older observations decaying.
        self._weight = _DECAY * self._weight + 1
        dx = size - self.typical_bytes
        self.typical_bytes += dx / self._weight
        dy = seconds - self._y
        self._y += dy / self._weight
        self._xx = _DECAY * self._xx + dx * (size - self.typical_bytes)
        self._xy = _DECAY * self._xy + dx * (seconds - self._y)
        self._solve()

    def _solve(self) -> None:
        access, per_byte = self._prior
        x, y = self.typical_bytes, self._y
        # What the slope would be if this disk were like the prior's, only faster or slower.
        usual = per_byte * y / (access + per_byte * x)
        slope = (self._xy + _SLOPE_WEIGHT * usual) / (self._xx + _SLOPE_WEIGHT)
        # Neither part can be negative; both cases keep the line through the means.
        steepest = y / x if x > 0 else slope
        slope = min(max(slope, 0.01 * usual), steepest)
        self.access_seconds = max(y - slope * x, 0.0)
        self.rate = 1 / max(slope, 1e-15)
