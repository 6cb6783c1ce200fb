"""Who is in which swarm: the tracker's memory. Pure: time and chance come in as arguments.

Rules, in the order in which they bind:

1. A member is an endpoint (address and port), not a peer id: nobody can displace another's entry
   without holding its address.
2. A peer unheard of for `expiry_seconds` is gone, before anything else is looked at.
3. `stopped` removes at once. `completed` counts as a download once per membership.
4. Full: an address over its share loses its own least recently heard peer; a full swarm loses its
   least recently heard; a full tracker loses the least recently heard of all.
5. A swarm with neither peers nor completions is forgotten. One with completions but no peers is
   kept for its count, and is the first to go when there are too many swarms. When every swarm has
   peers, new ones are refused.
6. Answers are uniform random samples without the asker (whoever has its peer id), without
   other holders of the whole film for one who has it too, and without loopback addresses for anyone
   who is elsewhere.
7. An asker who lacks something and says where in the film it is has those who play just ahead of it
   as the first half of its answer: of hundreds, a sample would mostly miss the few who have what it
   needs next.
"""

from bisect import bisect_left, insort
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from tracker.errors import RequestError
from tracker.messages import (
    Announce,
    AnnounceAnswer,
    Event,
    Peer,
    SwarmCounts,
    address_group,
    is_loopback,
)
from tracker.settings import TrackerSettings

__all__ = ["Swarms"]

_Endpoint: TypeAlias = tuple[bytes, int]
_Membership: TypeAlias = tuple[bytes, _Endpoint]


@dataclass(slots=True)
class _Member:
    """A peer as it last announced itself, and when (`playhead` is of that moment)."""

    peer_id: bytes
    complete: bool
    counted: bool
    playhead: float | None
    heard: float

    @property
    def began(self) -> float | None:
        """When its film began, if it has played on all the time: it does not change with time."""
        return None if self.playhead is None else self.heard - self.playhead


class _Bag:
    """A set of endpoints from which the i-th can be taken in constant time, for sampling."""

    __slots__ = ("_items", "_places")

    def __init__(self) -> None:
        self._items: list[_Endpoint] = []
        self._places: dict[_Endpoint, int] = {}

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, place: int) -> _Endpoint:
        return self._items[place]

    def add(self, item: _Endpoint) -> None:
        self._places[item] = len(self._items)
        self._items.append(item)

    def remove(self, item: _Endpoint) -> None:
        place = self._places.pop(item)
        last = self._items.pop()
        if last != item:
            self._items[place] = last
            self._places[last] = place


@dataclass(slots=True)
class _Swarm:
    """One torrent: its members, least recently heard first, and the same by what they hold."""

    downloaded: int = 0
    members: OrderedDict[_Endpoint, _Member] = field(default_factory=OrderedDict)
    complete: _Bag = field(default_factory=_Bag)
    incomplete: _Bag = field(default_factory=_Bag)
    by_began: list[tuple[float, _Endpoint]] = field(default_factory=list)
    """Those who say where they are; who is further in the film comes first."""

    def counts(self) -> SwarmCounts:
        return SwarmCounts(len(self.complete), len(self.incomplete), self.downloaded)

    def put(self, endpoint: _Endpoint, member: _Member) -> None:
        self.members[endpoint] = member
        (self.complete if member.complete else self.incomplete).add(endpoint)
        if member.began is not None:
            insort(self.by_began, (member.began, endpoint))

    def take(self, endpoint: _Endpoint) -> _Member:
        member = self.members.pop(endpoint)
        (self.complete if member.complete else self.incomplete).remove(endpoint)
        if member.began is not None:
            del self.by_began[bisect_left(self.by_began, (member.began, endpoint))]
        return member

    def just_ahead(self, began: float, most: int) -> list[_Endpoint]:
        """Those who play ahead of somebody who began at that time, the nearest first."""
        end = bisect_left(self.by_began, (began,))
        return [endpoint for _, endpoint in reversed(self.by_began[max(0, end - most) : end])]


class Swarms:
    """All swarms of one tracker, bounded in every direction.

    Announcing costs all but constant time plus the size of the answer: those who say where they
    are stand in order, and a place in an order of thousands is found and made in microseconds.
    `now` may be any clock that does not run backwards, in seconds, the same for all calls.

    Args:
        settings: the bounds and intervals.
        rng: where the random samples come from.
    """

    def __init__(self, settings: TrackerSettings, rng: np.random.Generator) -> None:
        self._settings = settings
        self._rng = rng
        self._swarms: dict[bytes, _Swarm] = {}
        self._empty: OrderedDict[bytes, None] = OrderedDict()  # swarms kept for their count alone
        # Both least recently heard first. All peers live equally long, so this is also the order
        # in which they expire.
        self._heard: OrderedDict[_Membership, float] = OrderedDict()
        self._groups: dict[bytes, OrderedDict[_Membership, None]] = {}

    @property
    def torrents(self) -> int:
        """Number of swarms remembered."""
        return len(self._swarms)

    @property
    def peers(self) -> int:
        """Number of peers remembered, all swarms together."""
        return len(self._heard)

    def expire(self, now: float) -> int:
        """Forget all peers that fell silent; returns how many."""
        horizon = now - self._settings.expiry_seconds
        gone = 0
        while self._heard:
            membership, heard = next(iter(self._heard.items()))
            if heard > horizon:
                break
            self._forget(membership)
            gone += 1
        return gone

    def announce(self, request: Announce, address: bytes, now: float) -> AnnounceAnswer:
        """Take in one announce and answer it.

        Args:
            request: what the client sent.
            address: where it is, packed; the caller has already decided whom to believe.
            now: seconds.

        Raises:
            RequestError: the swarm is new and there is no room for one more.
        """
        self.expire(now)
        endpoint = (address, request.port)
        membership = (request.info_hash, endpoint)
        known = self._forget(membership) if membership in self._heard else None
        if request.event is Event.STOPPED:
            return AnnounceAnswer(self._counts(request.info_hash))
        # A restarted client on an old endpoint is a new member, and may complete once more.
        if known is not None and known.peer_id != request.peer_id:
            known = None
        swarm = self._swarm_with_room(request.info_hash)
        complete = request.left == 0
        counted = known is not None and known.counted
        if request.event is Event.COMPLETED and complete and not counted:
            swarm.downloaded += 1
            counted = True
        if request.port:  # nobody can connect to port 0: answered, but never handed out
            member = _Member(request.peer_id, complete, counted, request.playhead, now)
            self._make_room(swarm, request.info_hash, address)
            self._remember(membership, member, swarm)
        self._settle(request.info_hash)
        return AnnounceAnswer(swarm.counts(), self._sample(swarm, request, address, now))

    def scrape(self, info_hashes: Iterable[bytes], now: float) -> dict[bytes, SwarmCounts]:
        """The counts of those swarms that are known (BEP 48); unknown ones are left out."""
        self.expire(now)
        return {
            info_hash: self._swarms[info_hash].counts()
            for info_hash in info_hashes
            if info_hash in self._swarms
        }

    def _counts(self, info_hash: bytes) -> SwarmCounts:
        swarm = self._swarms.get(info_hash)
        return SwarmCounts() if swarm is None else swarm.counts()

    def _swarm_with_room(self, info_hash: bytes) -> _Swarm:
        swarm = self._swarms.get(info_hash)
        if swarm is None:
            if len(self._swarms) >= self._settings.max_torrents:
                if not self._empty:
                    raise RequestError("this tracker is full: it can take no further torrent now")
                oldest, _ = self._empty.popitem(last=False)
                del self._swarms[oldest]
            swarm = self._swarms[info_hash] = _Swarm()
        return swarm

    def _make_room(self, swarm: _Swarm, info_hash: bytes, address: bytes) -> None:
        limits = self._settings
        if not is_loopback(address):
            own = self._groups.get(address_group(address), ())
            if len(own) >= limits.max_peers_per_address:
                self._forget(next(iter(own)), keep=info_hash)
        if len(swarm.members) >= limits.max_peers_per_torrent:
            self._forget((info_hash, next(iter(swarm.members))), keep=info_hash)
        if len(self._heard) >= limits.max_peers:
            self._forget(next(iter(self._heard)), keep=info_hash)

    def _remember(self, membership: _Membership, member: _Member, swarm: _Swarm) -> None:
        _, endpoint = membership
        swarm.put(endpoint, member)
        self._heard[membership] = member.heard
        if not is_loopback(endpoint[0]):
            group = self._groups.setdefault(address_group(endpoint[0]), OrderedDict())
            group[membership] = None

    def _forget(self, membership: _Membership, *, keep: bytes | None = None) -> _Member:
        """Remove one peer from every index; its swarm too if that ends it and it is not `keep`."""
        info_hash, endpoint = membership
        member = self._swarms[info_hash].take(endpoint)
        del self._heard[membership]
        group_name = address_group(endpoint[0])
        group = self._groups.get(group_name)
        if group is not None:
            group.pop(membership, None)
            if not group:
                del self._groups[group_name]
        if info_hash != keep:
            self._settle(info_hash)
        return member

    def _settle(self, info_hash: bytes) -> None:
        """File a swarm under empty or forget it, as its members and its count demand (rule 5)."""
        swarm = self._swarms[info_hash]
        if swarm.members:
            self._empty.pop(info_hash, None)
        elif swarm.downloaded:
            self._empty.setdefault(info_hash)
        else:
            del self._swarms[info_hash]

    def _sample(
        self, swarm: _Swarm, request: Announce, address: bytes, now: float
    ) -> tuple[Peer, ...]:
        limits = self._settings
        wanted = limits.default_numwant if request.numwant is None else request.numwant
        wanted = min(wanted, limits.max_numwant)
        holders = 0 if request.left == 0 else len(swarm.complete)
        total = holders + len(swarm.incomplete)
        if not wanted or not total:
            return ()
        # Two to spare: the asker may be drawn at both its endpoints, IPv4 and IPv6 (BEP 7).
        drawn = self._rng.choice(total, size=min(total, wanted + 2), replace=False)
        at_random = (
            swarm.complete[place] if place < holders else swarm.incomplete[place - holders]
            for place in drawn.tolist()
        )
        near: list[_Endpoint] = []
        if request.left != 0 and request.playhead is not None:
            near = swarm.just_ahead(now - request.playhead, -(-wanted // 2))
        found: list[Peer] = []
        for endpoint in dict.fromkeys((*near, *at_random)):
            member = swarm.members[endpoint]
            if member.peer_id == request.peer_id:  # the asker itself, at either address
                continue
            if is_loopback(endpoint[0]) and not is_loopback(address):
                continue
            found.append(_as_of(now, endpoint, member))
        return tuple(found[:wanted])


def _as_of(now: float, endpoint: _Endpoint, member: _Member) -> Peer:
    playhead = member.playhead
    return Peer(
        peer_id=member.peer_id,
        address=endpoint[0],
        port=endpoint[1],
        complete=member.complete,
        # It has been playing on since it announced.
        playhead=None if playhead is None else playhead + (now - member.heard),
    )
