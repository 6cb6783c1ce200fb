"""The seed's libtorrent session: settings, alerts as calls, and what libtorrent has no call for."""

import asyncio
import logging
import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import libtorrent as lt
from bencode2 import bdecode, bencode

from vodserver.errors import SeedError
from vodserver.seed.settings import SeedSettings
from vodserver.store import Title

__all__ = ["PEER_ID_PREFIX", "Listeners", "Swarm"]

PEER_ID_PREFIX: Final = "-TV0100-"
"""Begins the seed's peer id: viewers and tracker know by it what comes from the operator."""

_LISTEN_SECONDS: Final = 10.0
_ANSWER_SECONDS: Final = 5.0
_DIAL_SECONDS: Final = 5.0
_DIALS_PER_SECOND: Final = 50
_WANTED: Final = ("net.sent_bytes", "net.sent_payload_bytes", "peer.num_peers_connected")
_NO_MEMORY_MAPS: Final = 2**31 - 1
_log = logging.getLogger(__name__)


class Listeners(NamedTuple):
    """Who is told what; called in the event loop.

    Attributes:
        unreadable: libtorrent failed to read this file (the path that it was given).
        dropped: a peer of this torrent, at this IP address, was let go because of such failures.
    """

    unreadable: Callable[[Path], None]
    dropped: Callable[[Any, str], None]


class Swarm:
    """A libtorrent session that gives films away and takes nothing.

    Args:
        settings: how.
        listeners: told what goes wrong.
    """

    def __init__(self, settings: SeedSettings, listeners: Listeners) -> None:
        self._settings = settings
        self._listeners = listeners
        self._session: Any = None
        self._listening: asyncio.Future[int] | None = None
        self._wake: tuple[int, int] | None = None
        self._counters: list[asyncio.Future[dict[str, int]]] = []
        self._last: dict[str, int] = {}
        self._endpoints: dict[Any, list[asyncio.Future[list[tuple[str, int]]]]] = {}
        self._flushing: dict[Any, bool] = {}
        self._uploads: dict[Any, int] = {}
        self._hang_up: asyncio.TimerHandle | None = None

    async def start(self, open_files: int) -> int:
        """Listen.

        Args:
            open_files: how many files libtorrent may have open.

        Returns:
            The TCP port.

        Raises:
            SeedError: the address or the port cannot be had.
        """
        loop = asyncio.get_running_loop()
        self._listening = loop.create_future()
        try:
            self._session = lt.session(_session_settings(self._settings, open_files))
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
                return await self._listening
        except TimeoutError:
            await self.close()
            raise SeedError(f"the seed does not come to listen on {self._settings.host}") from None
        except SeedError:
            await self.close()
            raise

    async def close(self) -> None:
        """Tell the trackers, close the connections, and wait until that is done."""
        if self._session is None:
            return
        loop = asyncio.get_running_loop()
        if self._hang_up is not None:
            self._hang_up.cancel()
        if self._wake is not None:
            loop.remove_reader(self._wake[0])
        for pending in self._counters:
            pending.cancel()
        for asked in self._endpoints.values():
            _answer(asked, [])
        self._flushing.clear()
        self._uploads.clear()
        box = [self._session]
        self._session = None
        # Dropping the last reference waits for libtorrent's threads: not in the event loop's time.
        await loop.run_in_executor(None, box.clear)
        if self._wake is not None:
            os.close(self._wake[0])
            os.close(self._wake[1])
            self._wake = None

    def add(
        self, title: Title, links: Sequence[Path], have: Sequence[bool], save_path: Path
    ) -> Any:
        """Offer a title.

        Args:
            title: which.
            links: the file of each extent.
            have: whether each extent is to be advertised.
            save_path: a directory that is there.

        Returns:
            The torrent's handle; None if libtorrent refuses it.
        """
        info = lt.torrent_info(bencode({b"info": bdecode(title.info)}))
        files = lt.file_storage()
        pieces: list[bool] = []
        for extent, link, there in zip(title.extents, links, have, strict=True):
            files.add_file(str(link), extent.size)
            # An extent is whole pieces, so a replica is good for exactly these.
            pieces.extend([there] * -(-extent.size // title.piece_bytes))
        info.remap_files(files)
        params = lt.add_torrent_params()
        params.ti = info
        params.save_path = str(save_path)
        params.trackers = list(self._settings.trackers)
        params.tracker_tiers = list(range(len(self._settings.trackers)))
        params.have_pieces = pieces
        params.verified_pieces = pieces
        # It never asks for anything: the extents are the store's to write.
        params.flags = (
            lt.torrent_flags.no_verify_files
            | lt.torrent_flags.upload_mode
            | lt.torrent_flags.apply_ip_filter  # `call_back`
            | lt.torrent_flags.update_subscribe  # `uploads`
            | lt.torrent_flags.disable_dht
            | lt.torrent_flags.disable_lsd
            | lt.torrent_flags.disable_pex
        )
        params.piece_priorities = [4 if there else 0 for there in pieces]
        try:
            return self._session.add_torrent(params)
        except RuntimeError as error:
            _log.warning("seed: '%s' cannot be offered: %s", title.id, error)
            return None

    def remove(self, handle: Any) -> None:
        """Offer a title no longer; its peers are let go."""
        for known in (self._flushing, self._uploads):
            known.pop(handle, None)
        self._session.remove_torrent(handle)

    def reopen(self, handle: Any) -> None:
        """Have libtorrent close a torrent's files, so that it opens what the links lead to now.

        A read that is under way ends with the file that it has.
        """
        if handle in self._flushing:
            self._flushing[handle] = True  # again, when this one is done: links changed since
            return
        self._flushing[handle] = False
        handle.flush_cache()

    def uploads(self) -> dict[Any, int]:
        """Payload sent so far of each torrent, as of the last call: this one asks for news."""
        if self._session is not None:
            self._session.post_torrent_updates(0)
        return dict(self._uploads)

    async def counters(self) -> dict[str, int]:
        """The session's counters, by libtorrent's names."""
        if self._session is not None:
            asked: asyncio.Future[dict[str, int]] = asyncio.get_running_loop().create_future()
            self._counters.append(asked)
            self._session.post_session_stats()
            with suppress(TimeoutError):  # an old figure is better than none
                async with asyncio.timeout(_ANSWER_SECONDS):
                    await asked
        return self._last

    async def peers(self, handle: Any) -> list[Any]:
        """The peers that a torrent is connected to (`libtorrent.peer_info`)."""
        if self._session is None:
            return []
        try:  # its answer by alert has no form that Python can read
            return list(await asyncio.to_thread(handle.get_peer_info))
        except RuntimeError:
            return []  # the torrent is gone

    async def endpoints(self, handle: Any) -> list[tuple[str, int]]:
        """Where the peers of a torrent listen, as far as they told."""
        if self._session is None or not handle.is_valid():
            return []
        loop = asyncio.get_running_loop()
        asked: asyncio.Future[list[tuple[str, int]]] = loop.create_future()
        self._endpoints.setdefault(handle, []).append(asked)
        handle.save_resume_data()
        with suppress(TimeoutError):
            async with asyncio.timeout(_ANSWER_SECONDS):
                return await asked
        return []

    async def call_back(self, handle: Any, addresses: Iterable[str], *, drop: bool = False) -> None:
        """Connect to peers that were lost, so that nobody waits until a tracker is asked again.

        Args:
            handle: the torrent.
            addresses: their IP addresses.
            drop: cut the connections to these addresses first: the new ones begin with a word on
                what is there.
        """
        wanted = set(addresses)
        found = [each for each in await self.endpoints(handle) if each[0] in wanted]
        if self._session is None:
            return
        if drop:
            # libtorrent has no call that cuts one peer; an address that is filtered is let go.
            rules = lt.ip_filter()
            for address in wanted:
                rules.add_rule(address, address, 1)
            self._session.set_ip_filter(rules)
            self._session.set_ip_filter(lt.ip_filter())
        self.dial(handle, found)

    def dial(self, handle: Any, endpoints: Iterable[tuple[str, int]]) -> None:
        """Connect to peers, where the session otherwise waits to be asked."""
        if self._session is None:
            return
        with suppress(RuntimeError):  # the torrent went meanwhile
            for endpoint in endpoints:
                handle.connect_peer(endpoint)
        self._session.apply_settings({"connection_speed": _DIALS_PER_SECOND})
        if self._hang_up is not None:
            self._hang_up.cancel()
        loop = asyncio.get_running_loop()
        self._hang_up = loop.call_later(_DIAL_SECONDS, self._stop_dialling)

    def _stop_dialling(self) -> None:
        if self._session is not None:
            self._session.apply_settings({"connection_speed": 0})

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
        if isinstance(alert, lt.file_error_alert):
            self._listeners.unreadable(Path(alert.filename()))
        elif isinstance(alert, lt.peer_disconnected_alert):
            if alert.op == lt.operation_t.file_read:
                self._listeners.dropped(alert.handle, alert.ip[0])
        elif isinstance(alert, lt.cache_flushed_alert):
            if self._flushing.pop(alert.handle, False) and alert.handle.is_valid():
                self.reopen(alert.handle)
        elif isinstance(alert, lt.alerts_dropped_alert):
            self._ask_again()
        elif isinstance(alert, lt.torrent_error_alert):
            _log.warning("seed: %s", alert.message())
        elif isinstance(alert, lt.listen_succeeded_alert | lt.listen_failed_alert):
            self._handle_listening(alert)
        else:
            self._handle_answer(alert)

    def _ask_again(self) -> None:
        """Answers may be among the alerts that libtorrent had no room for."""
        _log.warning("seed: libtorrent had more to tell than it could hold")
        flushing, self._flushing = self._flushing, {}
        for handle in flushing:
            if handle.is_valid():
                self.reopen(handle)

    def _handle_answer(self, alert: Any) -> None:
        if isinstance(alert, lt.session_stats_alert):
            values = alert.values
            self._last = {name: int(values[name]) for name in _WANTED}
            asked, self._counters = self._counters, []
            _answer(asked, self._last)
        elif isinstance(alert, lt.save_resume_data_alert):
            _answer(self._endpoints.pop(alert.handle, []), list(alert.params.peers))
        elif isinstance(alert, lt.save_resume_data_failed_alert):
            _answer(self._endpoints.pop(alert.handle, []), [])
        elif isinstance(alert, lt.state_update_alert):
            for status in alert.status:
                self._uploads[status.handle] = int(status.total_payload_upload)

    def _handle_listening(self, alert: Any) -> None:
        if self._listening is None or self._listening.done():
            return
        if isinstance(alert, lt.listen_succeeded_alert):
            if alert.socket_type == lt.socket_type_t.tcp:
                self._listening.set_result(int(alert.port))
        elif isinstance(alert, lt.listen_failed_alert):
            where = f"{self._settings.host} port {self._settings.port}"
            self._listening.set_exception(
                SeedError(
                    f"the seed cannot listen on {where}: {alert.error.message()}; "
                    "choose another with --seed-port or --seed-host"
                )
            )


def _answer(asked: Iterable[asyncio.Future[Any]], answer: Any) -> None:
    for future in asked:
        if not future.done():
            future.set_result(answer)


def _session_settings(settings: SeedSettings, open_files: int) -> Any:
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    anywhere = settings.host in {"0.0.0.0", "::"}  # noqa: S104 - compared, not bound
    categories = lt.alert.category_t
    return {
        "listen_interfaces": f"{host}:{settings.port}",
        # A peer that is called back must see the address that it knows.
        "outgoing_interfaces": "" if anywhere else settings.host,
        "peer_fingerprint": PEER_ID_PREFIX,
        "user_agent": "Toast VoD server",
        "alert_mask": categories.error_notification
        | categories.status_notification
        | categories.storage_notification
        | categories.connect_notification,
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
        # seed would push on it the operator would pay for. The exception: `Swarm.dial`.
        "connection_speed": 0,
        "torrent_connect_boost": 0,
        "num_want": 0,
        "min_reconnect_time": 1,
        "upload_rate_limit": 0 if settings.upload is None else max(1, round(settings.upload)),
        "stop_tracker_timeout": 1,
        # A port that is taken is the operator's to know of, not ours to replace by another.
        "max_retry_port_bind": 0,
        "listen_system_port_fallback": False,
        # Torrents are never paused for being many: which are offered is our decision.
        "active_seeds": -1,
        "active_limit": -1,
        "dont_count_slow_torrents": True,
        # A file that shrinks under a memory map is a signal; under a read it is an error.
        "mmap_file_size_cutoff": _NO_MEMORY_MAPS,
        "file_pool_size": max(40, open_files),
        # A disk that hangs holds its readers: there must be some for the other disks.
        "aio_threads": 32,
    }


def _limit_every_address(session: Any) -> None:
    """Put every peer into the global class, the local ones too, which otherwise know no limit."""
    rules = lt.ip_filter()
    global_class = 1 << session.global_peer_class_id
    rules.add_rule("0.0.0.0", "255.255.255.255", global_class)  # noqa: S104 - a range, not a bind
    rules.add_rule("::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", global_class)
    session.set_peer_class_filter(rules)
