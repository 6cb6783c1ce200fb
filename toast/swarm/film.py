"""One film in a libtorrent session: plans in, events and facts out."""

import math
import time
from pathlib import Path
from typing import Any

import libtorrent as lt
import numpy as np
from numpy.typing import NDArray

from toast.common.geometry import Geometry
from toast.policy.suspicion import Suspicion
from toast.policy.view import Plan, SwarmView
from toast.swarm.acquaintances import Acquaintances
from toast.swarm.errors import SwarmError
from toast.swarm.facts import (
    OPERATOR_PREFIX,
    Address,
    Block,
    Counters,
    Neighbour,
    Snapshot,
    SwarmEvents,
)
from toast.swarm.layout import Layout
from toast.swarm.metainfo import Metainfo
from toast.swarm.session import SwarmSession
from toast.swarm.steering import OFF, WAITING, Steering
from toast.swarm.truth import Truth

__all__ = ["FilmSwarm"]

_REQUESTED, _FINISHED = 1, 3
_FLAGS = lt.torrent_flags
_HUNG_UP_ERRORS = frozenset({2, 104})  # asio's end of file, connection reset
_PEER_BANNED = 91  # libtorrent's error, when it finds out a liar by comparing blocks


class FilmSwarm:
    """One film in one session.

    A piece can be ejected: its file is deleted, and a neighbour that asks for it is refused
    (BEP 6 REJECT, BEP 54 DONT_HAVE). But libtorrent goes on believing that it has it, tells so
    every new neighbour, and would never ask for it again. So from time to time the film is left
    and joined again at once, with what is really here: when an ejected piece is wanted again, and
    when neighbours were misled. Everyone then has to reconnect; nothing that is stored is lost.

    Args:
        session: the session to join it to.
        metainfo: the film.
        folder: where its file lies.
        have: bool[pieces], what was found intact on disk.
        events: who is told.
        layout: where its bytes lie, if that is not one file in the folder.
    """

    def __init__(
        self,
        session: SwarmSession,
        metainfo: Metainfo,
        *,
        folder: Path,
        have: NDArray[np.bool_],
        events: SwarmEvents,
        layout: Layout | None = None,
    ) -> None:
        self._session = session
        self._metainfo = metainfo
        self._geometry: Geometry = metainfo.geometry
        self._layout = layout or Layout.whole(folder, metainfo.name, metainfo.geometry)
        self._events = events
        self._operators: set[Address] = set()
        self._steering = Steering(metainfo.geometry.pieces)
        self._steering.priorities[:] = WAITING
        self._sequential = False
        self._held = have.copy()
        self._believed = have.copy()
        self._truth = Truth()
        self._deleted: set[int] = set()
        self._dropped: set[int] = set()  # of those, begun ones that libtorrent has yet to forget
        self._before = Counters()
        self._returning: tuple[Neighbour, ...] = ()
        self._looked: tuple[Neighbour, ...] = ()
        self._looked_at = -math.inf
        self._started = False
        self._peers = Acquaintances()
        self._udp_trackers: list[str] = []
        self._convicted: dict[Address, None] = {}
        self._suspicion = Suspicion()
        self._now = 0.0
        self._checked = False
        self._too_early: list[tuple[int, bytes]] = []
        self._reads: list[int] = []
        self.rejoins = 0
        files = lt.file_storage()
        for path, segment in zip(self._layout.paths(), self._layout.segments, strict=True):
            files.add_file(path, segment.size)
        self._info = lt.torrent_info(metainfo.info)
        self._info.remap_files(files)
        try:
            self._handle: Any = self._join({})
        except RuntimeError as error:
            raise SwarmError(f"{metainfo.name} cannot be joined: {error}") from error

    def _join(self, unfinished: dict[int, list[bool]]) -> Any:
        """Add the film to the session, with what is really here."""
        params = lt.add_torrent_params()
        params.ti = self._info
        params.save_path = str(self._layout.folder)
        params.storage_mode = lt.storage_mode_t.storage_mode_sparse
        params.have_pieces = self._held.tolist()
        params.verified_pieces = params.have_pieces
        params.unfinished_pieces = unfinished
        params.banned_peers = list(self.banned)
        # Paused until the first neighbours are known: resuming connects to them at once, while a
        # running torrent opens connections once a second.
        params.flags = (
            _FLAGS.paused
            | _FLAGS.override_trackers
            | _FLAGS.override_web_seeds
            | _FLAGS.duplicate_is_error
            | _FLAGS.apply_ip_filter
        )
        if self._sequential:
            params.flags |= _FLAGS.sequential_download
        if not (self._metainfo.discoverable and self._session.discover()):
            params.flags |= _FLAGS.disable_dht | _FLAGS.disable_lsd
            if not self._session.settings.peer_exchange:
                params.flags |= _FLAGS.disable_pex
        params.trackers = self._udp_trackers
        params.url_seeds = []  # when to use the server is our decision, never libtorrent's
        params.piece_priorities = self._steering.priorities.tolist()
        self._believed = self._held.copy()
        self._checked = False
        handle = self._session.native.add_torrent(params)
        self._session.register(handle, self)
        return handle

    def start(self, addresses: tuple[Address, ...] = ()) -> None:
        """Join the swarm, connecting at once to the neighbours already known."""
        self._started = True
        for address in addresses:
            self.connect(address)
        self._handle.resume()

    def connect(self, address: Address) -> None:
        """Connect to a peer, within a second."""
        self._peers.asked[address] = None
        self._handle.connect_peer(address)

    def hang_up(self, *addresses: Address) -> None:
        """Disconnect peers: what was asked of them can be asked of others."""
        for address in addresses:
            self._peers.asked.pop(address, None)
        self._session.hang_up(*(host for host, _ in addresses))

    @property
    def banned(self) -> frozenset[Address]:
        """Peers that libtorrent does not speak with for this film: on proof, or for a while."""
        return self._suspicion.out | self._convicted.keys()

    @property
    def suspected(self) -> frozenset[Address]:
        """Peers that it once did not speak with, and of which nothing is proven."""
        return self._suspicion.suspected

    @property
    def banned_hosts(self) -> frozenset[str]:
        """Hosts that are known to have sent wrong blocks, of this film or another."""
        return self._session.banned_hosts

    def departed(self) -> frozenset[Address]:
        """Who has left, or could not be reached, since the last time that this was asked."""
        return self._peers.departed()

    def eject(self, pieces: NDArray[np.intp]) -> None:
        """Delete pieces, to make room. Only where each piece is a file of its own.

        Raises:
            SwarmError: the disk refuses.
        """
        for piece in pieces.tolist():
            self._delete(piece)
            if not self._believed[piece]:
                # Begun and not finished: libtorrent must forget the blocks that it wrote.
                self._truth.must_be_told = True
                self._dropped.add(piece)
            self._held[piece] = False
        self._deleted.update(pieces.tolist())
        if pieces.size:
            self._handle.flush_cache()  # closes the files: the space is free only then

    def settle(self, now: float) -> None:
        """Let neighbours know what is here, if they were misled and it is time; call it often."""
        for piece in self._deleted:
            # A block of it that was still being written has made its file anew.
            if not self._held[piece]:
                self._delete(piece)
        self._deleted.clear()
        self._now = self._peers.now = now
        self._pardon()
        if self._truth.is_settled(now):
            self._returning = ()
        if self._truth.is_due(now) or (
            not self._peers.present and self._truth.is_free(now) and self.ejected.any()
        ):
            self._rejoin()
            self._truth.told(now)

    def _pardon(self) -> None:
        """Speak again with those of whom nothing was proven."""
        for address in self._suspicion.pardoned(self._now):
            if address[0] not in self.banned_hosts:
                self._session.hang_up(address[0])  # with that libtorrent forgets what it counted
                self.connect(address)

    def _delete(self, piece: int) -> None:
        try:
            self._layout.delete(piece)
        except OSError as error:
            raise SwarmError(f"{error.filename} cannot be deleted: {error.strerror}") from error

    @property
    def ejected(self) -> NDArray[np.bool_]:
        """bool[pieces], deleted and not told yet: libtorrent believes that they are here."""
        return self._believed & ~self._held

    def _rejoin(self) -> None:
        """Leave and join again at once: then everyone is told what is really here."""
        self._session.deliver()  # what was verified up to now must not be lost
        unfinished = {
            part["piece_index"]: [block["state"] == _FINISHED for block in part["blocks"]]
            for part in self._handle.get_download_queue()
            if part["piece_index"] not in self._dropped
        }
        self._dropped.clear()
        addresses = self._peers.joined_anew()
        self._before = self.counters()
        self._returning = tuple(self._neighbours())
        self._looked_at = -math.inf
        self._session.unregister(self._handle)
        self._session.native.remove_torrent(self._handle)
        self._handle = self._join(unfinished)
        self.rejoins += 1
        if self._started:
            self.start(addresses)
        self._events.neighbours_changed()

    def note_operator(self, address: Address) -> None:
        """Remember that this address is the operator's seed: its bytes are operator bytes."""
        self._operators.add(address)

    def use_udp_tracker(self, url: str) -> None:
        """Let libtorrent announce to a tracker of a kind that our announcer does not speak."""
        self._udp_trackers.append(url)
        self._handle.add_tracker({"url": url})

    def steer(self, plan: Plan, coming: NDArray[np.intp], view: SwarmView) -> None:
        """Make requests follow a plan; `coming` are the best of what nobody has yet."""
        orders = self._steering.apply(plan, coming, view)
        if (self._steering.priorities[self.ejected] > OFF).any():
            self._truth.must_be_told = True
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
        self._suspicion.asked(piece, None)
        if self.ejected[piece]:
            self._truth.must_be_told = True  # until then it would drop it, too
        if self._checked and not self.ejected[piece]:
            self._handle.add_piece(piece, data, 0)
        else:
            # Until it has looked at its files libtorrent drops what it is given, silently.
            self._too_early.append((piece, data))

    def read_piece(self, piece: int) -> None:
        """Ask libtorrent for a verified piece, also one that it has not flushed yet."""
        if not self._held[piece]:
            self._events.piece_read(piece, b"")  # asking would put libtorrent into an error
            return
        self._reads.append(piece)
        self._handle.read_piece(piece)

    def snapshot(self) -> Snapshot:
        """Look at the swarm; a few hundred microseconds, most of it libtorrent's."""
        in_flight = np.zeros(self._geometry.pieces, dtype=np.bool_)
        asked: dict[int, list[Address | None]] = {}
        missing: dict[int, NDArray[np.bool_]] = {}
        for part in self._handle.get_download_queue():
            piece, blocks = part["piece_index"], part["blocks"]
            states = [block["state"] for block in blocks]
            in_flight[piece] = max(states) >= _REQUESTED
            missing[piece] = np.array(states) < _FINISHED - 1
            asked[piece] = [
                block["peer"] if state == _REQUESTED else None
                for block, state in zip(blocks, states, strict=True)
            ]
        neighbours = self.neighbours()
        availability = np.zeros(self._geometry.pieces, dtype=np.int32)
        for neighbour in neighbours:
            availability += neighbour.pieces
        return Snapshot(neighbours, availability, in_flight, asked, missing)

    def neighbours(self, max_age_seconds: float = 0.0) -> tuple[Neighbour, ...]:
        """Those connected, past the handshake.

        Args:
            max_age_seconds: since the last look; it is not looked again sooner, unless somebody
                has come or gone. To ask libtorrent is to wait for it.
        """
        if time.monotonic() - self._looked_at >= max_age_seconds:
            neighbours = tuple(self._neighbours())
            present = {neighbour.address for neighbour in neighbours}
            # Those who reconnect this very moment, because we joined anew, are not gone.
            self._looked = neighbours + tuple(
                gone for gone in self._returning if gone.address not in present
            )
            self._looked_at = time.monotonic()
        return self._looked

    def counters(self) -> Counters:
        """Bytes so far."""
        status = self._handle.status(0)
        before = self._before
        return Counters(
            sent=before.sent + status.total_upload,
            received=before.received + status.total_download,
            sent_payload=before.sent_payload + status.total_payload_upload,
            received_payload=before.received_payload + status.total_payload_download,
            redundant=before.redundant + status.total_redundant_bytes,
            failed=before.failed + status.total_failed_bytes,
            rejoins=self.rejoins,
            banned=len(self.banned),
        )

    def close(self) -> None:
        """Leave the swarm; what is stored stays."""
        self._session.unregister(self._handle)
        self._session.native.remove_torrent(self._handle)

    def on_alert(self, alert: Any) -> None:
        """Translate one of libtorrent's alerts."""
        match alert:
            case lt.piece_finished_alert():
                self._finished(alert.piece_index)
            case lt.block_downloading_alert():
                block = self._block(alert)
                self._suspicion.asked(block.piece, block.address)
                self._events.block_requested(block)
            case lt.block_finished_alert():
                self._events.block_arrived(self._block(alert))
            case lt.hash_failed_alert():
                if liar := self._suspicion.failed(alert.piece_index):
                    self._ban(liar)
                self._events.piece_failed(alert.piece_index)
            case lt.read_piece_alert():
                self._was_read(alert)
            case lt.torrent_checked_alert():
                self._take_up()
            case lt.file_error_alert() | lt.torrent_error_alert():
                self._failed(alert)
            case lt.peer_connect_alert() | lt.peer_disconnected_alert() | lt.peer_ban_alert():
                self._on_peer(alert)

    def _on_peer(self, alert: Any) -> None:
        self._looked_at = -math.inf
        address = (str(alert.endpoint[0]), int(alert.endpoint[1]))
        if isinstance(alert, lt.peer_ban_alert):
            # It had a part in pieces that failed, which by itself proves nothing.
            if address not in self._convicted:
                self._suspicion.suspect(self._now, address)
            return
        if isinstance(alert, lt.peer_connect_alert):
            self._peers.connected(address)
        else:
            own = _is_its_own(alert.error)
            hung_up = not own and alert.error.value() in _HUNG_UP_ERRORS
            if self._peers.left(address, hung_up=hung_up):
                self._handle.connect_peer(address)
            # Whom it finds out by comparing blocks it bans without saying so. The same is told
            # to those who call while they are kept out.
            if alert.error.value() == _PEER_BANNED and own and address not in self.banned:
                self._ban(address)
        self._events.neighbours_changed()

    def _ban(self, address: Address) -> None:
        """Wrong blocks came from there. A liar can call from any port: its host is banned."""
        self._suspicion.convicted(address)
        self._convicted[address] = None
        self._session.ban(address[0])

    def _failed(self, alert: Any) -> None:
        if isinstance(alert, lt.file_error_alert) and self._is_ejected(alert.filename()):
            self._truth.misled += 1
            return
        self._events.storage_failed(alert.error.message())
        self._handle.clear_error()

    def _take_up(self) -> None:
        """The files were looked at: do what came too early for that."""
        self._checked = True
        while self._too_early:
            self._handle.add_piece(*self._too_early.pop(0), 0)
        reads, self._reads = self._reads, []
        for piece in reads:
            self.read_piece(piece)

    def _was_read(self, alert: Any) -> None:
        failed = alert.error.value() != 0
        if alert.piece in self._reads:
            self._reads.remove(alert.piece)
        self._events.piece_read(alert.piece, b"" if failed else bytes(alert.buffer))

    def _finished(self, piece: int) -> None:
        """A piece is here; on joining, libtorrent tells this also of those that were found."""
        if not self._held[piece]:
            self._suspicion.passed(piece)
            self._held[piece] = self._believed[piece] = True
            self._events.piece_verified(piece)

    def _is_ejected(self, path: str) -> bool:
        """Whether this is the file of a piece that was deleted: somebody has asked for it."""
        name = Path(path).name
        if not (self._layout.per_piece and name.isdecimal() and int(name) < self._held.size):
            return False
        return bool(self.ejected[int(name)])

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
                    received_bytes=int(peer.total_download),
                    requests=int(peer.download_queue_length),
                    is_wanted=bool(peer.flags & lt.peer_info.interesting),
                )
            )
        return neighbours


def _is_its_own(error: Any) -> bool:
    """Whether the number of an error is libtorrent's, and not the system's."""
    return str(error.category().name()) == "libtorrent"
