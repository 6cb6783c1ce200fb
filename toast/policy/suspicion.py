"""Suspicion: who is banned because pieces were wrong, and who is only unlucky in company.

A piece that fails its hash says that somebody lied, not who. libtorrent counts against everyone who
had a part in it, and speaks no more with whom it has counted against too often: where many lie,
also with some who do not. It gives two proofs: one peer sent all of the piece; or the block that a
peer sent is not the block of the piece that passed. Proof bans for good. Without it a peer is kept
out until the pieces in question were had elsewhere, and then given another chance: who lies again
is found out again, and each chance comes later than the one before.
"""

from dataclasses import dataclass

from toast.policy.neighbours import Address

__all__ = ["Suspicion", "SuspicionSettings"]


@dataclass(frozen=True, slots=True)
class SuspicionSettings:
    """How long suspicion lasts where nothing is proven."""

    pardon_seconds: float = 1.0
    """So long after it was suspected for the first time a peer gets another chance; twice as long
    the second time, and so on."""
    unsettled_seconds: float = 20.0
    """It waits until the pieces in question have passed; but not longer than this: some may never
    be fetched again."""


@dataclass(slots=True)
class _Suspect:
    """Of one peer: since when, how often, and which pieces failed that it had a part in."""

    since: float
    times: int
    pieces: set[int]


class Suspicion:
    """Remembers who had a part in what failed.

    Args:
        settings: see `SuspicionSettings`.
    """

    def __init__(self, settings: SuspicionSettings | None = None) -> None:
        self._settings = settings or SuspicionSettings()
        self._asked: dict[int, set[Address | None]] = {}  # None: what came from elsewhere
        self._failed: dict[int, set[Address | None]] = {}
        self._out: dict[Address, _Suspect] = {}
        self._times: dict[Address, int] = {}

    @property
    def out(self) -> frozenset[Address]:
        """Who is kept out for now."""
        return frozenset(self._out)

    @property
    def suspected(self) -> frozenset[Address]:
        """Who was ever kept out without proof."""
        return frozenset(self._times)

    def asked(self, piece: int, address: Address | None) -> None:
        """Some block of a piece may come from there; None: from no peer."""
        self._asked.setdefault(piece, set()).add(address)

    def passed(self, piece: int) -> None:
        """A piece is right: whoever lied about it has been compared with it."""
        self._asked.pop(piece, None)
        self._failed.pop(piece, None)
        for suspect in self._out.values():
            suspect.pieces.discard(piece)

    def failed(self, piece: int) -> Address | None:
        """A piece is wrong, and thrown away. Returns who lied, if all of it came from one peer."""
        parts = self._asked.pop(piece, set())
        self._failed.setdefault(piece, set()).update(parts)
        for address in parts & self._out.keys():
            if address is not None:
                self._out[address].pieces.add(piece)
        return next(iter(parts)) if len(parts) == 1 else None

    def suspect(self, now: float, address: Address) -> None:
        """A peer had a part in too much that failed: it is kept out. Telling it again is idle."""
        if address in self._out:
            return
        times = self._times[address] = self._times.get(address, 0) + 1
        pieces = {piece for piece, parts in self._failed.items() if address in parts}
        self._out[address] = _Suspect(now, times, pieces)

    def convicted(self, address: Address) -> None:
        """It is banned on proof: no matter of suspicion any more."""
        self._out.pop(address, None)
        self._times.pop(address, None)

    def pardoned(self, now: float) -> tuple[Address, ...]:
        """Who gets another chance now."""
        free = tuple(
            address for address, suspect in self._out.items() if self._is_over(now, suspect)
        )
        for address in free:
            del self._out[address]
        return free

    def _is_over(self, now: float, suspect: _Suspect) -> bool:
        wait = self._settings.pardon_seconds * 2.0 ** (suspect.times - 1)
        if suspect.pieces:
            wait = max(wait, self._settings.unsettled_seconds)
        return now - suspect.since >= wait
