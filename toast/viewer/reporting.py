"""What is told of a viewing: while it goes on, and in the end."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from toast.policy.playhead import Playhead, State
from toast.swarm import Counters, Metainfo, Neighbour
from toast.viewer.accounts import Accounts

__all__ = ["make_progress", "make_report"]


def make_progress(
    *,
    playhead: Playhead,
    slack: NDArray[np.float64],
    have: NDArray[np.bool_],
    wanted: NDArray[np.bool_],
    duration: float | None,
    neighbours: Sequence[Neighbour],
    accounts: Accounts,
    origin_up: bool | None,
    origin_error: str | None,
    origin_left_bytes: float,
    tracker_error: str | None,
    readers: int,
) -> dict[str, Any]:
    """Where the viewing stands.

    Args:
        playhead: of the viewing.
        slack: float64[pieces], as the playhead gives it now.
        have: bool[pieces], verified, or not wanted.
        wanted: bool[pieces], what the film is in.
        duration: film seconds, or None while they are not known.
        neighbours: as last seen.
        accounts: of the viewing.
        origin_up: whether the VoD server can be asked; None if there is none.
        origin_error: why it could not, lately.
        origin_left_bytes: most that its budget lets be asked of it now; +inf if there is no bound.
        tracker_error: why the tracker could not, lately.
        readers: players' connections.
    """
    ahead = float(np.where(have, np.inf, slack).min())
    if not math.isfinite(ahead):
        ahead = (duration or 0.0) - playhead.position
    return {
        "state": playhead.state.name.lower(),
        "position_seconds": round(playhead.position, 3),
        "duration_seconds": duration,
        "buffer_seconds": round(max(0.0, ahead), 3),
        "pieces_have": int((have & wanted).sum()),
        "pieces": int(wanted.sum()),
        "neighbours": len(neighbours),
        "down_rate": sum(neighbour.down_rate for neighbour in neighbours),
        "up_rate": sum(neighbour.up_rate for neighbour in neighbours),
        "stalls": playhead.stalls,
        "paused": playhead.state is State.PAUSED,
        "readers": readers,
        "origin_up": origin_up,
        "origin_error": origin_error,
        "origin_left_bytes": origin_left_bytes if math.isfinite(origin_left_bytes) else None,
        "tracker_error": tracker_error,
        **accounts.report(),
    }


def make_report(
    *,
    metainfo: Metainfo,
    playhead: Playhead,
    accounts: Accounts,
    counters: Counters,
    upload_cap: float | None,
    presence: tuple[float, float],
    arrived_at: float,
    complete: bool,
    sha256: str | None,
) -> dict[str, Any]:
    """What the viewing came to.

    Args:
        metainfo: the film.
        playhead: of the viewing.
        accounts: of the viewing.
        counters: of the swarm side, at the end.
        upload_cap: bytes per second, or None.
        presence: monotonic seconds of joining and leaving the swarm.
        arrived_at: Unix time of joining.
        complete: whether every piece was here and verified.
        sha256: of the film, hexadecimal; None if it could not be taken.
    """
    joined, left = presence
    return {
        "film": metainfo.name,
        "film_bytes": metainfo.film_bytes,
        "start_seconds": playhead.start_seconds,
        "stalls": playhead.stalls,
        "stall_seconds": round(playhead.stall_seconds(left), 3),
        "seek_seconds": [round(seconds, 3) for seconds in playhead.seek_seconds],
        **accounts.report(),
        "bytes_wasted": counters.redundant + counters.failed,
        "bytes_uploaded": counters.sent,
        "upload_cap": upload_cap,
        "presence_seconds": left - joined,
        "arrived_at": arrived_at,
        "departed_at": arrived_at + left - joined,
        "position_seconds": playhead.position,
        "rejoins": counters.rejoins,
        "banned_peers": counters.banned,
        "complete": complete,
        "sha256": sha256,
    }
