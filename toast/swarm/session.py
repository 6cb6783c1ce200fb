"""One libtorrent session, injected into the viewers that share it; alerts wake asyncio."""

import asyncio
import contextlib
import errno
import ipaddress
import secrets
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import libtorrent as lt

from toast.swarm.errors import SwarmError

__all__ = ["ANY_HOST", "SessionSettings", "SwarmSession", "Utp"]

ANY_HOST = "*"
"""Every address of this machine, IPv4 and IPv6."""

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
_OTHERS_SECONDS = 0.2
_TRIES = 10
_ROUND_ROBIN, _FASTEST = 0, 1  # libtorrent's seed_choking_algorithm_t
_MOST_BANNED = 10_000
_REDIAL_SECONDS = 1  # a neighbour that left to join anew is back at once
_RESTING_REDIAL_SECONDS = 60
_RESTING_TICK_MS = 200
_PEER_ID_PREFIX = b"-TO0100-"


class Utp(StrEnum):
    """What is done with uTP (BEP 29), which yields to whatever else uses the line."""

    OFF = "off"
    """TCP alone."""
    ACCEPT = "accept"
    """Calls go out over TCP, which is quicker to find out that nobody is there."""
    PREFER = "prefer"
    """Calls go out over uTP, and over TCP where nobody answers."""
    ONLY = "only"
    """No TCP."""


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """How the BitTorrent side of a viewer behaves. Rates in bytes per second."""

    listen_host: str = ANY_HOST
    """Address to accept peers on, and to call from; * is every address of this machine, IPv4 and
    IPv6, 0.0.0.0 every one of IPv4, :: every one of IPv6."""
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
    serves_takers: bool = False
    """Among peers that send us the same, serve those who take most, not each in turn."""
    peer_exchange: bool = False
    """Tell connected peers of others and hear of others from them, whatever `discovery` says: for
    experiments. libtorrent then connects to whom it likes, past the policy of neighbours."""
    tick_ms: int = 50
    """libtorrent's clock: rate limits and handshakes advance once per tick."""
    utp: Utp = Utp.ACCEPT
    """Whether peers are reached over uTP."""
    port_mapping: bool = True
    """Ask the router to let peers in (UPnP, NAT-PMP); never while listening on loopback."""
    discovery: bool = True
    """Find peers by DHT, local discovery and peer exchange too, for films whose .torrent does not
    forbid it (BEP 27) and is not of a VoD server of ours; never while listening on loopback,
    unless there are `dht_nodes`."""
    dht_nodes: tuple[str, ...] = ()
    """`host:port` of DHT nodes to begin with; none: libtorrent's own, which are public."""

    @property
    def is_anywhere(self) -> bool:
        """Whether it listens on every address of its kind, and calls from any."""
        return self.listen_host in {ANY_HOST, "0.0.0.0", "::"}  # noqa: S104  # compared, not bound

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it: what concerns networks is off then."""
        if self.is_anywhere:
            return False
        try:
            return ipaddress.ip_address(self.listen_host).is_loopback
        except ValueError:
            return False

    @property
    def discovers(self) -> bool:
        """Whether peers may be looked for beyond the trackers."""
        return self.discovery and (bool(self.dht_nodes) or not self.is_loopback)


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
        self._banned: dict[str, None] = {}
        self._wanting: set[object] = set()
        self._loop = asyncio.get_running_loop()
        self._reader, self._writer = socket.socketpair()
        self._reader.setblocking(False)
        self._writer.setblocking(False)
        self._listen_result: asyncio.Future[None] = self._loop.create_future()
        try:
            self._native: Any = lt.session(_native_settings(settings, _ports(settings)))
        except OSError as error:
            self._reader.close()
            self._writer.close()
            raise SwarmError(f"cannot listen for peers: {error.strerror}") from error
        self._discovers = False
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
            reason = f"nothing came of it in {_LISTEN_SECONDS:.0f} s; is the machine overloaded?"
            raise SwarmError(f"cannot listen for peers on {where}: {reason}") from error

    def limit(self, *, upload_rate: float | None, download_rate: float | None) -> None:
        """Change the rates, in bytes per second: None is no limit; nothing at all is sent at 0."""
        self._native.apply_settings(
            {
                "download_rate_limit": _limit(download_rate),
                "unchoke_slots_limit": 0 if upload_rate == 0 else self.settings.upload_slots,
                "upload_rate_limit": _limit(upload_rate),
            }
        )

    def discover(self) -> bool:
        """Look for peers beyond the trackers from now on, if that is allowed; whether it is."""
        if self.settings.discovers and not self._discovers:
            self._discovers = True
            # Not before a film needs it: a node of the DHT is called by strangers all day.
            self._native.apply_settings({"enable_dht": True, "enable_lsd": True})
        return self._discovers

    @property
    def banned_hosts(self) -> frozenset[str]:
        """Hosts that are not spoken with until the session ends."""
        return frozenset(self._banned)

    def ban(self, host: str) -> None:
        """Speak with a host no more, in no swarm: neither call it, nor take its calls."""
        if len(self._banned) < _MOST_BANNED:
            self._banned[host] = None
        self._native.set_ip_filter(_without(self._banned))

    def hang_up(self, *hosts: str) -> None:
        """Disconnect everyone at some hosts; they may call again, or be called."""
        # libtorrent's Python has no call for it: a filter that stands for a moment does it.
        self._native.set_ip_filter(_without((*self._banned, *hosts)))
        self._native.set_ip_filter(_without(self._banned))

    def set_wanting(self, film: object, *, wanting: bool) -> None:
        """Say whether something of a film is missing.

        While nothing is, of any film, libtorrent's clock goes slower: each of its ticks wakes all
        its threads, and who only gives can do so in larger portions. And whoever leaves is not
        dialled again at once, as libtorrent would by itself: that would undo each second what
        somebody decided who has found a better neighbour.

        Args:
            film: anything that stands for it.
            wanting: whether something of it is missing.
        """
        before = bool(self._wanting)
        (self._wanting.add if wanting else self._wanting.discard)(film)
        if bool(self._wanting) != before:
            self._native.apply_settings(_pace(self.settings, resting=before))

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
            elif isinstance(alert, lt.listen_failed_alert):
                where = f"{self.settings.listen_host}:{self.settings.listen_port}"
                reason = alert.error.message() if hasattr(alert, "error") else alert.message()
                error = SwarmError(f"cannot listen for peers on {where}: {reason}")
                # Of many addresses some may be out of order, as long as one is not.
                wait = _OTHERS_SECONDS if self.settings.is_anywhere else 0.0
                self._loop.call_later(wait, self._listen_failed, error)

    def _listen_failed(self, error: SwarmError) -> None:
        if not self._listen_result.done():
            self._listen_result.set_exception(error)


def _ports(settings: SessionSettings) -> tuple[tuple[str, int], ...]:
    """Hosts and ports to listen on: one port for all, since one is announced.

    Left to itself libtorrent takes another free port for each address of the machine.

    Raises:
        OSError: no port is free.
    """
    if not settings.is_anywhere:
        return ((settings.listen_host, settings.listen_port),)
    hosts: tuple[str, ...] = (settings.listen_host,)
    if settings.listen_host == ANY_HOST:
        hosts = ("0.0.0.0", "::") if socket.has_dualstack_ipv6() else ("0.0.0.0",)  # noqa: S104  # peers must reach us; nothing is controlled here
    port = settings.listen_port or _free_port(hosts)
    return tuple((host, port) for host in hosts)


def _free_port(hosts: tuple[str, ...]) -> int:
    """A port that is free on all of these hosts, TCP and UDP."""
    for _ in range(_TRIES):
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            port = 0
            for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
                for host in hosts:
                    family = socket.AF_INET6 if ":" in host else socket.AF_INET
                    bound = stack.enter_context(socket.socket(family, kind))
                    if family == socket.AF_INET6:
                        bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                    bound.bind((host, port))
                    port = bound.getsockname()[1]
            return port
    raise OSError(errno.EADDRINUSE, "no port is free")


def _native_settings(
    settings: SessionSettings, ports: tuple[tuple[str, int], ...]
) -> dict[str, Any]:
    listen = (f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in ports)
    mapping = settings.port_mapping and not settings.is_loopback
    nodes = {"dht_bootstrap_nodes": ",".join(settings.dht_nodes)} if settings.dht_nodes else {}
    return nodes | {
        "aio_threads": 2,  # all of them wake at each tick; a film or a few need no more
        "alert_mask": _ALERTS,
        "alert_queue_size": 20_000,
        "allow_multiple_connections_per_ip": True,  # viewers behind one address
        "auto_sequential": False,  # would switch our picker off in a well-seeded swarm
        "close_redundant_connections": False,  # a neighbour with nothing new may have it soon
        "connections_limit": settings.connections,
        "download_rate_limit": _limit(settings.download_rate),
        # Nodes that share an address are one node to the DHT, against those who run thousands;
        # on loopback all do.
        "dht_restrict_routing_ips": not settings.is_loopback,
        "dht_restrict_search_ips": not settings.is_loopback,
        "enable_dht": False,  # until a film needs it
        "enable_incoming_tcp": settings.utp is not Utp.ONLY,
        "enable_incoming_utp": settings.utp is not Utp.OFF,
        "enable_lsd": False,
        "enable_natpmp": mapping,
        "enable_outgoing_tcp": settings.utp is not Utp.ONLY,
        "enable_outgoing_utp": settings.utp in {Utp.PREFER, Utp.ONLY},
        "enable_upnp": mapping,
        "listen_interfaces": ",".join(listen),
        "listen_system_port_fallback": False,  # a taken port is an error that is told
        "max_retry_port_bind": 0,
        # Called in plain, as whoever calls us may be: a key exchange takes a round trip and some
        # milliseconds of the processor, and hides nothing here that a tracker does not tell.
        "out_enc_policy": int(lt.enc_policy.pe_disabled),
        "outgoing_interfaces": "" if settings.is_anywhere else settings.listen_host,
        "peer_connect_timeout": 5,  # seconds; the dead must not keep the living waiting
        "peer_fingerprint": _PEER_ID_PREFIX.decode(),
        "piece_timeout": 5,  # seconds without a block of what was asked
        "rate_limit_ip_overhead": False,  # the cap is on what we hand to the sockets
        "request_queue_time": settings.request_queue_seconds,
        "request_timeout": 5,  # seconds until the first answer
        "seed_choking_algorithm": _FASTEST if settings.serves_takers else _ROUND_ROBIN,
        "suggest_mode": 0,
        "unchoke_slots_limit": settings.upload_slots,
        "upload_rate_limit": _limit(settings.upload_rate),
        "user_agent": "Toast/0.1",
        "whole_pieces_threshold": 0,  # would ask for whole runs of pieces, past the plan
        **_pace(settings, resting=False),
    }


def _pace(settings: SessionSettings, *, resting: bool) -> dict[str, Any]:
    return {
        "min_reconnect_time": _RESTING_REDIAL_SECONDS if resting else _REDIAL_SECONDS,
        "tick_interval": max(settings.tick_ms, _RESTING_TICK_MS if resting else 0),
    }


def _limit(rate: float | None) -> int:
    """A rate limit as libtorrent wants it: whole bytes per second, 0 for none."""
    return 0 if rate is None else max(1, round(rate))


def _without(hosts: Iterable[str]) -> Any:
    """A filter that leaves these hosts out."""
    rule = lt.ip_filter()
    for host in hosts:
        address = host.partition("%")[0]  # without the interface of a link-local one
        rule.add_rule(address, address, 1)
    return rule


def _everyone_is_limited() -> Any:
    """Rate limits for every address: by default libtorrent spares the local ones."""
    rule = lt.ip_filter()
    everyone = 1 << lt.session.global_peer_class_id
    rule.add_rule("0.0.0.0", "255.255.255.255", everyone)  # noqa: S104  # a filter, not a socket
    rule.add_rule("::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", everyone)
    return rule
