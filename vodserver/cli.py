"""The command line of the VoD server."""

import asyncio
import dataclasses
import logging
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import click
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from toast.common.cli import RATE, print_json, run_cli
from toast.common.errors import UsageError
from toast.common.units import format_bytes, format_rate, format_seconds
from vodserver.allocation import ALLOCATIONS
from vodserver.serve import Listening, serve
from vodserver.settings import ServeSettings
from vodserver.store import Title, add_film, create_store, list_titles, open_store

__all__ = ["cli", "main"]

_DEFAULTS = ServeSettings()

_store = click.option(
    "--store",
    type=click.Path(path_type=Path),
    default=Path("vod-store"),
    envvar="VODSERVER_STORE",
    show_default=True,
    show_envvar=True,
    help="The store's directory.",
)
_json = click.option("--json", "as_json", is_flag=True, help="One line of JSON, for programs.")


@click.group(name="vodserver")
@click.version_option(package_name="toast-vod", prog_name="vodserver")
def cli() -> None:
    """Keep films on many disks, serve them over HTTP and seed them to the swarm.

    \b
    Example:
      vodserver init --disk /mnt/a --disk /mnt/b --disk /mnt/c --disk /mnt/d
      vodserver add film.mp4
      vodserver serve --tracker http://127.0.0.1:6969/announce
    """


@cli.command("init")
@_store
@click.option(
    "--disk",
    "disks",
    multiple=True,
    required=True,
    type=click.Path(path_type=Path),
    help="Directory on a disk; once for each disk. Made if it is not there.",
)
@click.option(
    "--allocation",
    type=click.Choice(ALLOCATIONS.names()),
    default="rda",
    show_default=True,
    help="Where extents go: rda = each on two disks at random; naive = a film on one disk.",
)
@_json
def init_command(store: Path, disks: tuple[Path, ...], allocation: str, as_json: bool) -> None:
    """Make an empty store.

    \b
    Example:
      vodserver init --disk /mnt/a --disk /mnt/b
    """
    rows = create_store(store, disks, allocation=allocation)
    if as_json:
        shown = [{"number": row.number, "id": row.id, "path": str(row.path)} for row in rows]
        print_json({"event": "created", "store": str(store), "disks": shown})
    else:
        click.echo(f"made a store in {store} over {len(rows)} disks")


@cli.command("add")
@_store
@click.argument("film", type=click.Path(path_type=Path))
@click.option("--name", help="What to call the film; by default its file's name.")
@_json
def add_command(store: Path, film: Path, name: str | None, as_json: bool) -> None:
    """Take FILM into the store.

    \b
    Example:
      vodserver add film.mp4 --name "A day in May"
    """
    signal.signal(signal.SIGTERM, _interrupt)
    console = Console(stderr=True)
    hidden = as_json or not console.is_terminal
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    with (
        open_store(store) as opened,
        Progress(
            *columns, TimeRemainingColumn(), console=console, disable=hidden, transient=True
        ) as bar,
    ):
        task = bar.add_task(f"adding {film.name}", total=None)

        def progress(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        title = add_film(opened, film, name=name, progress=progress)
    if as_json:
        print_json({"event": "added", **_describe(title)})
    else:
        rate = format_rate(title.film_bytes / title.duration)
        click.echo(
            f"added {title.id}: {format_bytes(title.film_bytes)}, "
            f"{format_seconds(title.duration)}, {rate}, {len(title.extents)} extents"
        )


@cli.command("list")
@_store
@_json
def list_command(store: Path, as_json: bool) -> None:
    """List the films in the store; also while it is being served.

    \b
    Example:
      vodserver list
    """
    titles = list_titles(store)
    if as_json:
        print_json([_describe(title) for title in titles])
        return
    if not titles:
        click.echo("the store is empty: 'vodserver add FILM' takes a film in")
        return
    table = Table(box=None, pad_edge=False)
    for heading in ("id", "name"):
        table.add_column(heading, overflow="fold")
    for heading in ("size", "length", "rate", "info-hash"):
        table.add_column(heading, justify="right", no_wrap=True)
    for title in titles:
        table.add_row(
            title.id,
            title.name,
            format_bytes(title.film_bytes),
            format_seconds(title.duration),
            format_rate(title.film_bytes / title.duration),
            title.info_hash,
        )
    # A table that is piped somewhere is not folded to the width of a terminal that is not there.
    Console(width=None if sys.stdout.isatty() else 200).print(table)


@cli.command("serve")
@_store
@click.option("--host", default=_DEFAULTS.host, show_default=True, help="Address for HTTP.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=_DEFAULTS.port,
    show_default=True,
    help="Port for HTTP; 0 takes any free one.",
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
@_json
def serve_command(store: Path, as_json: bool, **options: Any) -> None:
    """Serve the films over HTTP and seed them, until stopped.

    \b
    Example:
      vodserver serve --port 8080 --tracker http://127.0.0.1:6969/announce
    """
    _check_urls(("http://", "https://"), *filter(None, [options["public_url"]]))
    _check_urls(("http://", "https://", "udp://"), *options["trackers"])
    settings = dataclasses.replace(_DEFAULTS, **options)
    logging.basicConfig(format="vodserver: %(message)s", level=logging.WARNING)

    def ready(listening: Listening) -> None:
        if as_json:
            print_json({"event": "listening", **dataclasses.asdict(listening)})
            return
        seed = "" if listening.seed_port is None else f", seed on port {listening.seed_port}"
        click.echo(f"serving {listening.titles} titles on {listening.url}{seed}; Ctrl-C stops")

    with open_store(store) as opened, asyncio.Runner(loop_factory=_new_loop) as runner:
        runner.run(_until_signal(lambda stop: serve(opened, settings, ready=ready, stop=stop)))


def _new_loop() -> asyncio.AbstractEventLoop:
    """The loop that is faster for small ranges, which is what viewers ask for: uvloop.

    It gives 1.1 times the ranges of 64 KiB, and 0.9 to 1.0 times those of 1 MiB, as measured by
    benchmarks/bench_http_ranges.py.
    """
    if sys.platform == "win32":
        return asyncio.new_event_loop()
    import uvloop  # noqa: PLC0415 - there is none for every platform

    return uvloop.new_event_loop()


async def _until_signal(run: Callable[[asyncio.Event], Any]) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    await run(stop)


def _interrupt(_: int, __: FrameType | None) -> NoReturn:
    """Make SIGTERM clean up as Ctrl-C does."""
    raise KeyboardInterrupt


def _check_urls(schemes: tuple[str, ...], *urls: str) -> None:
    for url in urls:
        if not url.startswith(schemes):
            raise UsageError(
                f"'{url}' is not a URL: write for example http://127.0.0.1:6969/announce"
            )


def _describe(title: Title) -> dict[str, Any]:
    return {
        "id": title.id,
        "name": title.name,
        "bytes": title.film_bytes,
        "duration_seconds": title.duration,
        "piece_bytes": title.piece_bytes,
        "extent_bytes": title.extent_bytes,
        "extents": len(title.extents),
        "info_hash": title.info_hash,
        "sha256": title.sha256,
        **title.media,
    }


def main() -> NoReturn:
    """Run the command line."""
    run_cli(cli)


if __name__ == "__main__":
    main()
