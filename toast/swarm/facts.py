"""What a film's swarm tells: its facts as values, and its events."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "OPERATOR_PREFIX",
    "Address",
    "Block",
    "Counters",
    "Neighbour",
    "Snapshot",
    "SwarmEvents",
]

Address = tuple[str, int]
OPERATOR_PREFIX = b"-TV"
"""How the peer ids of the operator's seed begin; viewers' begin with -TO."""


@dataclass(frozen=True, slots=True)
class Block:
    """A block on its way or arrived. `address` is None for what we injected ourselves."""

    piece: int
    block: int
    address: Address | None
    operator: bool


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A connected peer. Rates in payload bytes per second; `pieces` is bool[pieces].

    `received_bytes` of payload came from it since it connected; `requests` are with it now;
    `is_wanted` while it has something that is missing here.
    """

    address: Address
    operator: bool
    incoming: bool
    down_rate: float
    up_rate: float
    queued_bytes: int
    choking_us: bool
    pieces: NDArray[np.bool_]
    received_bytes: int = 0
    requests: int = 0
    is_wanted: bool = True


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What the swarm looks like at one moment.

    Attributes:
        neighbours: those connected, past the handshake.
        availability: int32[pieces], how many of them have each piece.
        in_flight: bool[pieces], some block requested or received, piece not verified.
        asked: for each piece that is begun: of whom each block is asked; None where of nobody.
        missing: for the same pieces: bool[blocks], which blocks have not been received.
    """

    neighbours: tuple[Neighbour, ...]
    availability: NDArray[np.int32]
    in_flight: NDArray[np.bool_]
    asked: Mapping[int, Sequence[Address | None]] = field(default_factory=dict)
    missing: Mapping[int, NDArray[np.bool_]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Counters:
    """Bytes since the film was added; `sent` and `received` include the protocol.

    `rejoins`: how often the film was left and joined again at once, to tell what was ejected;
    `banned`: peers that are not spoken with because of wrong data.
    """

    sent: int = 0
    received: int = 0
    sent_payload: int = 0
    received_payload: int = 0
    redundant: int = 0
    failed: int = 0
    rejoins: int = 0
    banned: int = 0


class SwarmEvents(Protocol):
    """Who wants to know. Called on the event loop.

    A piece may be verified before its last blocks are told of, and those of a film's last piece
    may never be.
    """

    def piece_verified(self, piece: int) -> None:
        """A piece is complete and its hash is right."""

    def piece_failed(self, piece: int) -> None:
        """A complete piece had a wrong hash and was thrown away."""

    def block_requested(self, block: Block) -> None:
        """A block was asked of a peer."""

    def block_arrived(self, block: Block) -> None:
        """A block was written, from a peer or injected."""

    def piece_read(self, piece: int, data: bytes) -> None:
        """Answer to `read_piece`; empty if it failed."""

    def neighbours_changed(self) -> None:
        """A peer connected or left."""

    def storage_failed(self, reason: str) -> None:
        """The disk refused: nothing more can be stored until it is mended."""
