"""One libtorrent session, injected into the viewers that share it; alerts wake asyncio."""

import asyncio
import secrets
import socket
from dataclasses import dataclass
from typing import Any

import libtorrent as lt

from toast.swarm.errors import SwarmError

__all__ = ["SessionSettings", "SwarmSession"]

_ALERTS = (
    lt.alert.category_t.block_progress_notification
    | lt.alert.category_t.piece_progress_notification
    | lt.alert.category_t.connect_notification
    | lt.alert.category_t.peer_notification
    | lt.alert.category_t.storage_notification
    | lt.alert.category_t.status_notification
    | lt.alert.category_t.error_notification
)
_LISTEN_SECONDS = 5.0
_PEER_ID_PREFIX = b"-TO0100-"


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """How the BitTorrent side of a viewer behaves. Rates in bytes per second."""

    listen_host: str = "0.0.0.0"  # noqa: S104  # peers must reach us; nothing is controlled here
    """Address to accept peers on; outgoing connections leave from it too, unless it is 0.0.0.0."""
    listen_port: int = 0
    """Port to accept peers on; 0 takes any free one."""
    upload_rate: float | None = None
    """Most that is sent to peers, protocol included, also on loopback; None: no limit."""
    download_rate: float | None = None
    """Most that is received from peers; None: no limit."""
    request_queue_seconds: int = 1
    """How far ahead each peer's request queue is filled: what is in it can't be taken back."""
    upload_slots: int = 8
    """Peers served at once."""
    connections: int = 60
    """Most peers connected at once."""
    tick_ms: int = 50
    """libtorrent's clock: rate limits and handshakes advance once per tick."""
    discovery: bool = False
    """DHT, local discovery and port mapping, for public torrents."""


class SwarmSession:
    """A libtorrent session whose alerts are delivered on the running event loop.

    Args:
        settings: see `SessionSettings`.

    Raises:
        SwarmError: the address cannot be listened on.
    """

    def __init__(self, settings: SessionSettings) -> None:
        self.settings = settings
        self.peer_id = _PEER_ID_PREFIX + secrets.token_hex(6).encode()
        self._listeners: dict[Any, Any] = {}
        self._loop = asyncio.get_running_loop()
        self._reader, self._writer = socket.socketpair()
        self._reader.setblocking(False)
        self._writer.setblocking(False)
        self._listen_result: asyncio.Future[None] = self._loop.create_future()
        self._native: Any = lt.session(_native_settings(settings))
        self._native.set_peer_class_filter(_everyone_is_limited())
        self._native.set_alert_fd(self._writer.fileno())
        self._loop.add_reader(self._reader.fileno(), self._drain)
        self._closed = False

    @property
    def native(self) -> Any:
        """Libtorrent's own session, for the rest of this room."""
        return self._native

    @property
    def port(self) -> int:
        """The port that peers can reach us on."""
        return int(self._native.listen_port())

    async def wait_listening(self) -> None:
        """Wait until peers can reach us.

        Raises:
            SwarmError: the port is taken or the address is not ours.
        """
        where = f"{self.settings.listen_host}:{self.settings.listen_port}"
        try:
            async with asyncio.timeout(_LISTEN_SECONDS):
                await asyncio.shield(self._listen_result)
        except TimeoutError as error:
            raise SwarmError(f"cannot listen for peers on {where}") from error

    def limit(self, *, upload_rate: float | None, download_rate: float | None) -> None:
        """Change the rates, in bytes per second: None is no limit; nothing at all is sent at 0."""
        self._native.apply_settings(
            {
                "download_rate_limit": _limit(download_rate),
                "unchoke_slots_limit": 0 if upload_rate == 0 else self.settings.upload_slots,
                "upload_rate_limit": _limit(upload_rate),
            }
        )

    def set_tick(self, tick_ms: int) -> None:
        """Slow libtorrent's clock down while nothing is going on, or speed it up again."""
        self._native.apply_settings({"tick_interval": tick_ms})

    def register(self, handle: Any, listener: Any) -> None:
        """Deliver alerts of one torrent to `listener.on_alert(alert)`."""
        self._listeners[handle] = listener

    def unregister(self, handle: Any) -> None:
        """Deliver no more alerts of this torrent."""
        self._listeners.pop(handle, None)

    def deliver(self) -> None:
        """Deliver at once what libtorrent has to tell, without waiting for the event loop."""
        self._drain()

    async def close(self) -> None:
        """Leave all swarms and free the port; files are flushed first."""
        if self._closed:
            return
        self._closed = True
        self._loop.remove_reader(self._reader.fileno())
        if not self._listen_result.done():
            self._listen_result.cancel()
        elif not self._listen_result.cancelled():
            self._listen_result.exception()
        self._listeners.clear()
        holder = [self._native]
        del self._native
        # The destructor waits for disk and sockets: not on the event loop.
        await asyncio.to_thread(holder.clear)
        self._reader.close()
        self._writer.close()

    def _drain(self) -> None:
        try:
            while self._reader.recv(4096):
                pass
        except BlockingIOError:
            pass
        for alert in self._native.pop_alerts():
            if isinstance(alert, lt.torrent_alert | lt.peer_alert):
                listener = self._listeners.get(alert.handle)
                if listener is not None:
                    listener.on_alert(alert)
            elif isinstance(alert, lt.listen_succeeded_alert):
                if not self._listen_result.done():
                    self._listen_result.set_result(None)
            elif isinstance(alert, lt.listen_failed_alert) and not self._listen_result.done():
                where = f"{self.settings.listen_host}:{self.settings.listen_port}"
                reason = alert.error.message() if hasattr(alert, "error") else alert.message()
                self._listen_result.set_exception(
                    SwarmError(f"cannot listen for peers on {where}: {reason}")
                )


def _native_settings(settings: SessionSettings) -> dict[str, Any]:
    anywhere = settings.listen_host in {"0.0.0.0", "::"}  # noqa: S104  # compared, not bound
    host = f"[{settings.listen_host}]" if ":" in settings.listen_host else settings.listen_host
    return {
        "alert_mask": _ALERTS,
        "alert_queue_size": 20_000,
        "allow_multiple_connections_per_ip": True,  # viewers behind one address
        "auto_sequential": False,  # would switch our picker off in a well-seeded swarm
        "close_redundant_connections": False,  # a neighbour with nothing new may have it soon
        "connections_limit": settings.connections,
        "download_rate_limit": _limit(settings.download_rate),
        "enable_dht": settings.discovery,
        "enable_incoming_utp": False,
        "enable_lsd": settings.discovery,
        "enable_natpmp": settings.discovery,
        "enable_outgoing_utp": False,
        "enable_upnp": settings.discovery,
        "listen_interfaces": f"{host}:{settings.listen_port}",
        "listen_system_port_fallback": False,  # a taken port is an error that is told
        "max_retry_port_bind": 0,
        "min_reconnect_time": 1,  # a neighbour that left to join anew is back at once
        "outgoing_interfaces": "" if anywhere else settings.listen_host,
        "peer_fingerprint": _PEER_ID_PREFIX.decode(),
        "rate_limit_ip_overhead": False,  # the cap is on what we hand to the sockets
        "request_queue_time": settings.request_queue_seconds,
        "suggest_mode": 0,
        "tick_interval": settings.tick_ms,
        "unchoke_slots_limit": settings.upload_slots,
        "upload_rate_limit": _limit(settings.upload_rate),
        "user_agent": "Toast/0.1",
        "whole_pieces_threshold": 0,  # would ask for whole runs of pieces, past the plan
    }


def _limit(rate: float | None) -> int:
    """A rate limit as libtorrent wants it: whole bytes per second, 0 for none."""
    return 0 if rate is None else max(1, round(rate))


def _everyone_is_limited() -> Any:
    """Rate limits for every address: by default libtorrent spares the local ones."""
    rule = lt.ip_filter()
    everyone = 1 << lt.session.global_peer_class_id
    rule.add_rule("0.0.0.0", "255.255.255.255", everyone)  # noqa: S104  # a filter, not a socket
    rule.add_rule("::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", everyone)
    return rule
