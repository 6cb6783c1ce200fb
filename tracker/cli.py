"""`toast-tracker`: the tracker's command line."""

import asyncio
import secrets
import signal
from contextlib import AbstractAsyncContextManager
from dataclasses import fields
from pathlib import Path
from typing import NoReturn

import click

from toast.common.cli import SECONDS, print_json, run_cli
from toast.common.eventloop import new_loop
from toast.common.units import format_bytes
from tracker.server import TrackerServer, serve_tracker
from tracker.settings import TrackerSettings
from tracker.team import Team, serve_team
from tracker.upkeep import read_secret

__all__ = ["main"]

_DEFAULTS = {field.name: field.default for field in fields(TrackerSettings)}

_SECRET = click.Path(exists=True, dir_okay=False, path_type=Path)


def main() -> NoReturn:
    """Run `toast-tracker`."""
    run_cli(_tracker)


@click.group(name="toast-tracker")
@click.version_option(package_name="toast-vod", prog_name="toast-tracker")
def _tracker() -> None:
    """A BitTorrent tracker for swarms that play films.

    \b
    Example:
      toast-tracker serve --port 6969
    """


@_tracker.command()
@click.option(
    "--host", default=_DEFAULTS["host"], show_default=True, help="Address to listen on; * is all."
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=_DEFAULTS["port"],
    show_default=True,
    help="TCP and UDP port; 0 takes any free one.",
)
@click.option("--udp/--no-udp", default=_DEFAULTS["udp"], help="Answer on UDP, too (default).")
@click.option(
    "--interval",
    "interval_seconds",
    type=SECONDS,
    default=_DEFAULTS["interval_seconds"],
    show_default=True,
    help="How often clients shall announce, such as 30s.",
)
@click.option(
    "--films",
    type=click.Path(exists=True, path_type=Path),
    help="Serve these alone: a file with an info-hash a line, or a folder of .torrents.",
)
@click.option(
    "--snapshot",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File that keeps the swarms over restarts.",
)
@click.option(
    "--store",
    metavar="URL",
    help="Redis or Valkey that other trackers of the same films use, too: redis://HOST:6379/0.",
)
@click.option(
    "--websocket",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    help="Relay between browsers (WebTorrent) on this port, too; 0 takes any free one.",
)
@click.option(
    "--workers",
    type=click.IntRange(1, 64),
    default=1,
    show_default=True,
    help="Processes that answer on the port, each on a core of its own.",
)
@click.option(
    "--log",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File to which a line is added for each announce and each refusal.",
)
@click.option("--passkeys", "secret", type=_SECRET, help="Answer signed announce URLs alone.")
@click.option("--json", "as_json", is_flag=True, help="One JSON line when it listens.")
def serve(
    host: str,
    port: int,
    interval_seconds: float,
    *,
    films: Path | None,
    snapshot: Path | None,
    secret: Path | None,
    store: str | None,
    websocket: int | None,
    log: Path | None,
    workers: int,
    udp: bool,
    as_json: bool,
) -> None:
    """Answer announces and scrapes over HTTP and UDP until interrupted.

    Listens on loopback unless told otherwise. SIGINT and SIGTERM stop it cleanly.

    \b
    Example:
      toast-tracker serve --host 0.0.0.0 --port 6969 --interval 30s
    """
    shortest = min(interval_seconds, TrackerSettings().min_interval_seconds)
    settings = TrackerSettings(
        host=host,
        port=port,
        udp=udp,
        interval_seconds=interval_seconds,
        min_interval_seconds=shortest,
    )
    serving: AbstractAsyncContextManager[TrackerServer | Team]
    if workers == 1:
        serving = serve_tracker(
            settings,
            secrets.randbits(64),
            films=films,
            snapshot=snapshot,
            passkeys=None if secret is None else read_secret(secret),
            store=store,
            websocket=websocket,
            log=log,
        )
    else:
        if websocket is not None:
            raise click.UsageError("--websocket needs --workers 1: a relay is one process")
        if secret is not None:
            read_secret(secret)  # each worker does: but an error is told once
        serving = serve_team(
            settings, workers, films=films, snapshot=snapshot, secret=secret, store=store, log=log
        )
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(_serve_until_signal(serving, as_json=as_json))


@_tracker.command()
@click.argument("names", nargs=-1, required=True)
@click.option("--secret", type=_SECRET, required=True, help="The tracker's --passkeys file.")
@click.option("--url", help="Announce URL to put the passkey into.")
@click.option("--json", "as_json", is_flag=True, help="One JSON line for each name.")
def passkey(names: tuple[str, ...], secret: Path, url: str | None, *, as_json: bool) -> None:
    """Make the passkeys of viewers, or their whole announce URLs.

    The secret is any file of 16 bytes or more that only the operator can read.

    \b
    Example:
      toast-tracker passkey alice bob --secret secret --url http://vod.example.net:6969/announce
    """
    passkeys = read_secret(secret)
    for name in names:
        key = passkeys.give(name)
        whole = None if url is None else f"{url}{'&' if '?' in url else '?'}passkey={key}"
        if as_json:
            print_json({"name": name, "passkey": key, "announce_url": whole})
        else:
            click.echo(whole or key)


async def _serve_until_signal(
    serving: AbstractAsyncContextManager[TrackerServer | Team], *, as_json: bool
) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with serving as server:
        if as_json:
            print_json(
                {
                    "event": "listening",
                    "url": server.url,
                    "announce_url": server.announce_url,
                    "udp_announce_url": server.udp_announce_url,
                    "websocket_announce_url": server.websocket_url,
                }
            )
        else:
            urls = " or ".join(
                filter(None, (server.announce_url, server.udp_announce_url, server.websocket_url))
            )
            click.echo(f"listening; announce URL: {urls}  (Ctrl-C stops)")
        await stop.wait()
        if not as_json:  # a program has read its one line, and may have closed the pipe since
            click.echo(_goodbye(server))


def _goodbye(server: TrackerServer | Team) -> str:
    if isinstance(server, Team):
        return "stopped"
    numbers = server.statistics()
    return (
        f"stopped after {numbers['announces']} announces and {numbers['scrapes']} scrapes, "
        f"{format_bytes(numbers['bytes_sent'])} sent"
    )
