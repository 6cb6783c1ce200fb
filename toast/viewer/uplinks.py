"""What the swarm shows of each neighbour, as the policies want to know it."""

import numpy as np
from numpy.typing import NDArray

from toast.policy.estimate import UplinkMemory, Uplinks
from toast.swarm import Snapshot

__all__ = ["Lookout"]


class Lookout:
    """Looks at the neighbours, and remembers how they have sent so far."""

    def __init__(self) -> None:
        self._memory = UplinkMemory()
        self._places: dict[tuple[str, int], int] = {}
        self._snapshot: Snapshot | None = None

    def look(self, now: float, snapshot: Snapshot) -> Uplinks:
        """What is known of the neighbours in a snapshot.

        Args:
            now: the time, seconds.
            snapshot: just taken.
        """
        neighbours = snapshot.neighbours
        self._snapshot = snapshot
        self._places = {neighbour.address: n for n, neighbour in enumerate(neighbours)}
        return self._memory.observe(
            now,
            [neighbour.address for neighbour in neighbours],
            [neighbour.received_bytes for neighbour in neighbours],
            [neighbour.queued_bytes for neighbour in neighbours],
            [neighbour.choking_us for neighbour in neighbours],
            [neighbour.pieces for neighbour in neighbours],
        )

    def asked_of(self, piece: int) -> NDArray[np.intp]:
        """Whom each block of a piece in flight was asked of, by the snapshot looked at last.

        Returns:
            intp[blocks], places in `Uplinks`; -1 where it was asked of nobody who is still there.
        """
        assert self._snapshot is not None, "look first"
        asked = self._snapshot.asked[piece]
        return np.array(
            [-1 if address is None else self._places.get(address, -1) for address in asked],
            dtype=np.intp,
        )
