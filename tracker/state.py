"""Who is in which swarm: the tracker's memory. Pure: time and chance come in as arguments.

Rules, in the order in which they bind:

0. Where there is a list of films, no other swarm is.
1. A member is an endpoint (address and port), not a peer id: nobody can displace another's entry
   without holding its address.
2. A peer unheard of for `expiry_seconds` is gone, before anything else is looked at; in a swarm of
   which others have just gone, up to a hundredth of that later.
3. `stopped` removes at once. `completed` counts as a download once per membership.
4. Full: an address over its share loses its own least recently heard peer (of those that it
   announced since it had half of its share); a full swarm loses its least recently heard; a full
   tracker the least recently heard of all.
5. A swarm with neither peers nor completions is forgotten. One with completions but no peers is
   kept for its count, and is the first to go when there are too many swarms. When every swarm has
   peers, new ones are refused.
6. Each answer is a uniform random sample without the asker, without other holders of the whole film
   for one who has it too, and without loopback addresses for anyone who is elsewhere.
7. An asker who lacks something and says where in the film it is has those who play just ahead of it
   as the first half of its answer: of hundreds, a sample would mostly miss the few who have what it
   needs next.
"""

import heapq
import math
from collections import OrderedDict
from collections.abc import Iterable
from typing import Final

import numpy as np

from tracker.errors import RequestError
from tracker.messages import Announce, AnnounceAnswer, Event, SwarmCounts
from tracker.roster import Roster
from tracker.sampling import Sampler, pack, peer_at
from tracker.settings import TrackerSettings
from tracker.shares import Membership, Shares
from tracker.swarm import LOOPBACK, WIDTHS, Swarm, family_of, group_of, key_of

__all__ = ["Swarms"]


_FILM_MINUTES: Final = 5
"""After so long a film may have come into the catalogue (BEP 31)."""


class Swarms:
    """All swarms of one tracker, bounded in every direction.

    Announcing costs constant time plus the size of the answer; what falls silent is found by
    looking through its swarm, at most a hundred times within `expiry_seconds`. `now` may be any
    clock that does not run backwards, in seconds, the same for all calls.

    Args:
        settings: the bounds and intervals.
        rng: where the random samples come from.
    """

    def __init__(self, settings: TrackerSettings, rng: np.random.Generator) -> None:
        self._settings = settings
        self._sampler = Sampler(rng)
        self._swarms: dict[bytes, Swarm] = {}
        self._empty: OrderedDict[bytes, None] = OrderedDict()  # swarms kept for their count alone
        self._peers = 0
        # (due, info-hash) of each swarm with members; entries that are no longer so are passed over
        self._due: list[tuple[float, bytes]] = []
        self._shares = Shares(settings.max_peers_per_address)
        self._permitted: frozenset[bytes] | None = None
        self._default_numwant, self._max_numwant = settings.default_numwant, settings.max_numwant
        self._expiry_seconds = settings.expiry_seconds

    @property
    def torrents(self) -> int:
        """Number of swarms remembered."""
        return len(self._swarms)

    @property
    def peers(self) -> int:
        """Number of peers remembered, all swarms together."""
        return self._peers

    def expire(self, now: float) -> int:
        """Forget all peers that fell silent; returns how many."""
        before, horizon = self._peers, now - self._expiry_seconds
        while self._due and self._due[0][0] <= horizon:
            due, info_hash = heapq.heappop(self._due)
            swarm = self._swarms.get(info_hash)
            if swarm is None or swarm.due != due:
                continue
            for kind, roster in list(swarm.living()):
                for key in roster.silent_since(horizon):
                    self._forget(info_hash, swarm, kind // 2, key)
            if len(swarm):
                soonest = horizon + self._expiry_seconds / 100
                self._look_again(info_hash, swarm, max(swarm.longest_silent()[0], soonest))
            self._settle(info_hash, swarm)
        return before - self._peers

    def announce(self, request: Announce, address: bytes, now: float) -> AnnounceAnswer:
        """Take in one announce and answer it, with peers of both address families.

        Args:
            request: what the client sent.
            address: where it is, packed; the caller has already decided whom to believe.
            now: seconds.

        Raises:
            RequestError: the swarm is new and there is no room for one more.
        """
        family = family_of(address)
        key = key_of(address, request.port)
        complete = request.left == 0
        swarm = self._enter(
            request.info_hash,
            family,
            key,
            request.peer_id,
            now,
            complete=complete,
            event=request.event,
            playhead=request.playhead,
        )
        if swarm is None or request.event is Event.STOPPED:
            return AnnounceAnswer(SwarmCounts() if swarm is None else swarm.counts())
        rosters = swarm.eligible(2 * family + complete, key, both=True)
        wanted = self._wanted(request.numwant)
        near = None if complete or request.playhead is None else now - request.playhead
        if request.compact:
            twin = any(request.peer_id in roster.ids for roster, own in rosters if own < 0)
            if near is None and not twin:
                packed = {6: b"", 18: b""}
                for roster, first, count in self._sampler.windows(rosters, wanted):
                    packed[roster.width] += roster.window(first, count)
                answer = AnnounceAnswer(swarm.counts(), packed[6], packed[18])
            else:
                seats = self._sampler.seats(rosters, wanted, near, request.peer_id)
                answer = AnnounceAnswer(swarm.counts(), pack(seats, 6), pack(seats, 18))
        else:
            seats = self._sampler.seats(rosters, wanted, near, request.peer_id)
            peers = tuple(peer_at(now, *seat) for seat in seats)
            answer = AnnounceAnswer(swarm.counts(), peers=peers)
        self._settle(request.info_hash, swarm)
        return answer

    def announce_packed(
        self,
        info_hash: bytes,
        family: int,
        key: int,
        peer_id: bytes,
        now: float,
        *,
        complete: bool,
        event: Event,
        numwant: int | None,
        playhead: float | None = None,
    ) -> tuple[int, int, bytes | bytearray]:
        """The same for one address family, as UDP has it (BEP 15), without an object per request.

        Args:
            info_hash: which swarm.
            family: of the asker, by `family_of`.
            key: its endpoint as a number: packed address, then port, big-endian.
            peer_id: 20 bytes.
            now: seconds.
            complete: it has the whole film.
            event: why it announces.
            numwant: peers it would like, or None for our default.
            playhead: where in the film it is, in seconds, or None.

        Returns:
            Holders of the whole film, others, and endpoints of 6 or 18 bytes each.

        Raises:
            RequestError: the swarm is new and there is no room for one more.
        """
        swarm = self._enter(
            info_hash, family, key, peer_id, now, complete=complete, event=event, playhead=playhead
        )
        if swarm is None:
            return 0, 0, b""
        if event is Event.STOPPED:
            return swarm.complete, swarm.incomplete, b""
        rosters = swarm.eligible(2 * family + complete, key, both=False)
        wanted = self._wanted(numwant)
        if complete or playhead is None:
            packed = self._sampler.packed(rosters, wanted)
        else:
            seats = self._sampler.seats(rosters, wanted, now - playhead, peer_id)
            packed = pack(seats, WIDTHS[family])
        if not swarm.complete + swarm.incomplete:
            self._settle(info_hash, swarm)
        return swarm.complete, swarm.incomplete, packed

    def scrape(self, info_hashes: Iterable[bytes], now: float) -> dict[bytes, SwarmCounts]:
        """The counts of those swarms that are known (BEP 48); unknown ones are left out."""
        self.expire(now)
        return {
            info_hash: self._swarms[info_hash].counts()
            for info_hash in info_hashes
            if info_hash in self._swarms
        }

    def permit(self, films: frozenset[bytes] | None) -> None:
        """Serve these swarms alone (None: any), and forget all others."""
        self._permitted = films
        if films is None:
            return
        for info_hash, swarm in list(self._swarms.items()):
            if info_hash not in films:
                for kind, roster in list(swarm.living()):
                    for key in list(roster.places):
                        self._forget(info_hash, swarm, kind // 2, key)
                swarm.downloaded = 0
                self._empty.pop(info_hash, None)
                self._settle(info_hash, swarm)

    def each(self, now: float) -> Iterable[tuple[bytes, Swarm]]:
        """All swarms by info-hash, without those who fell silent: to be read, not to be changed."""
        self.expire(now)
        return self._swarms.items()

    def recall_swarm(self, info_hash: bytes, downloaded: int) -> None:
        """Know a swarm again, and that so many completions were seen in it (not: more).

        Raises:
            RequestError: there is no room for it.
        """
        if self._permitted is not None and info_hash not in self._permitted:
            return
        swarm = self._swarms.get(info_hash)
        if swarm is None:
            swarm = self._new_swarm(info_hash)
        swarm.downloaded = max(swarm.downloaded, downloaded)
        self._settle(info_hash, swarm)

    def recall(
        self,
        membership: Membership,
        peer_id: bytes,
        heard: float,
        now: float,
        *,
        complete: bool,
        counted: bool,
        playhead: float | None,
    ) -> None:
        """Know a member again that was last heard at `heard`; whoever is known already stays so.

        Args:
            membership: which.
            peer_id: 20 bytes.
            heard: seconds, on the clock of `now`.
            now: seconds.
            complete: it has the whole film.
            counted: its completion is counted.
            playhead: where in the film it was when it was heard.

        Raises:
            RequestError: there is no room for its swarm.
        """
        info_hash, family, key = membership
        forbidden = self._permitted is not None and info_hash not in self._permitted
        if forbidden or heard <= now - self._expiry_seconds:
            return
        swarm = self._swarms.get(info_hash)
        if swarm is None:
            swarm = self._new_swarm(info_hash)
        if swarm.seat(family, key) is None:
            self._make_room(info_hash, swarm, family, key)
            self._take_in(
                swarm,
                membership,
                peer_id,
                heard,
                complete=complete,
                counted=counted,
                playhead=playhead,
            )

    def hear(
        self,
        membership: Membership,
        peer_id: bytes,
        now: float,
        *,
        complete: bool,
        event: Event,
        playhead: float | None,
    ) -> None:
        """Take in what a member has announced elsewhere; else as `announce_packed`."""
        info_hash, family, key = membership
        swarm = self._enter(
            info_hash, family, key, peer_id, now, complete=complete, event=event, playhead=playhead
        )
        if swarm is not None:
            self._settle(info_hash, swarm)

    def _enter(
        self,
        info_hash: bytes,
        family: int,
        key: int,
        peer_id: bytes,
        now: float,
        *,
        complete: bool,
        event: Event,
        playhead: float | None,
    ) -> Swarm | None:
        """The announce's effect. None: no such swarm."""
        if self._due and self._due[0][0] <= now - self._expiry_seconds:
            self.expire(now)
        swarm = self._swarms.get(info_hash)
        if swarm is None:
            if event is Event.STOPPED:
                return None
            swarm = self._new_swarm(info_hash)
        kind = 2 * family + complete
        roster = swarm.rosters[kind]
        place = None if roster is None else roster.places.get(key)
        if roster is None or place is None or event is not Event.NONE:
            return self._enter_slowly(
                swarm,
                (info_hash, family, key),
                peer_id,
                now,
                complete=complete,
                event=event,
                playhead=playhead,
            )
        if not roster.ids.startswith(peer_id, place * 20):
            roster.ids[place * 20 : place * 20 + 20] = peer_id
            roster.counted[place] = False  # another client, which may complete once more
        if playhead is not None or roster.tells:
            roster.set_began(place, math.nan if playhead is None else now - playhead)
        roster.heard[place] = now
        if self._shares.crowded and family < LOOPBACK:
            self._shares.seen(group_of(family, key), (info_hash, family, key))
        return swarm

    def _enter_slowly(
        self,
        swarm: Swarm,
        membership: Membership,
        peer_id: bytes,
        now: float,
        *,
        complete: bool,
        event: Event,
        playhead: float | None,
    ) -> Swarm | None:
        info_hash, family, key = membership
        seat = swarm.seat(family, key)
        counted = False
        if seat is not None:
            _, roster, place = seat
            counted = bool(roster.counted[place]) and roster.id_at(place) == peer_id
            self._forget(info_hash, swarm, family, key)
        if event is Event.STOPPED:
            return swarm if self._settle(info_hash, swarm) else None
        if event is Event.COMPLETED and complete and not counted:
            swarm.downloaded += 1
            counted = True
        if not key & 0xFFFF:  # nobody can connect to port 0: answered, but never handed out
            return swarm
        self._make_room(info_hash, swarm, family, key)
        self._take_in(
            swarm, membership, peer_id, now, complete=complete, counted=counted, playhead=playhead
        )
        return swarm

    def _take_in(
        self,
        swarm: Swarm,
        membership: Membership,
        peer_id: bytes,
        heard: float,
        *,
        complete: bool,
        counted: bool,
        playhead: float | None,
    ) -> None:
        info_hash, family, key = membership
        kind = 2 * family + complete
        roster = swarm.rosters[kind]
        if roster is None:
            roster = swarm.rosters[kind] = Roster(WIDTHS[family], complete=complete)
        roster.add(key, peer_id, heard, counted=counted, chance=self._sampler.chance())
        if complete:
            swarm.complete += 1
        else:
            swarm.incomplete += 1
        self._peers += 1
        if playhead is not None:
            roster.set_began(roster.places[key], heard - playhead)
        if family < LOOPBACK:
            self._shares.add(group_of(family, key), membership)
        if math.isnan(swarm.due) or heard < swarm.due:
            self._empty.pop(info_hash, None)
            self._look_again(info_hash, swarm, heard)

    def _new_swarm(self, info_hash: bytes) -> Swarm:
        if self._permitted is not None and info_hash not in self._permitted:
            raise RequestError("this tracker does not serve this film", retry=_FILM_MINUTES)
        if len(self._swarms) >= self._settings.max_torrents:
            if not self._empty:
                raise RequestError(
                    "this tracker is full: it can take no further torrent now", retry=1
                )
            oldest, _ = self._empty.popitem(last=False)
            del self._swarms[oldest]
        swarm = self._swarms[info_hash] = Swarm()
        return swarm

    def _make_room(self, info_hash: bytes, swarm: Swarm, family: int, key: int) -> None:
        limits = self._settings
        if family < LOOPBACK:
            oldest = min(self._shares.full(group_of(family, key)), key=self._heard, default=None)
            if oldest is not None:
                self._forget(*self._member(oldest), keep=swarm)
        if len(swarm) >= limits.max_peers_per_torrent:
            _, its_family, its_key = swarm.longest_silent()
            self._forget(info_hash, swarm, its_family, its_key)
        if self._peers >= limits.max_peers:
            self._forget_longest_silent(keep=swarm)

    def _forget_longest_silent(self, keep: Swarm) -> None:
        while True:
            due, info_hash = heapq.heappop(self._due)
            swarm = self._swarms.get(info_hash)
            if swarm is None or swarm.due != due:
                continue
            heard, family, key = swarm.longest_silent()
            if heard <= due:
                self._forget(info_hash, swarm, family, key, keep=keep)
                if len(swarm):
                    self._look_again(info_hash, swarm, heard)
                else:
                    swarm.due = math.nan
                return
            self._look_again(info_hash, swarm, heard)

    def _member(self, membership: Membership) -> tuple[bytes, Swarm, int, int]:
        info_hash, family, key = membership
        return info_hash, self._swarms[info_hash], family, key

    def _heard(self, membership: Membership) -> float:
        info_hash, family, key = membership
        seat = self._swarms[info_hash].seat(family, key)
        assert seat is not None
        return seat[1].heard[seat[2]]

    def _forget(
        self, info_hash: bytes, swarm: Swarm, family: int, key: int, *, keep: Swarm | None = None
    ) -> None:
        """Remove one peer from every index; its swarm too if that ends it and `keep` is another."""
        seat = swarm.seat(family, key)
        assert seat is not None
        kind, roster, _ = seat
        roster.remove(key)
        if not roster:
            swarm.rosters[kind] = None
        if kind % 2:
            swarm.complete -= 1
        else:
            swarm.incomplete -= 1
        self._peers -= 1
        if family < LOOPBACK:
            self._shares.remove(group_of(family, key), (info_hash, family, key))
        if keep is not None and keep is not swarm:
            self._settle(info_hash, swarm)

    def _look_again(self, info_hash: bytes, swarm: Swarm, due: float) -> None:
        """Its members cannot expire before `due` has."""
        swarm.due = due
        heapq.heappush(self._due, (due, info_hash))
        if len(self._due) > 2 * len(self._swarms) + 64:  # swarms came and went: only theirs remain
            self._due = [
                (other.due, name)
                for name, other in self._swarms.items()
                if not math.isnan(other.due)
            ]
            heapq.heapify(self._due)

    def _settle(self, info_hash: bytes, swarm: Swarm) -> bool:
        """File a swarm under empty or forget it, as rule 5 says; returns whether it still is."""
        if len(swarm):
            return True
        swarm.due = math.nan
        if swarm.downloaded:
            self._empty.setdefault(info_hash)
            return True
        del self._swarms[info_hash]
        return False

    def _wanted(self, numwant: int | None) -> int:
        return self._default_numwant if numwant is None else min(numwant, self._max_numwant)
