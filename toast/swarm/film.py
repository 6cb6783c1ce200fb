"""One film in a libtorrent session: plans in, events and facts out."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import libtorrent as lt
import numpy as np
from numpy.typing import NDArray

from toast.common.geometry import Geometry
from toast.policy.view import Plan, SwarmView
from toast.swarm.errors import SwarmError
from toast.swarm.metainfo import Metainfo
from toast.swarm.session import SwarmSession
from toast.swarm.steering import WAITING, Steering

__all__ = ["Block", "Counters", "FilmSwarm", "Neighbour", "Snapshot", "SwarmEvents"]

Address = tuple[str, int]
_REQUESTED, _FINISHED = 1, 3
_FLAGS = lt.torrent_flags
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
    """A connected peer. Rates in payload bytes per second; `pieces` is bool[pieces]."""

    address: Address
    operator: bool
    incoming: bool
    down_rate: float
    up_rate: float
    queued_bytes: int
    choking_us: bool
    pieces: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What the swarm looks like at one moment.

    Attributes:
        neighbours: those connected, past the handshake.
        availability: int32[pieces], how many of them have each piece.
        in_flight: bool[pieces], some block requested or received, piece not verified.
    """

    neighbours: tuple[Neighbour, ...]
    availability: NDArray[np.int32]
    in_flight: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Counters:
    """Bytes since the film was added; `sent` and `received` include the protocol."""

    sent: int
    received: int
    sent_payload: int
    received_payload: int
    redundant: int
    failed: int


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


class FilmSwarm:
    """One film in one session.

    Args:
        session: the session to join it to.
        metainfo: the film.
        folder: where its file lies.
        have: bool[pieces], what the file was found to hold intact.
        events: who is told.
    """

    def __init__(
        self,
        session: SwarmSession,
        metainfo: Metainfo,
        *,
        folder: Path,
        have: NDArray[np.bool_],
        events: SwarmEvents,
    ) -> None:
        self._session = session
        self._geometry: Geometry = metainfo.geometry
        self._events = events
        self._operators: set[Address] = set()
        self._steering = Steering(metainfo.geometry.pieces)
        self._sequential = False
        params = lt.add_torrent_params()
        info = lt.torrent_info(metainfo.info)
        info.rename_file(0, metainfo.name)
        params.ti = info
        params.save_path = str(folder)
        params.storage_mode = lt.storage_mode_t.storage_mode_sparse
        params.have_pieces = [bool(held) for held in have]
        params.verified_pieces = params.have_pieces
        # Paused until the first neighbours are known: resuming connects to them at once, while a
        # running torrent opens connections once a second.
        params.flags = (
            _FLAGS.paused
            | _FLAGS.disable_pex
            | _FLAGS.override_trackers
            | _FLAGS.override_web_seeds
            | _FLAGS.duplicate_is_error
        )
        if not session.settings.discovery:
            params.flags |= _FLAGS.disable_dht | _FLAGS.disable_lsd
        params.trackers = []
        params.url_seeds = []  # when to use the server is our decision, never libtorrent's
        params.piece_priorities = [WAITING] * metainfo.geometry.pieces
        self._steering.priorities[:] = WAITING
        self._checked = False
        self._too_early: list[tuple[int, bytes]] = []
        try:
            self._handle: Any = session.native.add_torrent(params)
        except RuntimeError as error:
            raise SwarmError(f"{metainfo.name} cannot be joined: {error}") from error
        session.register(self._handle, self)

    def start(self, addresses: tuple[Address, ...] = ()) -> None:
        """Join the swarm, connecting at once to the neighbours already known."""
        for address in addresses:
            self._handle.connect_peer(address)
        self._handle.resume()

    def connect(self, address: Address) -> None:
        """Connect to a peer, within a second."""
        self._handle.connect_peer(address)

    def note_operator(self, address: Address) -> None:
        """Remember that this address is the operator's seed: its bytes are operator bytes."""
        self._operators.add(address)

    def use_udp_tracker(self, url: str) -> None:
        """Let libtorrent announce to a tracker of a kind that our announcer does not speak."""
        self._handle.add_tracker({"url": url})

    def steer(self, plan: Plan, coming: NDArray[np.intp], view: SwarmView) -> None:
        """Make requests follow a plan; `coming` are the best of what nobody has yet."""
        orders = self._steering.apply(plan, coming, view)
        if orders.sequential != self._sequential:
            self._sequential = orders.sequential
            if orders.sequential:
                self._handle.set_flags(_FLAGS.sequential_download)
            else:
                self._handle.unset_flags(_FLAGS.sequential_download)
        if orders.changes:
            self._handle.prioritize_pieces(orders.changes)

    def inject(self, piece: int, data: bytes) -> None:
        """Hand over a piece. Blocks that peers have finished are kept; the rest is taken from data.

        Only the missing blocks need real bytes. Ends in `piece_verified` or `piece_failed`.
        """
        if self._checked:
            self._handle.add_piece(piece, data, 0)
        else:
            # Until it has looked at its files libtorrent drops what it is given, silently.
            self._too_early.append((piece, data))

    def read_piece(self, piece: int) -> None:
        """Ask libtorrent for a verified piece, also one that it has not flushed yet."""
        self._handle.read_piece(piece)

    def missing_blocks(self) -> dict[int, NDArray[np.bool_]]:
        """For each piece that is begun: bool[blocks], which blocks have not been received."""
        return {
            part["piece_index"]: np.array([b["state"] < _FINISHED - 1 for b in part["blocks"]])
            for part in self._handle.get_download_queue()
        }

    def snapshot(self) -> Snapshot:
        """Look at the swarm; a few hundred microseconds."""
        in_flight = np.zeros(self._geometry.pieces, dtype=np.bool_)
        for part in self._handle.get_download_queue():
            in_flight[part["piece_index"]] = any(b["state"] >= _REQUESTED for b in part["blocks"])
        neighbours = tuple(self._neighbours())
        availability = np.zeros(self._geometry.pieces, dtype=np.int32)
        for neighbour in neighbours:
            availability += neighbour.pieces
        return Snapshot(neighbours, availability, in_flight)

    def counters(self) -> Counters:
        """Bytes so far."""
        status = self._handle.status(0)
        return Counters(
            sent=status.total_upload,
            received=status.total_download,
            sent_payload=status.total_payload_upload,
            received_payload=status.total_payload_download,
            redundant=status.total_redundant_bytes,
            failed=status.total_failed_bytes,
        )

    def close(self) -> None:
        """Leave the swarm; what is stored stays."""
        self._session.unregister(self._handle)
        self._session.native.remove_torrent(self._handle)

    def on_alert(self, alert: Any) -> None:
        """Translate one of libtorrent's alerts."""
        match alert:
            case lt.piece_finished_alert():
                self._events.piece_verified(alert.piece_index)
            case lt.block_downloading_alert():
                self._events.block_requested(self._block(alert))
            case lt.block_finished_alert():
                self._events.block_arrived(self._block(alert))
            case lt.hash_failed_alert():
                self._events.piece_failed(alert.piece_index)
            case lt.read_piece_alert():
                failed = alert.error.value() != 0
                self._events.piece_read(alert.piece, b"" if failed else bytes(alert.buffer))
            case lt.peer_connect_alert() | lt.peer_disconnected_alert():
                self._events.neighbours_changed()
            case lt.torrent_checked_alert():
                self._checked = True
                while self._too_early:
                    self._handle.add_piece(*self._too_early.pop(0), 0)
            case lt.file_error_alert() | lt.torrent_error_alert():
                self._events.storage_failed(alert.error.message())
                self._handle.clear_error()

    def _block(self, alert: Any) -> Block:
        host, port = alert.endpoint
        if port == 0:
            return Block(alert.piece_index, alert.block_index, None, operator=False)
        address = (str(host), int(port))
        operator = address in self._operators
        if not operator and alert.pid.to_bytes().startswith(OPERATOR_PREFIX):
            self._operators.add(address)
            operator = True
        return Block(alert.piece_index, alert.block_index, address, operator=operator)

    def _neighbours(self) -> list[Neighbour]:
        neighbours = []
        for peer in self._handle.get_peer_info():
            if peer.flags & (lt.peer_info.connecting | lt.peer_info.handshake):
                continue
            pieces = np.fromiter(peer.pieces, dtype=np.bool_, count=len(peer.pieces))
            if pieces.size != self._geometry.pieces:
                continue  # its bitfield has not come yet
            neighbours.append(
                Neighbour(
                    address=(str(peer.ip[0]), int(peer.ip[1])),
                    operator=peer.pid.to_bytes().startswith(OPERATOR_PREFIX),
                    incoming=not peer.flags & lt.peer_info.outgoing_connection,
                    down_rate=float(peer.payload_down_speed),
                    up_rate=float(peer.payload_up_speed),
                    queued_bytes=int(peer.queue_bytes),
                    choking_us=bool(peer.flags & lt.peer_info.remote_choked),
                    pieces=pieces,
                )
            )
        return neighbours
