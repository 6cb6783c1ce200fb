"""Commands about titles: make a store, take films in, list them."""

import signal
import sys
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from toast.common.cli import print_json
from toast.common.units import format_bytes, format_rate, format_seconds
from vodserver.allocation import ALLOCATIONS
from vodserver.cli.group import cli, interrupt, json_option, store_option
from vodserver.store import Title, add_film, create_store, list_titles, open_store


@cli.command("init")
@store_option
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
@json_option
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
@store_option
@click.argument("film", type=click.Path(path_type=Path))
@click.option("--name", help="What to call the film; by default its file's name.")
@json_option
def add_command(store: Path, film: Path, name: str | None, as_json: bool) -> None:
    """Take FILM into the store.

    \b
    Example:
      vodserver add film.mp4 --name "A day in May"
    """
    signal.signal(signal.SIGTERM, interrupt)
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
@store_option
@json_option
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
