"""`toast-tracker`: the tracker's command line."""

import asyncio
import secrets
import signal
import sys
from dataclasses import fields
from typing import NoReturn

import click

from toast.common.cli import SECONDS, print_json, run_cli
from toast.common.units import format_bytes
from tracker.server import TrackerServer, serve_tracker
from tracker.settings import TrackerSettings

__all__ = ["main"]

_DEFAULTS = {field.name: field.default for field in fields(TrackerSettings)}


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
@click.option("--json", "as_json", is_flag=True, help="One JSON line when it listens.")
def serve(host: str, port: int, interval_seconds: float, *, udp: bool, as_json: bool) -> None:
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
    with asyncio.Runner(loop_factory=_new_loop) as runner:
        runner.run(_serve_until_signal(settings, as_json=as_json))


def _new_loop() -> asyncio.AbstractEventLoop:
    """uvloop, with which HTTP is answered in about half the time."""
    if sys.platform == "win32":
        return asyncio.new_event_loop()
    import uvloop  # noqa: PLC0415 - there is none for every platform

    return uvloop.new_event_loop()


async def _serve_until_signal(settings: TrackerSettings, *, as_json: bool) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with serve_tracker(settings, secrets.randbits(64)) as server:
        if as_json:
            print_json(
                {
                    "event": "listening",
                    "url": server.url,
                    "announce_url": server.announce_url,
                    "udp_announce_url": server.udp_announce_url,
                }
            )
        else:
            urls = " or ".join(filter(None, (server.announce_url, server.udp_announce_url)))
            click.echo(f"listening; announce URL: {urls}  (Ctrl-C stops)")
        await stop.wait()
        if not as_json:  # a program has read its one line, and may have closed the pipe since
            _say_goodbye(server)


def _say_goodbye(server: TrackerServer) -> None:
    numbers = server.statistics()
    click.echo(
        f"stopped after {numbers['announces']} announces and {numbers['scrapes']} scrapes, "
        f"{format_bytes(numbers['bytes_sent'])} sent"
    )
