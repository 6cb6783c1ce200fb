"""The operator's seed: the films of the store in the swarm, straight from their extents.

libtorrent is given the published torrent, remapped onto the extents' files: no film is copied.
It reads those files itself and believes what it is told to have, so every extent is verified
before it is advertised, and a replica that fails later is replaced by another.
"""

import asyncio
import logging
import os
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import libtorrent as lt
from bencode2 import bdecode, bencode

from vodserver.errors import SeedError
from vodserver.store import Extent, Store, Title

__all__ = ["PEER_ID_PREFIX", "Seed", "SeedSettings"]

PEER_ID_PREFIX: Final = "-TV0100-"
"""Begins the seed's peer id: viewers and tracker know by it what comes from the operator."""

_LISTEN_SECONDS: Final = 10.0
_STATISTICS_SECONDS: Final = 5.0
_WANTED: Final = ("net.sent_bytes", "net.sent_payload_bytes", "peer.num_peers_connected")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedSettings:
    """How the seed behaves; `ServeSettings` has the defaults."""

    host: str
    """IP address to listen on."""
    port: int
    """TCP port; 0 takes any free one."""
    upload: float | None
    """Most that is sent, bytes per second, protocol included, also on loopback; None: no limit."""
    connections: int
    """Most peers connected at a time."""
    trackers: tuple[str, ...]
    """Announce URLs, best first."""


@dataclass(slots=True)
class _Seeding:
    """A title that is being offered."""

    title: Title
    handle: Any = None
    disks: list[int | None] = field(default_factory=list)
    """The disk whose replica serves each extent; None where none is good."""


class Seed:
    """A libtorrent session that seeds the titles of a store.

    Args:
        store: whose titles; it verifies the extents.
        settings: how.
    """

    def __init__(self, store: Store, settings: SeedSettings) -> None:
        self._store = store
        self._settings = settings
        self._session: Any = None
        self._seeding: dict[str, _Seeding] = {}
        self._listening: asyncio.Future[int] | None = None
        self._counters: list[asyncio.Future[dict[str, int]]] = []
        self._last: dict[str, int] = {}
        self._wake: tuple[int, int] | None = None
        self._faults: asyncio.Queue[tuple[Title, int, int]] = asyncio.Queue()
        self._tasks: list[asyncio.Task[None]] = []
        self._offered = asyncio.Event()
        self.port = 0
        """TCP port it listens on, once started."""

    async def start(self) -> None:
        """Listen, and begin to verify and offer the titles, one after another.

        Raises:
            SeedError: the address or the port cannot be had.
        """
        loop = asyncio.get_running_loop()
        self._listening = loop.create_future()
        try:
            self._session = lt.session(_session_settings(self._settings))
        except RuntimeError as error:
            raise SeedError(f"the seed cannot start: {error}") from error
        _limit_every_address(self._session)
        reading, writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._wake = reading, writing
        loop.add_reader(reading, self._drain)
        self._session.set_alert_fd(writing)
        self._drain()  # what came before the descriptor was there announces itself to nobody
        try:
            async with asyncio.timeout(_LISTEN_SECONDS):
                self.port = await self._listening
        except TimeoutError:
            await self.close()
            raise SeedError(f"the seed does not come to listen on {self._settings.host}") from None
        except SeedError:
            await self.close()
            raise
        self._store.on_bad_replica = self._note_fault
        self._tasks = [
            asyncio.create_task(self._guarded(self._offer_all), name="seed offers"),
            asyncio.create_task(self._guarded(self._mend), name="seed mends"),
        ]

    async def wait_offered(self) -> None:
        """Wait until every title was verified and is on offer, as far as it is good."""
        await self._offered.wait()

    async def close(self) -> None:
        """Tell the trackers, close the connections, and wait until that is done."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks = []
        self._store.on_bad_replica = None
        if self._session is None:
            return
        loop = asyncio.get_running_loop()
        if self._wake is not None:
            loop.remove_reader(self._wake[0])
        for pending in self._counters:
            pending.cancel()
        self._seeding.clear()
        box = [self._session]
        self._session = None
        # Dropping the last reference waits for libtorrent's threads: not in the event loop's time.
        await loop.run_in_executor(None, box.clear)
        if self._wake is not None:
            os.close(self._wake[0])
            os.close(self._wake[1])
            self._wake = None

    async def statistics(self) -> dict[str, Any]:
        """What was sent so far, and what is on offer.

        Returns:
            bytes_sent (payload and protocol), payload_bytes_sent, peers, titles_offered (whole or
            in part), titles_in_part, port, peer_id_prefix.
        """
        counters = await self._ask_counters()
        offered = [seeding for seeding in self._seeding.values() if seeding.handle is not None]
        return {
            "bytes_sent": counters.get("net.sent_bytes", 0),
            "payload_bytes_sent": counters.get("net.sent_payload_bytes", 0),
            "peers": counters.get("peer.num_peers_connected", 0),
            "titles_offered": len(offered),
            "titles_in_part": sum(None in seeding.disks for seeding in offered),
            "port": self.port,
            "peer_id_prefix": PEER_ID_PREFIX,
        }

    async def _ask_counters(self) -> dict[str, int]:
        if self._session is None:
            return self._last
        asked: asyncio.Future[dict[str, int]] = asyncio.get_running_loop().create_future()
        self._counters.append(asked)
        self._session.post_session_stats()
        with suppress(TimeoutError):  # an old figure is better than none
            async with asyncio.timeout(_STATISTICS_SECONDS):
                await asked
        return self._last

    def _drain(self) -> None:
        """Take the alerts that wait; called when libtorrent writes into the pipe."""
        if self._wake is not None:
            with suppress(BlockingIOError):
                while os.read(self._wake[0], 4096):
                    pass
        if self._session is None:
            return
        for alert in self._session.pop_alerts():
            self._handle(alert)

    def _handle(self, alert: Any) -> None:
        if isinstance(alert, lt.session_stats_alert):
            values = alert.values
            self._last = {name: int(values[name]) for name in _WANTED}
            asked, self._counters = self._counters, []
            for future in asked:
                if not future.done():
                    future.set_result(self._last)
        elif isinstance(alert, lt.listen_succeeded_alert):
            is_tcp = alert.socket_type == lt.socket_type_t.tcp
            if is_tcp and self._listening is not None and not self._listening.done():
                self._listening.set_result(int(alert.port))
        elif isinstance(alert, lt.listen_failed_alert):
            if self._listening is not None and not self._listening.done():
                where = f"{self._settings.host} port {self._settings.port}"
                self._listening.set_exception(
                    SeedError(
                        f"the seed cannot listen on {where}: {alert.error.message()}; "
                        "choose another with --seed-port or --seed-host"
                    )
                )
        elif isinstance(alert, lt.file_error_alert):
            self._note_file_error(alert)
        elif isinstance(alert, lt.torrent_error_alert):
            _log.warning("seed: %s", alert.message())

    def _note_file_error(self, alert: Any) -> None:
        path = Path(alert.filename())
        if not path.name.isdecimal():
            return
        number = int(path.name)
        for seeding in self._seeding.values():
            if seeding.title.folder == path.parent.name and number < len(seeding.disks):
                self._note_fault(seeding.title, seeding.title.extents[number], None)

    def _note_fault(self, title: Title, extent: Extent, disk: int | None) -> None:
        """Have a replica replaced if it is the one on offer (None: it is)."""
        seeding = self._seeding.get(title.id)
        if seeding is None or seeding.handle is None:
            return
        offered = seeding.disks[extent.number]
        if offered is not None and disk in {offered, None}:
            self._faults.put_nowait((title, extent.number, offered))

    async def _guarded(self, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        except Exception:  # noqa: BLE001 - a task has no caller to tell; HTTP must go on
            _log.exception("the seed stopped offering titles; HTTP goes on")

    async def _offer_all(self) -> None:
        for title in self._store.titles():
            seeding = _Seeding(title)
            self._seeding[title.id] = seeding
            load: Counter[int] = Counter()
            for extent in title.extents:
                disk = await self._good_replica(title, extent, load)
                seeding.disks.append(disk)
                if disk is None:
                    _log.warning(
                        "seed: extent %d of '%s' has no good replica", extent.number, title.id
                    )
                else:
                    load[disk] += extent.size
            self._add(seeding)
        self._offered.set()

    async def _good_replica(
        self, title: Title, extent: Extent, load: "Counter[int]", *, avoid: int | None = None
    ) -> int | None:
        """A disk that holds the extent whole; of several the one that serves least so far."""
        for disk in sorted(extent.disks, key=lambda number: (number == avoid, load[number])):
            if await self._store.check_replica(title, extent, disk):
                return disk
        return None

    async def _mend(self) -> None:
        """Replace replicas that failed while they were on offer."""
        while True:
            title, number, failed = await self._faults.get()
            seeding = self._seeding[title.id]
            if seeding.handle is None or seeding.disks[number] != failed:
                continue  # mended already, with another fault
            # One fault is often many: every re-adding costs all connections, so look around first.
            lost = {number} | await asyncio.to_thread(self._lost_extents, seeding)
            load = Counter(disk for disk in seeding.disks if disk is not None)
            for each in sorted(lost):
                seeding.disks[each] = await self._good_replica(
                    title, title.extents[each], load, avoid=seeding.disks[each]
                )
            self._session.remove_torrent(seeding.handle)
            seeding.handle = None
            self._add(seeding)

    def _lost_extents(self, seeding: _Seeding) -> set[int]:
        """Extents whose files on offer are gone or have another size."""
        lost = set()
        for extent, disk in zip(seeding.title.extents, seeding.disks, strict=True):
            path = None
            if disk is not None:
                path = self._store.replica_path(seeding.title, extent, disk)
            if path is not None and not _has_size(path, extent.size):
                lost.add(extent.number)
        return lost

    def _add(self, seeding: _Seeding) -> None:
        title = seeding.title
        info = lt.torrent_info(bencode({b"info": bdecode(title.info)}))
        files = lt.file_storage()
        have: list[bool] = []
        for extent, disk in zip(title.extents, seeding.disks, strict=True):
            path = self._any_path(title, extent, disk)
            files.add_file(str(path), extent.size)
            # An extent is whole pieces, so a replica is good for exactly these.
            have.extend([disk is not None] * -(-extent.size // title.piece_bytes))
        info.remap_files(files)
        params = lt.add_torrent_params()
        params.ti = info
        params.save_path = str(self._store.path)
        params.trackers = list(self._settings.trackers)
        params.tracker_tiers = list(range(len(self._settings.trackers)))
        params.have_pieces = have
        params.verified_pieces = have
        # It never asks for anything: the extents are the store's to write.
        params.flags = (
            lt.torrent_flags.no_verify_files
            | lt.torrent_flags.upload_mode
            | lt.torrent_flags.disable_dht
            | lt.torrent_flags.disable_lsd
            | lt.torrent_flags.disable_pex
        )
        params.piece_priorities = [4 if there else 0 for there in have]
        try:
            seeding.handle = self._session.add_torrent(params)
        except RuntimeError as error:
            _log.warning("seed: '%s' cannot be offered: %s", title.id, error)

    def _any_path(self, title: Title, extent: Extent, disk: int | None) -> Path:
        numbers = extent.disks if disk is None else (disk,)
        paths = (self._store.replica_path(title, extent, number) for number in numbers)
        found = next((path for path in paths if path is not None), None)
        # Where no disk is there at all, a name that cannot exist keeps the films' layout.
        return found or self._store.path / "missing" / title.folder / f"{extent.number:06d}"


def _session_settings(settings: SeedSettings) -> Any:
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    categories = lt.alert.category_t
    return {
        "listen_interfaces": f"{host}:{settings.port}",
        "peer_fingerprint": PEER_ID_PREFIX,
        "user_agent": "Toast VoD server",
        "alert_mask": categories.error_notification | categories.status_notification,
        "enable_dht": False,
        "tick_interval": 50,  # handshakes of a capped seed advance once per tick
        "enable_lsd": False,
        "enable_upnp": False,
        "enable_natpmp": False,
        "enable_incoming_utp": False,
        "enable_outgoing_utp": False,
        "allow_multiple_connections_per_ip": True,
        "connections_limit": settings.connections,
        # Every viewer gets a share: the seed is for those whom the swarm does not serve in time,
        # and choking them would only turn the same bytes into HTTP.
        "unchoke_slots_limit": -1,
        # It waits to be asked: a viewer with neighbours that suffice does not come, and what the
        # seed would push on it the operator would pay for.
        "connection_speed": 0,
        "torrent_connect_boost": 0,
        "upload_rate_limit": 0 if settings.upload is None else max(1, round(settings.upload)),
        "stop_tracker_timeout": 1,
        # A port that is taken is the operator's to know of, not ours to replace by another.
        "max_retry_port_bind": 0,
        "listen_system_port_fallback": False,
        # Torrents are never paused for being many: which are offered is our decision.
        "active_seeds": -1,
        "active_limit": -1,
        "dont_count_slow_torrents": True,
    }


def _limit_every_address(session: Any) -> None:
    """Put every peer into the global class, the local ones too, which otherwise know no limit."""
    rules = lt.ip_filter()
    global_class = 1 << session.global_peer_class_id
    rules.add_rule("0.0.0.0", "255.255.255.255", global_class)  # noqa: S104 - a range, not a bind
    rules.add_rule("::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", global_class)
    session.set_peer_class_filter(rules)


def _has_size(path: Path, size: int) -> bool:
    try:
        return path.stat().st_size == size
    except OSError:
        return False
