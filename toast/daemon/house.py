"""What all films of a daemon share."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import numpy as np

from toast.policy.budget import OriginBudget
from toast.swarm import SwarmSession

__all__ = ["House"]


@dataclass(frozen=True, slots=True)
class House:
    """What all films of a daemon share.

    Attributes:
        session: the one libtorrent session.
        http: for origins and trackers.
        films: folder in which each film has a folder.
        load_torrent: blocking; the .torrent of a film by its id.
        checking: held by the film whose pieces on disk are being hashed: one at a time.
        linger_seconds: how long a film counts as watched after its last reader left.
        budget: what VoD servers may be asked for, all films together.
        rng: all chance.
        changed: called when a film wants to be looked at.
    """

    session: SwarmSession
    http: aiohttp.ClientSession
    films: Path
    load_torrent: Callable[[str], bytes]
    checking: asyncio.Lock
    linger_seconds: float
    budget: OriginBudget
    rng: np.random.Generator
    changed: Callable[[], None]
