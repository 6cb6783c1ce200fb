"""The commands that serve, and that make links to what is served."""

import asyncio
import dataclasses
import logging
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from toast.common.cli import RATE, SECONDS, SIZE, print_json
from toast.common.errors import UsageError
from toast.common.eventloop import new_loop
from vodserver.cli.group import cli, json_option, store_option
from vodserver.http.access_log import FORMATS
from vodserver.http.links import read_secrets, sign_path
from vodserver.interpreter import settle_interpreter
from vodserver.serve import Listening, serve
from vodserver.settings import ServeSettings
from vodserver.store import list_titles, open_store
from vodserver.store.memory import raise_open_files_limit

_DEFAULTS = ServeSettings()
_FILE = click.Path(path_type=Path)


@cli.command("serve")
@store_option
@click.option("--host", default=_DEFAULTS.host, show_default=True, help="Address for HTTP.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=_DEFAULTS.port,
    show_default=True,
    help="Port for HTTP; 0 takes any free one.",
)
@click.option(
    "--workers",
    type=click.IntRange(1, 256),
    default=_DEFAULTS.workers,
    show_default=True,
    help="Processes that serve HTTP: as many as the cores that it may have.",
)
@click.option("--public-url", help="What viewers reach the server as.  [default: as bound]")
@click.option(
    "--tracker",
    "trackers",
    multiple=True,
    metavar="ANNOUNCE_URL",
    help="Tracker for the torrents and the seed; may be given more than once.",
)
@click.option("--seed/--no-seed", default=_DEFAULTS.seed, show_default=True, help="Seed, or not.")
@click.option("--seed-host", metavar="IP", help="Address of the seed.  [default: that of HTTP]")
@click.option(
    "--seed-port",
    type=click.IntRange(0, 65535),
    default=_DEFAULTS.seed_port,
    show_default=True,
    help="Port of the seed; 0 takes any free one.",
)
@click.option(
    "--seed-upload",
    type=RATE,
    default=_DEFAULTS.seed_upload,
    metavar="RATE",
    help="Most that the seed sends, such as 8Mbps or 1MB/s.  [default: no limit]",
)
@click.option(
    "--egress",
    "egress_rate",
    type=RATE,
    default=_DEFAULTS.egress_rate,
    metavar="RATE",
    help="Most that HTTP sends in all, such as 800Mbps.  [default: no limit]",
)
@click.option(
    "--streams",
    "streams_limit",
    type=click.IntRange(min=0),
    default=_DEFAULTS.streams_limit,
    show_default=True,
    help="Most paced streams at a time.",
)
@click.option(
    "--client-connections",
    type=click.IntRange(min=1),
    default=_DEFAULTS.client_connections,
    show_default=True,
    help="Most connections of one client address.",
)
@click.option(
    "--held-memory",
    "held_bytes",
    type=SIZE,
    default=_DEFAULTS.held_bytes,
    help="Keep so much of what is asked for most in memory; 0 leaves it to the kernel.  "
    "[default: a quarter of memory]",
)
@click.option(
    "--require-signed",
    is_flag=True,
    default=_DEFAULTS.require_signed,
    help="Films, streams and torrents only for links that `vodserver link` made.",
)
@click.option(
    "--link-secrets",
    type=_FILE,
    metavar="FILE",
    help="Secrets of signed links, one a line; chmod 600.",
)
@click.option("--tls-cert", type=_FILE, metavar="FILE", help="Serve HTTPS with this certificate.")
@click.option("--tls-key", type=_FILE, metavar="FILE", help="Private key of the certificate.")
@click.option("--access-log", metavar="FILE", help="Note every request there; - is stdout.")
@click.option(
    "--access-log-format",
    type=click.Choice(tuple(FORMATS)),
    default=_DEFAULTS.access_log_format,
    show_default=True,
    help="How to write it.",
)
@json_option
def serve_command(store: Path, as_json: bool, **options: Any) -> None:
    """Serve the films over HTTP and seed them, until stopped.

    On SIGHUP, certificate and secrets are read again and the access log is begun anew.

    \b
    Example:
      vodserver serve --port 8080 --tracker http://127.0.0.1:6969/announce
    """
    _check_urls(("http://", "https://"), *filter(None, [options["public_url"]]))
    _check_urls(("http://", "https://", "udp://"), *options["trackers"])
    settings = dataclasses.replace(_DEFAULTS, **options)
    logging.basicConfig(format="vodserver: %(message)s", level=logging.WARNING)

    def ready(listening: Listening) -> None:
        settle_interpreter()
        if as_json:
            print_json({"event": "listening", **dataclasses.asdict(listening)})
            return
        seed = "" if listening.seed_port is None else f", seed on port {listening.seed_port}"
        click.echo(f"serving {listening.titles} titles on {listening.url}{seed}; Ctrl-C stops")

    raise_open_files_limit()  # or strangers beyond the usual 1024 would be reset, not told 503
    with open_store(store) as opened, asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(
            _until_signal(
                lambda stop: serve(opened, settings, ready=ready, stop=stop, hangup=_on_hangup)
            )
        )


@cli.command("link")
@store_option
@click.argument("title")
@click.option(
    "--link-secrets",
    type=_FILE,
    required=True,
    metavar="FILE",
    help="The server's secrets; the first one signs.",
)
@click.option(
    "--public-url",
    default="http://127.0.0.1:8080",
    show_default=True,
    help="What viewers reach the server as.",
)
@click.option(
    "--part",
    type=click.Choice(("torrent", "content", "stream")),
    default="torrent",
    show_default=True,
    help="What the link is to; the torrent holds a link to the content that expires with it.",
)
@click.option(
    "--expires",
    type=SECONDS,
    default=6 * 3600.0,
    metavar="TIME",
    help="How long it holds, such as 6h or 90min.  [default: 6h]",
)
@click.option("--net", metavar="NETWORK", help="Only for clients there, such as 192.0.2.0/24.")
@json_option
def link_command(store: Path, title: str, as_json: bool, **options: Any) -> None:
    """Print a signed link to a title, for a server that requires them.

    A file of secrets is made with: head -c 32 /dev/urandom | base64 > secrets; chmod 600 secrets

    \b
    Example:
      vodserver link a-day-in-may --link-secrets secrets --expires 6h
    """
    _check_urls(("http://", "https://"), options["public_url"])
    if title not in {each.id for each in list_titles(store)}:
        raise UsageError(f"there is no title '{title}': vodserver list shows those there are")
    secret = read_secrets(options["link_secrets"])[0]
    path = f"/titles/{title}/{options['part']}"
    expires = int(time.time() + options["expires"])
    url = options["public_url"].rstrip("/") + path
    url += "?" + sign_path(secret, path, expires, options["net"])
    if as_json:
        print_json({"event": "link", "url": url, "expires": expires})
    else:
        click.echo(url)


def _on_hangup(act: Callable[[], None]) -> None:
    hangup = getattr(signal, "SIGHUP", None)
    if hangup is not None:
        asyncio.get_running_loop().add_signal_handler(hangup, act)


async def _until_signal(run: Callable[[asyncio.Event], Any]) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    await run(stop)


def _check_urls(schemes: tuple[str, ...], *urls: str) -> None:
    for url in urls:
        if not url.startswith(schemes):
            raise UsageError(
                f"'{url}' is not a URL: write for example http://127.0.0.1:6969/announce"
            )
