"""Datagram in, datagram out: the UDP tracker without its socket. Pure.

Nothing is ever sent to an address that is larger than what came from it, until it has shown by a
connection id that it receives what is sent to it.
"""

from typing import Final

from tracker import codec, udp_codec
from tracker.access_log import EVENT_WORDS
from tracker.connection_ids import ConnectionIds
from tracker.errors import RequestError
from tracker.messages import SwarmCounts
from tracker.service import Service
from tracker.udp_codec import ANNOUNCE, CONNECT, EVENTS, HEAD, HEAD_BYTES, PROTOCOL_ID, SCRAPE

__all__ = ["MOST_ANSWER_BYTES", "UdpAnswers"]

MOST_ANSWER_BYTES: Final = 1220
"""Largest answer to an announce: fits any path's packets (IPv6's least MTU is 1280), whole."""

_NOTHING: Final = SwarmCounts()
_WORDS: Final = tuple(EVENT_WORDS[event] for event in EVENTS)
_UNPROVED: Final = "connection id is not valid: connect first"


class UdpAnswers:
    """Answers datagrams.

    Args:
        service: who answers.
        ids: gives and checks connection ids.
    """

    def __init__(self, service: Service, ids: ConnectionIds) -> None:
        self._service = service
        self._counters = service.counters
        self._swarms = service.swarms
        self._ids = ids
        self._admit = service.rates.admit
        self._most_peers = tuple(
            (MOST_ANSWER_BYTES - udp_codec.ANNOUNCE_HEAD.size) // width for width in (6, 18, 6, 18)
        )

    def answer(
        self, datagram: bytes | bytearray, size: int, source: tuple[bytes, int], now: float
    ) -> bytes | None:
        """The answer to the first `size` bytes, or None.

        Args:
            datagram: what came.
            size: bytes of it.
            source: where from, packed (IPv4 as 4 bytes also on an IPv6 socket), and the family of
                this address by `tracker.swarm.family_of`.
            now: seconds.
        """
        counters = self._counters
        if size < HEAD_BYTES:
            counters.udp_ignored += 1
            return None
        connection_id, action, transaction = HEAD.unpack_from(datagram)
        if action == CONNECT:
            if connection_id != PROTOCOL_ID:
                counters.udp_ignored += 1
                return None
            counters.udp_connects += 1
            return udp_codec.encode_connect(transaction, self._ids.give(source[0], now))
        if not self._ids.holds(connection_id, source[0], now):
            counters.udp_unproved += 1
            return udp_codec.encode_error(transaction, _UNPROVED)[:size]
        make = self._announce if action == ANNOUNCE else self._scrape
        try:
            return make(datagram, size, source, transaction, now)
        except RequestError as error:
            counters.failures += 1
            if self._service.log is not None:
                key = int.from_bytes(source[0], "big") << 16
                self._service.log.add((now, source[1], key, "udp", str(error), None, False))
            return udp_codec.encode_error(transaction, str(error))

    def _announce(
        self,
        datagram: bytes | bytearray,
        size: int,
        source: tuple[bytes, int],
        transaction: int,
        now: float,
    ) -> bytes:
        counters, service = self._counters, self._service
        address, family = source
        counters.announces += 1
        counters.udp_announces += 1
        info_hash, peer_id, _, left, _, event, _, _, wanted, port = udp_codec.parse_announce(
            datagram, size
        )
        key = int.from_bytes(address, "big") << 16 | port
        if not self._admit(family, key, now):
            service.refuse_busy()
        playhead = None
        if size > udp_codec.ANNOUNCE_BYTES or service.passkeys is not None:
            query = udp_codec.parse_options(datagram, size).partition(b"?")[2]
            service.check(query)
            playhead = codec.parse_playhead(query) if query else None
        most = self._most_peers[family]
        complete, incomplete, peers = self._swarms.announce_packed(
            info_hash,
            family,
            key,
            peer_id,
            now,
            complete=left == 0,
            event=EVENTS[event],
            numwant=None if wanted < 0 else min(wanted, most),
            playhead=playhead,
        )
        if service.log is not None:
            service.log.add((now, family, key, "udp", _WORDS[event], info_hash, left == 0))
        if service.journal is not None:
            service.journal.note(
                (info_hash, family, key),
                peer_id,
                now,
                complete=left == 0,
                event=EVENTS[event],
                playhead=playhead,
            )
        interval = service.interval_seconds(now)
        return (
            udp_codec.ANNOUNCE_HEAD.pack(ANNOUNCE, transaction, interval, incomplete, complete)
            + peers
        )

    def _scrape(
        self,
        datagram: bytes | bytearray,
        size: int,
        source: tuple[bytes, int],
        transaction: int,
        now: float,
    ) -> bytes:
        if HEAD.unpack_from(datagram)[1] != SCRAPE:
            raise RequestError("this action is none of connect, announce and scrape")
        address, family = source
        self._counters.scrapes += 1
        self._counters.udp_scrapes += 1
        self._service.admit(family, int.from_bytes(address, "big") << 16, now)
        self._service.check(b"")  # there is no place for a passkey in a scrape
        most = self._service.settings.max_scrape_hashes
        info_hashes = udp_codec.parse_scrape(datagram, size, most)
        found = self._swarms.scrape(info_hashes, now)
        return udp_codec.encode_scrape(
            transaction, (found.get(info_hash, _NOTHING) for info_hash in info_hashes)
        )
