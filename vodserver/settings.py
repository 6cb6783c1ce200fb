"""Every setting of the VoD server; the command line takes its defaults from here."""

from dataclasses import dataclass

__all__ = ["ServeSettings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeSettings:
    """How `vodserver serve` behaves."""

    host: str = "127.0.0.1"
    """Address to serve HTTP on. Loopback, so that nothing is offered to a network unasked."""

    port: int = 8080
    """TCP port of HTTP; 0 takes any free one."""

    public_url: str | None = None
    """What viewers reach the server as, for the URLs in answers and torrents; by default
    http://<address>:<port> as bound."""

    trackers: tuple[str, ...] = ()
    """Announce URLs that torrents carry and the seed announces to."""

    seed: bool = True
    """Whether to offer the films to the swarm as well."""

    seed_host: str | None = None
    """IP address the seed listens on; that of HTTP if not given."""

    seed_port: int = 0
    """TCP port of the seed; 0 takes any free one."""

    seed_upload: float | None = None
    """Most that the seed sends, bytes per second; None for no limit."""

    seed_connections: int = 500
    """Most peers that the seed is connected to at a time."""

    http_connections: int = 2000
    """Most HTTP connections at a time; further ones are told to come back (503)."""

    header_timeout_seconds: float = 20.0
    """A new connection that has not made a request by then is cut."""

    keepalive_timeout_seconds: float = 75.0
    """A connection that is idle so long between two requests is closed."""

    send_timeout_seconds: float = 60.0
    """A client that takes none of the bytes that wait for it for so long is cut."""

    chunk_bytes: int = 256 * 1024
    """Read from the disks and handed to a connection at a time: the memory of one request."""

    shutdown_seconds: float = 2.0
    """Requests under way get so long to end when the server is stopped."""
