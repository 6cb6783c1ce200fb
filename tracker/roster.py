"""Members of one swarm, of one kind, as arrays beside each other. Pure.

A tracker answers far more often than its swarms change. So the endpoints stand packed as BEP 15
and BEP 23 send them, in an order that means nothing, and an answer is a slice. A newcomer takes a
random place, and whoever stood there goes to the end; who leaves is replaced by the last. So the
order is a uniform permutation at any time, and any window of it a uniform sample.

About 130 bytes for a member; objects of Python's, one for each, would be ten times that.
"""

import math
from array import array
from bisect import bisect_left
from typing import Final

import numpy as np

__all__ = ["PEER_ID_BYTES", "Roster"]

PEER_ID_BYTES = 20
_WORD_BYTES: Final = 8


class Roster:
    """The members of one kind.

    A key is an endpoint as one number: the packed address, then two bytes of port, big-endian.

    Args:
        width: bytes of a packed endpoint: 6 (IPv4) or 18 (IPv6).
        complete: whether its members have the whole film.

    Attributes:
        places: key -> place.
        packed: endpoints as they go over the wire, `width` bytes for each place.
        ids: peer ids, 20 bytes for each place.
        heard: when each last announced itself, in seconds.
        counted: 1 where a completion has been counted already.
    """

    __slots__ = (
        *("_began", "_line", "_line_keys"),
        *("complete", "counted", "heard", "ids", "packed", "places", "width"),
    )

    def __init__(self, width: int, *, complete: bool) -> None:
        self.width = width
        self.complete = complete
        self.places: dict[int, int] = {}
        self.packed = bytearray()
        self.ids = bytearray()
        self.heard = array("d")
        self.counted = bytearray()
        # Only a swarm in which somebody says where in the film it is has these.
        self._began: array[float] | None = None  # by place, NaN: does not say
        self._line = array("d")  # the same, sorted: who is further in the film comes first
        # Numbers of 8 bytes where endpoints fit into these: an object of Python's takes 32 more.
        self._line_keys: array[int] | list[int] = array("Q") if width <= _WORD_BYTES else []

    def __len__(self) -> int:
        return len(self.heard)

    @property
    def tells(self) -> bool:
        """Whether any of its members ever said where in the film it is."""
        return self._began is not None

    def key_at(self, place: int) -> int:
        """Whose place it is."""
        width = self.width
        return int.from_bytes(self.packed[place * width : place * width + width], "big")

    def id_at(self, place: int) -> bytes:
        """The peer id at a place."""
        return bytes(self.ids[place * PEER_ID_BYTES : (place + 1) * PEER_ID_BYTES])

    def add(self, key: int, peer_id: bytes, now: float, *, counted: bool, chance: float) -> None:
        """Take in a new member where `chance` (0 <= chance < 1) says."""
        last = len(self.heard)
        self.places[key] = last
        self.packed += key.to_bytes(self.width, "big")
        self.ids += peer_id
        self.heard.append(now)
        self.counted.append(counted)
        if self._began is not None:
            self._began.append(math.nan)
        self._swap(int(chance * (last + 1)), last)

    def remove(self, key: int) -> None:
        """Forget a member.

        Raises:
            KeyError: it is none.
        """
        self.set_began(self.places[key], math.nan)
        self._swap(self.places[key], len(self.heard) - 1)
        del self.places[key]
        del self.packed[-self.width :]
        del self.ids[-PEER_ID_BYTES:]
        self.heard.pop()
        self.counted.pop()
        if self._began is not None:
            self._began.pop()

    def _swap(self, one: int, other: int) -> None:
        if one == other:
            return
        width, packed, ids, places = self.width, self.packed, self.ids, self.places
        heard, counted, began = self.heard, self.counted, self._began
        here, there = (
            slice(one * width, one * width + width),
            slice(other * width, (other + 1) * width),
        )
        first, second = packed[here], packed[there]
        packed[here], packed[there] = second, first
        places[int.from_bytes(first, "big")] = other
        places[int.from_bytes(second, "big")] = one
        here, there = slice(one * 20, one * 20 + 20), slice(other * 20, other * 20 + 20)
        ids[here], ids[there] = ids[there], ids[here]
        heard[one], heard[other] = heard[other], heard[one]
        if counted[one] != counted[other]:
            counted[one], counted[other] = counted[other], counted[one]
        if began is not None:
            began[one], began[other] = began[other], began[one]

    def began_at(self, place: int) -> float:
        """When its film began, if it has played on since (seconds); NaN if it does not say."""
        return math.nan if self._began is None else self._began[place]

    def set_began(self, place: int, began: float) -> None:
        """Note when the film of whoever stands there began; NaN: it does not say."""
        if self._began is None:
            if math.isnan(began):
                return
            self._began = array("d", [math.nan]) * len(self.heard)
        old = self._began[place]
        if old == began:
            return
        line, keys, key = self._line, self._line_keys, self.key_at(place)
        if not math.isnan(old):
            at = keys.index(key, bisect_left(line, old))
            del line[at], keys[at]
        if not math.isnan(began):
            at = bisect_left(line, began)
            line.insert(at, began)
            keys.insert(at, key)
        self._began[place] = began

    def just_ahead(self, began: float, most: int) -> list[tuple[float, int]]:
        """Those who are further in the film: when they began, and their places; nearest first."""
        end = bisect_left(self._line, began)
        start = max(0, end - most)
        ahead = zip(self._line[start:end], self._line_keys[start:end], strict=True)
        return [(then, self.places[key]) for then, key in ahead][::-1]

    def oldest(self) -> tuple[float, int]:
        """When the longest silent member announced itself, and its place.

        Raises:
            ValueError: there are no members.
        """
        heard = np.frombuffer(self.heard)
        place = int(heard.argmin())
        return float(heard[place]), place

    def silent_since(self, horizon: float) -> list[int]:
        """Keys of those unheard of after `horizon`."""
        places = np.flatnonzero(np.frombuffer(self.heard) <= horizon) if self.heard else ()
        return [self.key_at(int(place)) for place in places]

    def window(self, first: int, count: int) -> bytearray:
        """`count` packed endpoints from a place on, and on from the start behind the last."""
        width = self.width
        over = first + count - len(self.heard)
        if over <= 0:
            return self.packed[first * width : (first + count) * width]
        return self.packed[first * width :] + self.packed[: over * width]
