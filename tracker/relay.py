"""Signalling between browsers, as WebTorrent's trackers do it. Pure.

Browsers cannot be called at an address. Each holds a WebSocket to the tracker, and announces with
offers (of WebRTC); the tracker passes each offer on to another member of the swarm, and that one's
answer back. Info-hashes, peer ids and offer ids are strings of 20 characters, each one byte.
Members are known by their peer id within a swarm; one belongs to the connection that announced it.
"""

import json
import math
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tracker.errors import RequestError
from tracker.settings import TrackerSettings

__all__ = ["Outgoing", "Relay"]

_ID_LENGTH: Final = 20
_MOST_SCRAPED: Final = 50

Outgoing = tuple[Hashable, dict[str, Any]]
"""To whom, and what."""


@dataclass(slots=True)
class _Member:
    connection: Hashable
    complete: bool


@dataclass(slots=True)
class _Swarm:
    members: dict[str, _Member]
    downloaded: int = 0

    @property
    def complete(self) -> int:
        return sum(member.complete for member in self.members.values())


class Relay:
    """Who is in which swarm, and what each is to be sent.

    Args:
        settings: the bounds and the interval.
        rng: whom an offer goes to.

    Attributes:
        offers: offers passed on.
        answers: answers passed on.
    """

    def __init__(self, settings: TrackerSettings, rng: np.random.Generator) -> None:
        self.offers = 0
        self.answers = 0
        self._settings = settings
        self._rng = rng
        self._swarms: dict[str, _Swarm] = {}
        self._places: dict[Hashable, dict[str, str]] = {}  # connection -> info-hash -> peer id
        self._members = 0
        self._permitted: frozenset[str] | None = None

    @property
    def peers(self) -> int:
        """Members of all swarms."""
        return self._members

    def permit(self, films: frozenset[bytes] | None) -> None:
        """Serve these swarms alone (None: any), and forget all others."""
        self._permitted = None if films is None else frozenset(map(_text, films))
        if self._permitted is not None:
            for info_hash in self._swarms.keys() - self._permitted:
                for peer_id in list(self._swarms[info_hash].members):
                    self._remove(info_hash, peer_id)

    def hear(self, connection: Hashable, text: str) -> Iterator[Outgoing]:
        """Take in one message; yields what is to be sent, and to whom.

        Args:
            connection: whose message it is.
            text: as it came.

        Raises:
            RequestError: it means nothing, or is refused.
        """
        try:
            message = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise RequestError("this is no JSON") from error
        if not isinstance(message, dict):
            raise RequestError("a message is a JSON object")
        action = message.get("action")
        if action == "announce":
            if "answer" in message:
                return self._pass_answer(connection, message)
            return self._announce(connection, message)
        if action == "scrape":
            return self._scrape(connection, message)
        raise RequestError("this action is none of announce and scrape")

    def leave(self, connection: Hashable) -> None:
        """A connection has ended."""
        for info_hash, peer_id in list(self._places.get(connection, {}).items()):
            self._remove(info_hash, peer_id)

    def _announce(self, connection: Hashable, message: dict[str, Any]) -> Iterator[Outgoing]:
        info_hash, peer_id = _id(message, "info_hash"), _id(message, "peer_id")
        if self._permitted is not None and info_hash not in self._permitted:
            raise RequestError("this film is not in the catalogue")
        event = message.get("event")
        offers = self._offers(message)
        if event == "stopped":
            if self._places.get(connection, {}).get(info_hash) == peer_id:
                self._remove(info_hash, peer_id)
            return
        complete = event == "completed" or message.get("left") == 0
        swarm = self._join(connection, info_hash, peer_id, complete=complete)
        if event == "completed":
            swarm.downloaded += 1
        done = swarm.complete
        yield (
            connection,
            {
                "action": "announce",
                "info_hash": info_hash,
                "interval": math.ceil(self._settings.interval_seconds),
                "complete": done,
                "incomplete": len(swarm.members) - done,
            },
        )
        others = [
            member.connection
            for other, member in swarm.members.items()
            if other != peer_id and not (complete and member.complete)
        ]
        chosen = self._rng.permutation(len(others))[: len(offers)].tolist()
        for (offer, offer_id), place in zip(offers, chosen, strict=False):
            self.offers += 1
            yield (
                others[place],
                {
                    "action": "announce",
                    "info_hash": info_hash,
                    "peer_id": peer_id,
                    "offer": offer,
                    "offer_id": offer_id,
                },
            )

    def _pass_answer(self, connection: Hashable, message: dict[str, Any]) -> Iterator[Outgoing]:
        info_hash, peer_id = _id(message, "info_hash"), _id(message, "peer_id")
        if self._places.get(connection, {}).get(info_hash) != peer_id:
            raise RequestError("only members of a swarm can answer: announce first")
        answer = _session(message["answer"])
        to = self._swarms[info_hash].members.get(_id(message, "to_peer_id"))
        offer_id = _id(message, "offer_id")
        if to is None:
            return  # it has left meanwhile
        self.answers += 1
        yield (
            to.connection,
            {
                "action": "announce",
                "info_hash": info_hash,
                "peer_id": peer_id,
                "answer": answer,
                "offer_id": offer_id,
            },
        )

    def _scrape(self, connection: Hashable, message: dict[str, Any]) -> Iterator[Outgoing]:
        wanted = message.get("info_hash")
        names = wanted if isinstance(wanted, list) else [wanted]
        if len(names) > _MOST_SCRAPED:
            raise RequestError(f"a scrape names {_MOST_SCRAPED} torrents at most")
        files = {}
        for name in names:
            info_hash = _id({"info_hash": name}, "info_hash")
            swarm = self._swarms.get(info_hash)
            if swarm is not None:
                done = swarm.complete
                files[info_hash] = {
                    "complete": done,
                    "incomplete": len(swarm.members) - done,
                    "downloaded": swarm.downloaded,
                }
        yield connection, {"action": "scrape", "files": files}

    def _join(
        self, connection: Hashable, info_hash: str, peer_id: str, *, complete: bool
    ) -> _Swarm:
        limits = self._settings
        places = self._places.setdefault(connection, {})
        swarm = self._swarms.get(info_hash)
        member = None if swarm is None else swarm.members.get(peer_id)
        if swarm is not None and member is not None:
            if member.connection != connection:
                # Whoever knows another's peer id must not be able to take its place.
                raise RequestError("this peer id is another connection's")
            member.complete = complete
            return swarm
        if info_hash in places:
            self._remove(info_hash, places[info_hash])  # it has another name now
            places = self._places.setdefault(connection, {})
            swarm = self._swarms.get(info_hash)
        if len(places) >= limits.max_swarms_per_browser:
            raise RequestError(f"a browser can be in {limits.max_swarms_per_browser} swarms")
        if swarm is not None and len(swarm.members) >= limits.max_peers_per_torrent:
            raise RequestError("this swarm is full")
        if swarm is None:
            if len(self._swarms) >= limits.max_torrents:
                raise RequestError("the tracker has no room for one more swarm")
            swarm = self._swarms[info_hash] = _Swarm({})
        swarm.members[peer_id] = _Member(connection, complete)
        places[info_hash] = peer_id
        self._members += 1
        return swarm

    def _remove(self, info_hash: str, peer_id: str) -> None:
        swarm = self._swarms[info_hash]
        connection = swarm.members.pop(peer_id).connection
        self._members -= 1
        if not swarm.members:
            del self._swarms[info_hash]
        places = self._places[connection]
        del places[info_hash]
        if not places:
            del self._places[connection]

    def _offers(self, message: dict[str, Any]) -> list[tuple[dict[str, str], str]]:
        offers = message.get("offers")
        if offers is None:
            return []
        if not isinstance(offers, list):
            raise RequestError("offers are a list")
        found = []
        for each in offers[: self._settings.max_offers]:
            if not isinstance(each, dict):
                raise RequestError("an offer is a JSON object")
            found.append((_session(each.get("offer")), _id(each, "offer_id")))
        return found


def _id(message: dict[str, Any], name: str) -> str:
    value = message.get(name)
    if not (isinstance(value, str) and len(value) == _ID_LENGTH and max(value) < "\u0100"):
        raise RequestError(f"{name} must be {_ID_LENGTH} characters, each one byte")
    return value


def _session(value: object) -> dict[str, str]:
    """A WebRTC session description: what of it is passed on."""
    if isinstance(value, dict):
        kind, sdp = value.get("type"), value.get("sdp")
        if isinstance(kind, str) and isinstance(sdp, str):
            return {"type": kind, "sdp": sdp}
    raise RequestError("a session description has `type` and `sdp`")


def _text(info_hash: bytes) -> str:
    return info_hash.decode("latin-1")
