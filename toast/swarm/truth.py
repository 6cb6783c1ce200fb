"""When to tell neighbours anew what is here: that costs a reconnect, so it is done seldom."""

from dataclasses import dataclass

__all__ = ["Truth"]

_MISLED_SECONDS = 15.0
_MANY = 64
_MANY_SECONDS = 2.0
_WANTED_SECONDS = 0.5
_RECONNECT_SECONDS = 2.0
_ALONE_SECONDS = 5.0


@dataclass(slots=True)
class Truth:
    """Counts how often neighbours asked for what was ejected. Pure; times are the caller's.

    A refused block costs its asker one round trip, a reconnect costs all neighbours several: so
    few refusals are let pass for 15 s. Many are not: libtorrent disconnects whom it had to refuse
    101 blocks in a row.

    Attributes:
        misled: blocks refused since everyone was told.
        must_be_told: whether we ourselves need it: an ejected piece is wanted again.
    """

    misled: int = 0
    must_be_told: bool = False
    _told_at: float = float("-inf")

    def is_due(self, now: float) -> bool:
        """Whether it is time to tell everyone."""
        since = now - self._told_at
        if self.must_be_told and since >= _WANTED_SECONDS:
            return True
        if self.misled >= _MANY and since >= _MANY_SECONDS:
            return True
        return self.misled > 0 and since >= _MISLED_SECONDS

    def is_free(self, now: float) -> bool:
        """Whether to tell at once where nobody is there who would have to reconnect."""
        return now - self._told_at >= _ALONE_SECONDS

    def is_settled(self, now: float) -> bool:
        """Whether all who will reconnect have had the time to."""
        return now - self._told_at >= _RECONNECT_SECONDS

    def told(self, now: float) -> None:
        """Everyone was told."""
        self._told_at = now
        self.misled = 0
        self.must_be_told = False
