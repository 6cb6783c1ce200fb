"""Every setting of the VoD server; the command line takes its defaults from here."""

from dataclasses import dataclass
from pathlib import Path

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

    workers: int = 1
    """Processes that serve HTTP: with 1 the main process does it itself."""

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

    client_connections: int | None = 512
    """Most of them from one client, which is an IPv4 address or an IPv6 /64; None for no limit."""

    held_bytes: int | None = None
    """Of what is asked for most, so much is kept in memory (mlock) and need not be looked for; by
    default a quarter of this machine's memory, or of what its control group may have, if that is
    less. 0 leaves all of it to the kernel. A user other than root needs a limit that allows it
    (RLIMIT_MEMLOCK, systemd's LimitMEMLOCK)."""

    request_line_limit: int = 4096
    """Longest method, path and query that are read; more is refused (400)."""

    header_limit: int = 8192
    """Longest header field that is read; more is refused (400)."""

    headers_limit: int = 64
    """Most header fields of a request; more are refused (400)."""

    egress_rate: float | None = None
    """Most that HTTP sends in all; None for no limit. Streams that play go first."""

    streams_limit: int = 1000
    """Most paced streams at a time; further ones are told when to come back (503)."""

    stream_pacing: str = "deficit"
    """How far ahead of its playing a stream's client is kept: `deficit`, always as far as at the
    start; `growing`, at first three times as fast as the film, slower as it has more."""

    stream_initial_seconds: float = 5.0
    """Film that a stream's client is sent at once."""

    stream_quantum_seconds: float = 0.04
    """Step in which a stream is sent on: shorter is smoother, and more work."""

    stream_by_time_map: bool = False
    """Whether a stream follows the film's own bit-rate curve and not its mean rate."""

    stream_least_percent: int = 25
    """Least rate that a stream may be asked for with, of the film's mean rate."""

    stream_most_percent: int = 400
    """Greatest rate that a stream may be asked for with, of the film's mean rate."""

    disk_busy_percent: int = 85
    """Share of a disk's time that streams may be given: what the model promises, less a margin."""

    link_secrets: Path | None = None
    """File of the secrets that signed links are made with, one a line; the first signs."""

    require_signed: bool = False
    """Whether films, streams and torrents are for signed links only."""

    tls_cert: Path | None = None
    """PEM file of a certificate, with its chain: HTTP is then HTTPS."""

    tls_key: Path | None = None
    """PEM file of the certificate's private key, without a passphrase."""

    access_log: str | None = None
    """File that every request is noted in; `-` is standard output; None for no such file."""

    access_log_format: str = "combined"
    """How: `combined`, as web servers do, or `json`, an object a line."""

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
