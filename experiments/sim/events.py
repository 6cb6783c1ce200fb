"""Virtual time: what happens when."""

import heapq
import math
from collections.abc import Callable
from typing import Any

__all__ = ["Events"]


class Events:
    """What is to happen, by time; of what happens at once, the first to be told goes first.

    Attributes:
        now: the time, seconds.
        happened: how many events have been.
    """

    __slots__ = ("_heap", "_told", "happened", "now")

    def __init__(self) -> None:
        self.now = 0.0
        self.happened = 0
        self._told = 0
        self._heap: list[tuple[float, int, Callable[[Any], object], Any]] = []

    def at(self, time: float, call: Callable[[Any], object], what: Any = None) -> None:
        """Have something happen at a time; what is past happens now."""
        self._told = told = self._told + 1
        heapq.heappush(self._heap, (max(self.now, time), told, call, what))

    def run(self, until: float = math.inf) -> bool:
        """Let everything happen up to a time. Returns whether anything is left for later."""
        heap = self._heap
        while heap and heap[0][0] <= until:
            self.now, _, call, what = heapq.heappop(heap)
            self.happened += 1
            call(what)
        if math.isfinite(until):
            self.now = max(self.now, until)
        return bool(heap)
