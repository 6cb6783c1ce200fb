"""A tracker's memory as bytes, so that a restart forgets nobody. Pure.

All numbers are little-endian. A head (mark, version, wall clock in seconds), then for each swarm
its info-hash, `downloaded` and number of members, then for each member family, flags (1 complete,
2 counted), silence and playhead in seconds (NaN: does not say), peer id and packed endpoint. At the
end stands a BLAKE2b digest of all before it: half a snapshot is none.
"""

import hashlib
import math
from struct import Struct, error
from typing import Final

from tracker.errors import RequestError, TrackerError
from tracker.state import Swarms
from tracker.swarm import WIDTHS

__all__ = ["dump_swarms", "restore_swarms"]

_HEAD: Final = Struct("<8sHd")
_MARK: Final = b"toasttrk"
_VERSION: Final = 1
_SWARM: Final = Struct("<20sQI")
_MEMBER: Final = Struct("<BBff20s")
_DIGEST_BYTES: Final = 16


def dump_swarms(swarms: Swarms, now: float, wall: float) -> bytes:
    """Everything that is remembered.

    Args:
        swarms: what to write down.
        now: seconds, on the swarms' clock.
        wall: seconds since the epoch: the next process has another clock.
    """
    parts = [_HEAD.pack(_MARK, _VERSION, wall)]
    for info_hash, swarm in swarms.each(now):
        parts.append(_SWARM.pack(info_hash, swarm.downloaded, len(swarm)))
        for kind, roster in swarm.living():
            width = roster.width
            for place in range(len(roster)):
                flags = kind % 2 + 2 * bool(roster.counted[place])
                silence = now - roster.heard[place]
                playhead = roster.heard[place] - roster.began_at(place)
                parts.append(
                    _MEMBER.pack(kind // 2, flags, silence, playhead, roster.id_at(place))
                    + roster.packed[place * width : (place + 1) * width]
                )
    body = b"".join(parts)
    return body + _digest(body)


def restore_swarms(swarms: Swarms, data: bytes, now: float, wall: float) -> int:
    """Remember what a snapshot says, as far as it still holds; returns how many peers.

    Args:
        swarms: where to; what it knows already stays.
        data: a snapshot.
        now: seconds, on the swarms' clock.
        wall: seconds since the epoch.

    Raises:
        TrackerError: it is no whole snapshot.
    """
    body = data[:-_DIGEST_BYTES]
    if data[-_DIGEST_BYTES:] != _digest(body) or body[:8] != _MARK:
        raise TrackerError("this is no whole snapshot of a tracker")
    before = swarms.peers
    try:
        _, version, written = _HEAD.unpack_from(body)
        if version != _VERSION:
            raise TrackerError(f"this snapshot has version {version}, and {_VERSION} is read")
        _restore(swarms, body, now, max(0.0, wall - written))
    except error as cut:
        raise TrackerError("this is no whole snapshot of a tracker") from cut
    except RequestError:
        pass  # as many swarms as there is room for
    return swarms.peers - before


def _restore(swarms: Swarms, body: bytes, now: float, asleep: float) -> None:
    place = _HEAD.size
    while place < len(body):
        info_hash, downloaded, members = _SWARM.unpack_from(body, place)
        place += _SWARM.size
        swarms.recall_swarm(info_hash, downloaded)
        for _ in range(members):
            family, flags, silence, playhead, peer_id = _MEMBER.unpack_from(body, place)
            place += _MEMBER.size
            width = WIDTHS[family]
            swarms.recall(
                (info_hash, family, int.from_bytes(body[place : place + width], "big")),
                peer_id,
                now - asleep - silence,
                now,
                complete=bool(flags & 1),
                counted=bool(flags & 2),
                playhead=None if math.isnan(playhead) else playhead,
            )
            place += width


def _digest(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=_DIGEST_BYTES).digest()
