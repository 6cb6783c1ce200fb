"""Patience with neighbours: who has been asked for long enough and brought too little.

A neighbour that takes requests and answers none holds blocks that others could bring; one that
answers at a trickle fills the place of somebody better. Neither can be told from a good one at
first: only asking shows it.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from toast.policy.neighbours import Address

__all__ = ["Patience", "PatienceSettings", "Showing"]


@dataclass(frozen=True, slots=True)
class PatienceSettings:
    """How long to bear with whom."""

    silent_seconds: float = 4.0
    """Asked for so long without a byte: it is hung up on, and others get what was asked of it."""
    weak_seconds: float = 5.0
    """Over so long it is judged whether a neighbour brings enough."""
    weak_share: float = 0.1
    """Of the film's rate: who brings less while it is asked is weak. It keeps its requests, but
    no longer fills a place. One of two sources, half as fast as the film and shared by two, brings
    a quarter of it."""
    most_weak: int = 2
    """Weak neighbours to have called: then nobody else is, or everyone's places would be taken by
    connections that bring nothing where there are fewer uplinks than are wanted. Whoever of them
    brings least is hung up on: another has its turn."""
    search_seconds: float = 2.5
    """From one such turn to the next, at first; twice as long after each who is weak too, since
    then there may be no better one."""
    most_search_seconds: float = 10.0
    """Those turns are never farther apart."""
    shun_seconds: float = 60.0
    """Who was hung up on, or would not let us in, is not called again for so long."""


@dataclass(frozen=True, slots=True)
class Showing:
    """What a neighbour shows at one moment.

    Attributes:
        received_bytes: of the film, from it, since it connected.
        asked: whether some request of ours is with it.
        choking: whether it takes no requests.
        called: whether we called it, and not it us.
    """

    received_bytes: int
    asked: bool
    choking: bool
    called: bool = True


@dataclass(slots=True)
class _Trial:
    """One neighbour: bytes then, and since when it is asked without end, and without a byte.

    `rate` is what it was judged by last, bytes/second.
    """

    began_at: float
    began_bytes: int
    heard_at: float
    heard_bytes: int
    called: bool
    rate: float | None = None
    is_weak: bool = False


class Patience:
    """Judges neighbours by what they show.

    Args:
        settings: see `PatienceSettings`.
    """

    def __init__(self, settings: PatienceSettings | None = None) -> None:
        self._settings = settings or PatienceSettings()
        self._trials: dict[Address, _Trial] = {}
        self._shunned: dict[Address, float] = {}
        self._pause = self._settings.search_seconds
        self._next_turn = -math.inf

    def observe(
        self, now: float, neighbours: Iterable[tuple[Address, Showing]], film_rate: float
    ) -> frozenset[Address]:
        """Take note of all neighbours; call it about once a second.

        Args:
            now: the time, seconds.
            neighbours: everyone who is connected.
            film_rate: bytes of film per second.

        Returns:
            Whom to hang up on. They are shunned from now on.
        """
        trials: dict[Address, _Trial] = {}
        silent: set[Address] = set()
        for address, showing in neighbours:
            trial = self._trials.get(address)
            if trial is None or showing.received_bytes < trial.heard_bytes:
                received = showing.received_bytes  # a new connection counts from its beginning
                trial = _Trial(now, received, now, received, showing.called)
            trials[address] = trial
            if self._is_silent(trial, now, showing):
                silent.add(address)
            self._judge(trial, now, showing, film_rate)
        self._trials = trials
        silent |= self._poorest(now)
        if self._shunned or silent:
            least = now - self._settings.shun_seconds
            self._shunned = {who: at for who, at in self._shunned.items() if at > least}
            self._shunned.update(dict.fromkeys(silent, now))
        return frozenset(silent)

    def _is_silent(self, trial: _Trial, now: float, showing: Showing) -> bool:
        if showing.received_bytes > trial.heard_bytes or not showing.asked:
            trial.heard_at, trial.heard_bytes = now, showing.received_bytes
        return now - trial.heard_at >= self._settings.silent_seconds

    def _judge(self, trial: _Trial, now: float, showing: Showing, film_rate: float) -> None:
        if not (showing.asked or showing.choking):
            # It owes us nothing: what it is worth will be seen when it is asked again.
            trial.began_at, trial.began_bytes = now, showing.received_bytes
            return
        elapsed = now - trial.began_at
        if elapsed >= self._settings.weak_seconds:
            rate = (showing.received_bytes - trial.began_bytes) / elapsed
            trial.is_weak = rate < self._settings.weak_share * film_rate
            if trial.rate is None and trial.called and not trial.is_weak:
                self._pause = self._settings.search_seconds  # there are better ones to be found
            trial.rate = rate
            trial.began_at, trial.began_bytes = now, showing.received_bytes

    def _called_and_weak(self) -> list[tuple[float, Address]]:
        return [
            (trial.rate or 0.0, address)
            for address, trial in self._trials.items()
            if trial.called and trial.is_weak
        ]

    def _poorest(self, now: float) -> set[Address]:
        """Whoever brings least of the weak, if there are too many of them and it is time."""
        weak = self._called_and_weak()
        if len(weak) < self._settings.most_weak or now < self._next_turn:
            return set()
        self._next_turn = now + self._pause
        self._pause = min(2 * self._pause, self._settings.most_search_seconds)
        return {min(weak)[1]}

    @property
    def is_enough(self) -> bool:
        """Whether so many who bring too little were called that nobody else is to be called."""
        return len(self._called_and_weak()) >= self._settings.most_weak

    @property
    def weak(self) -> frozenset[Address]:
        """Neighbours who bring too little to rely on."""
        return frozenset(address for address, trial in self._trials.items() if trial.is_weak)

    def is_shunned(self, address: Address, now: float) -> bool:
        """Whether it was hung up on lately."""
        since = self._shunned.get(address)
        return since is not None and now - since < self._settings.shun_seconds
