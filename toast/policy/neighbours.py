"""Neighbours: whom to connect to.

Who feeds whom matters more than which piece is asked for. In a full mesh every young viewer asks
the same few holders for the same pieces at once; each uplink is split over many pieces and all of
them come late. In a chain each uplink carries one stream, in time; but a chain breaks. And where
many watch the same moment there is none: each link would take the time of a piece.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from toast.common.registry import Registry
from toast.policy.errors import PolicyError

__all__ = [
    "Address",
    "Ahead",
    "Candidate",
    "CompanySettings",
    "Everyone",
    "NeighbourSettings",
    "Neighbours",
    "Random",
    "company",
    "create_neighbours",
    "is_worth_calling",
    "neighbours_names",
]

Address = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Candidate:
    """Somebody in the swarm, as the tracker tells.

    Attributes:
        address: IP address and port to connect to.
        position: where its playhead is now, film seconds, or None if it does not say.
        complete: it has the whole film.
        operator: it is the operator's seed: what it sends is paid for by the operator.
    """

    address: Address
    position: float | None
    complete: bool
    operator: bool


def is_worth_calling(someone: Candidate, *, complete: bool) -> bool:
    """Whether a connection to somebody can serve either side.

    Two who need nothing would only take places of those who do.

    Args:
        someone: to be called.
        complete: whether who calls has the whole film.
    """
    return not (complete and (someone.complete or someone.operator))


@dataclass(frozen=True, slots=True)
class CompanySettings:
    """When viewers watch the same moment, and have nobody to follow."""

    least: int = 4
    """Viewers, ourselves among them: fewer follow each other, however closely."""
    beside_seconds: float = 1.0
    """Playheads so close to ours are at the same moment. A piece takes as long to pass on."""
    following_seconds: float = 10.0
    """Who is ahead by so much is followed, if there are half as many of those as watch beside."""


def company(
    own_position: float,
    candidates: Iterable[Candidate],
    settings: CompanySettings | None = None,
) -> list[Candidate]:
    """Those who watch the same moment as we do; nobody if they are few, or others are ahead.

    Args:
        own_position: our playhead, film seconds.
        candidates: whom the tracker names, without ourselves.
        settings: see `CompanySettings`.
    """
    settings = settings or CompanySettings()
    beside, ahead = [], 0
    for someone in candidates:
        if someone.operator or someone.complete or someone.position is None:
            continue
        lead = someone.position - own_position
        if abs(lead) <= settings.beside_seconds:
            beside.append(someone)
        elif 0 < lead <= settings.following_seconds:
            ahead += 1
    together = len(beside) + 1
    return beside if together >= settings.least and 2 * ahead < together else []


@dataclass(frozen=True, slots=True)
class NeighbourSettings:
    """How many neighbours to take from. Those who take from us come to us by themselves."""

    ahead: int = 2
    """Viewers just ahead of us. One is a chain: the most economical where all come at even
    distances, and brittle: where two find the same one, each gets half, and another idles."""
    beside: int = 6
    """Viewers at the same moment, where there are several and nobody to follow: pieces pass from
    one to two and from two to four of them."""
    complete: int = 2
    """Viewers besides who have the whole film: theirs are uplinks that nobody ahead needs."""
    near_enough_share: float = 0.6
    """Of the lead looked for, at which a neighbour who sends still counts as far enough ahead."""
    useful_rate: float = 1.0
    """Bytes/second of film lately received above which a neighbour keeps its place."""


class Neighbours(Protocol):
    """Chooses neighbours."""

    @property
    def name(self) -> str:
        """The name it is registered under."""

    def choose(  # noqa: PLR0917 - the contract of the rooms: callers may pass them by place
        self,
        own_position: float,
        candidates: Sequence[Candidate],
        connected: AbstractSet[Address],
        useful: Mapping[Address, float],
        need_seconds: float,
        rng: np.random.Generator,
    ) -> tuple[Address, ...]:
        """Whom to connect to now, best first; none of them is connected.

        Args:
            own_position: our playhead, film seconds.
            candidates: whom the tracker names, without ourselves.
            connected: whom we are connected to, whoever began it.
            useful: bytes/second of film that connected ones sent lately; absent means none.
            need_seconds: how far beyond the playhead pieces are asked for at the least (the
                horizon): who is less far ahead has little that could still come in time.
            rng: chance.
        """


class Everyone:
    """All of them: the mesh that stock BitTorrent makes, up to a limit.

    Args:
        limit: connections at the most.
    """

    name = "everyone"

    def __init__(self, limit: int = 50) -> None:
        self._limit = _at_least("everyone: limit", limit, 1)

    def choose(  # noqa: PLR0917 - the contract of the rooms: callers may pass them by place
        self,
        own_position: float,  # noqa: ARG002 - the protocol's
        candidates: Sequence[Candidate],
        connected: AbstractSet[Address],
        useful: Mapping[Address, float],  # noqa: ARG002 - the protocol's
        need_seconds: float,  # noqa: ARG002 - the protocol's
        rng: np.random.Generator,
    ) -> tuple[Address, ...]:
        """Everyone not yet connected, in random order."""
        return _fill(candidates, connected, self._limit, rng)


class Random:
    """So many at random: a mesh with a bounded degree.

    Args:
        k: neighbours to have.
    """

    name = "random"

    def __init__(self, k: int = 5) -> None:
        self._k = _at_least("random: k", k, 1)

    def choose(  # noqa: PLR0917 - the contract of the rooms: callers may pass them by place
        self,
        own_position: float,  # noqa: ARG002 - the protocol's
        candidates: Sequence[Candidate],
        connected: AbstractSet[Address],
        useful: Mapping[Address, float],  # noqa: ARG002 - the protocol's
        need_seconds: float,  # noqa: ARG002 - the protocol's
        rng: np.random.Generator,
    ) -> tuple[Address, ...]:
        """As many strangers as are missing from k."""
        return _fill(candidates, connected, self._k, rng)


class Ahead:
    """Those who watch just ahead of us, and some who are done; the operator's seed if need be.

    A viewer just ahead holds what we need next and will hold what we need later. In order:

    1. ahead by at least `need_seconds`, the closest first;
    2. ahead by less, the farthest first;
    3. viewers who have the whole film, at random: `complete` of them besides, or as many as needed
       where nobody is ahead;
    4. those of whom nothing is known (stock clients);
    5. the operator's seed, only where there is no viewer at all to take from.

    Those who watch the same moment take the places of who is ahead where there are several of them
    and few to follow (`company`): at random, since nobody of them is better.

    A neighbour who is far enough ahead and sends keeps its place though a better one is there; who
    is too close does not. Nobody is left: neighbours part by patience alone.

    Args:
        settings: how many; or give its fields as keywords.
    """

    name = "ahead"

    def __init__(self, settings: NeighbourSettings | None = None, **fields: Any) -> None:
        self.settings = settings or NeighbourSettings(**fields)
        _at_least("ahead: ahead", self.settings.ahead, 1)
        _at_least("ahead: beside", self.settings.beside, 1)
        _at_least("ahead: complete", self.settings.complete, 0)

    def choose(  # noqa: PLR0917 - the contract of the rooms: callers may pass them by place
        self,
        own_position: float,
        candidates: Sequence[Candidate],
        connected: AbstractSet[Address],
        useful: Mapping[Address, float],
        need_seconds: float,
        rng: np.random.Generator,
    ) -> tuple[Address, ...]:
        """Fill the places as the class says."""
        settings = self.settings
        tie = rng.permutation(len(candidates)).tolist()

        def sends(someone: Candidate) -> bool:
            return useful.get(someone.address, 0.0) > settings.useful_rate

        def keep_first(key: float, someone: Candidate, nth: int) -> tuple[bool, bool, float, int]:
            held = someone.address in connected
            return (key < 0, not (held and sends(someone)), abs(key), 0 if held else tie[nth] + 1)

        ahead, done, unknown, seeds = [], [], [], []
        for nth, someone in enumerate(candidates):
            lead = -math.inf if someone.position is None else someone.position - own_position
            if someone.operator:
                seeds.append((keep_first(0, someone, nth), someone))
            elif someone.complete:
                done.append((keep_first(0, someone, nth), someone))
            elif lead > 0:
                # Far enough ahead: closest first. Not far enough (negative): farthest first.
                # Positions are known to half a second: who sends keeps its place for so little.
                sending = someone.address in connected and sends(someone)
                least = need_seconds * (settings.near_enough_share if sending else 1.0)
                key = lead if lead >= least else lead - need_seconds
                ahead.append((keep_first(key, someone, nth), someone))
            elif someone.position is None:
                unknown.append((keep_first(0, someone, nth), someone))
        places = settings.ahead
        together = {someone.address for someone in company(own_position, candidates)}
        if together:
            places = settings.beside
            ahead = [
                ((False, someone.address not in connected, 0.0, tie[nth]), someone)
                for nth, someone in enumerate(candidates)
                if someone.address in together
            ]
        for group in (ahead, done, unknown, seeds):
            group.sort(key=lambda entry: entry[0])

        chosen = [someone for _, someone in ahead[:places]]
        room = places - len(chosen)
        chosen += [someone for _, someone in done[: settings.complete + room]]
        room = places - len(chosen)
        chosen += [someone for _, someone in unknown[: max(0, room)]]
        chosen += [] if chosen else [someone for _, someone in seeds[:1]]

        return tuple(c.address for c in chosen if c.address not in connected)


def _fill(
    candidates: Sequence[Candidate],
    connected: AbstractSet[Address],
    most: int,
    rng: np.random.Generator,
) -> tuple[Address, ...]:
    """Strangers at random until there are so many connections."""
    strangers = list(dict.fromkeys(c.address for c in candidates if c.address not in connected))
    room = max(0, most - len(connected))
    order = rng.permutation(len(strangers))[:room].tolist()
    return tuple(strangers[i] for i in order)


def _at_least(what: str, value: int, least: int) -> int:
    if value < least:
        raise PolicyError(f"{what} is {value}, and must be at least {least}")
    return value


_POLICIES: Registry[Neighbours] = Registry("neighbours policy", PolicyError)
_FACTORIES: dict[str, Callable[..., Neighbours]] = {
    "everyone": Everyone,
    "random": Random,
    "ahead": Ahead,
}
for _name, _factory in _FACTORIES.items():
    _POLICIES.register(_name, _factory)


def create_neighbours(name: str, **params: Any) -> Neighbours:
    """A neighbours policy by name.

    Raises:
        PolicyError: no such policy, or not its parameters.
    """
    return _POLICIES.create(name, **params)


def neighbours_names() -> tuple[str, ...]:
    """The names of all neighbours policies, sorted."""
    return _POLICIES.names()
