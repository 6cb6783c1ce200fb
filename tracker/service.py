"""What HTTP and UDP share: one memory of swarms, one set of rules for who is answered. Pure."""

import math
from typing import NoReturn

import numpy as np

from tracker import codec
from tracker.access_log import EVENT_WORDS, AccessLog
from tracker.counters import Counters
from tracker.errors import RequestError
from tracker.messages import is_loopback
from tracker.news import Journal
from tracker.passkeys import Passkeys
from tracker.rates import RequestRates
from tracker.relay import Relay
from tracker.settings import TrackerSettings
from tracker.state import Swarms
from tracker.swarm import family_of, key_of

__all__ = ["Service"]


class Service:
    """Answers announces and scrapes, whichever way they came.

    Args:
        settings: limits and intervals.
        rng: where random samples and spread intervals come from.
        now: seconds, on the clock of all later calls.

    Attributes:
        swarms: who is where.
        relay: the same of browsers, which have no address.
        counters: what happened.
        passkeys: who may announce and scrape; None: anyone.
        log: where requests are noted for the operator; None: nowhere.
        journal: where accepted announces are noted for other trackers; None: there are none.
    """

    def __init__(self, settings: TrackerSettings, rng: np.random.Generator, now: float) -> None:
        self.settings = settings
        self.swarms = Swarms(settings, rng)
        self.counters = Counters()
        self.relay = Relay(settings, rng)
        self.passkeys: Passkeys | None = None
        self.journal: Journal | None = None
        self.log: AccessLog | None = None
        self.rates = RequestRates(settings.max_requests_per_address)
        self.interval = math.ceil(settings.interval_seconds)
        self._spread_until = now + settings.interval_seconds
        self._rng = rng
        self._min_interval = math.ceil(settings.min_interval_seconds)

    def permit(self, films: frozenset[bytes] | None) -> None:
        """Serve these swarms alone (None: any), and forget all others."""
        self.swarms.permit(films)
        self.relay.permit(films)

    def interval_seconds(self, now: float) -> int:
        """What a client is told to wait.

        All who lost the tracker come back at once when it is there again. In its first interval it
        therefore tells them waits from a half to the whole of it, and from then on they are spread.
        """
        if now >= self._spread_until:
            return self.interval
        # (1 + random) / 2 is uniform from a half to one, at a fifth of the price of `uniform`.
        spread = (1.0 + self._rng.random()) / 2.0
        return max(self._min_interval, math.ceil(self.interval * spread))

    def announce(self, query: bytes, source: bytes, now: float) -> bytes:
        """The body that answers an announce over HTTP.

        Args:
            query: the query string.
            source: packed address at the other end of the connection.
            now: seconds.

        Raises:
            RequestError: it is refused.
        """
        self.counters.announces += 1
        self.admit(family_of(source), key_of(source, 0), now)
        self.check(self._short(query))
        wish = codec.parse_announce(query)
        # BEP 3's `ip` lets anyone send a swarm at a victim. Only whoever sits on this machine (a
        # seed beside its tracker) may speak for another address.
        address = wish.ip if wish.ip is not None and is_loopback(source) else source
        answer = self.swarms.announce(wish, address, now)
        if self.log is not None:
            family, key = family_of(address), key_of(address, wish.port)
            complete = wish.left == 0
            self.log.add(
                (now, family, key, "http", EVENT_WORDS[wish.event], wish.info_hash, complete)
            )
        if self.journal is not None:
            self.journal.note(
                (wish.info_hash, family_of(address), key_of(address, wish.port)),
                wish.peer_id,
                now,
                complete=wish.left == 0,
                event=wish.event,
                playhead=wish.playhead,
            )
        return codec.encode_announce(
            answer,
            wish,
            interval_seconds=self.interval_seconds(now),
            min_interval_seconds=self._min_interval,
        )

    def scrape(self, query: bytes, source: bytes, now: float) -> bytes:
        """The body that answers a scrape over HTTP; arguments and errors as for `announce`."""
        self.counters.scrapes += 1
        self.admit(family_of(source), key_of(source, 0), now)
        self.check(self._short(query))
        info_hashes = codec.parse_scrape(query, self.settings.max_scrape_hashes)
        return codec.encode_scrape(self.swarms.scrape(info_hashes, now))

    def check(self, query: bytes) -> None:
        """Look at the passkey of a query, where one is wanted.

        Raises:
            RequestError: it is missing or not ours.
        """
        if self.passkeys is not None:
            self.passkeys.check(codec.parse_passkey(query))

    def _short(self, query: bytes) -> bytes:
        if len(query) > self.settings.max_query_bytes:
            raise RequestError(f"the query is longer than {self.settings.max_query_bytes} bytes")
        return query

    def admit(self, family: int, key: int, now: float) -> None:
        """Count a request of an endpoint that has shown that it is there.

        Raises:
            RequestError: there were too many from its address.
        """
        if not self.rates.admit(family, key, now):
            self.refuse_busy()

    def refuse_busy(self) -> NoReturn:
        """Refuse an address that asks too much.

        Raises:
            RequestError: always.
        """
        self.counters.rate_refusals += 1
        raise RequestError("too many requests from this address", retry=1)
