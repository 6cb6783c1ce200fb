"""What a neighbourhood has around it, for tests: a swarm, a viewing, a policy."""

import asyncio

import numpy as np

from toast.swarm import Neighbour

PIECES = 4


class FakeSwarm:
    """What FilmSwarm is to a neighbourhood; connects when the test says so."""

    def __init__(self):
        self.connected = []
        self.asked = []
        self.started_with = None
        self.operators = set()
        self.udp = []
        self.changed = asyncio.Event()
        self.banned_hosts = frozenset()
        self.banned = frozenset()
        self.left = set()
        self.hung_up_on = []
        self.showing = {}

    def departed(self):
        departed, self.left = frozenset(self.left), set()
        return departed

    def hang_up(self, *addresses):
        self.hung_up_on += addresses

    def start(self, addresses=()):
        self.started_with = tuple(addresses)
        self.changed.set()

    def connect(self, address):
        self.asked.append(address)
        self.changed.set()

    def note_operator(self, address):
        self.operators.add(address)

    def use_udp_tracker(self, url):
        self.udp.append(url)

    def neighbours(self, max_age_seconds=0.0):
        return tuple(
            Neighbour(
                address=address,
                **{
                    "operator": False,
                    "incoming": False,
                    "down_rate": 7.0,
                    "up_rate": 0.0,
                    "queued_bytes": 0,
                    "choking_us": False,
                    "pieces": np.ones(PIECES, dtype=np.bool_),
                }
                | self.showing.get(address, {}),
            )
            for address in self.connected
        )

    async def until(self, condition):
        async with asyncio.timeout(5):
            while not condition():
                self.changed.clear()
                await self.changed.wait()


class Watching:
    own_position = 12.5
    is_announcing_playhead = True
    need_seconds = 3.0
    film_rate = 1000.0

    def left_bytes(self):
        return 1234

    def transferred(self):
        return 10, 20


class Complete(Watching):
    """Somebody who has all of the film."""

    def left_bytes(self):
        return 0


class Obedient:
    """Connects to whom it is told to, and keeps what it was asked."""

    name = "obedient"

    def __init__(self, *wanted):
        self.wanted = wanted
        self.calls = []

    def choose(self, own_position, candidates, connected, useful, need_seconds, rng):  # noqa: PLR0917 - the protocol
        self.calls.append((own_position, candidates, set(connected), dict(useful), need_seconds))
        there = {candidate.address for candidate in candidates}
        return tuple(a for a in self.wanted if a in there and a not in connected)
