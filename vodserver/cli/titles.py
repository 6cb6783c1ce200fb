"""Commands about titles: make a store, take films in, list, remove and check them."""

import contextlib
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import click
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from toast.common.cli import print_json
from toast.common.units import format_bytes, format_rate, format_seconds
from vodserver.allocation import ALLOCATIONS
from vodserver.cli.group import cli, interrupt, json_option, store_option
from vodserver.control import run_operation
from vodserver.control.titles import describe_title
from vodserver.errors import IngestStopped
from vodserver.store import create_store, list_titles
from vodserver.store.fsck import NOTES

_KEPT: Final = "interrupted: what is done is kept, and the same command goes on from there"


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
@click.option(
    "--copies",
    type=click.IntRange(1, 3),
    help="Disks that each extent is on; 3 = rda on three, so that two may be lost.",
)
@json_option
def init_command(
    store: Path, disks: tuple[Path, ...], allocation: str, copies: int | None, as_json: bool
) -> None:
    """Make an empty store.

    \b
    Example:
      vodserver init --disk /mnt/a --disk /mnt/b
      vodserver init --copies 3 --disk /mnt/a --disk /mnt/b --disk /mnt/c
    """
    rows = create_store(store, disks, allocation=allocation, copies=copies)
    if as_json:
        shown = [{"number": row.number, "id": row.id, "path": str(row.path)} for row in rows]
        print_json({"event": "created", "store": str(store), "disks": shown})
    else:
        click.echo(f"made a store in {store} over {len(rows)} disks")


@cli.command("add")
@store_option
@click.argument("film", type=click.Path(path_type=Path))
@click.option("--name", help="What to call the film; by default its file's name.")
@click.option("--restart", is_flag=True, help="Begin again, whatever a stopped add has done.")
@json_option
def add_command(store: Path, film: Path, name: str | None, restart: bool, as_json: bool) -> None:
    """Take FILM into the store; while it is served, too. Stopped, it goes on when run again.

    \b
    Example:
      vodserver add film.mp4 --name "A day in May"
    """
    begun = False
    with _shown(f"adding {film.name}", as_json=as_json) as show:

        def told(fact: dict[str, Any]) -> None:
            nonlocal begun
            begun = begun or "bytes_done" in fact
            show(fact)

        try:
            arguments = {"film": str(film.absolute()), "name": name, "restart": restart}
            result = run_operation(store, "add", arguments, told)
        except KeyboardInterrupt:
            if begun:
                raise IngestStopped(_KEPT) from None
            raise
    if as_json:
        print_json({"event": "added", **result})
    else:
        for notice in result["notices"]:
            click.echo(f"vodserver: {notice}", err=True)
        rate = format_rate(result["bytes"] / result["duration_seconds"])
        click.echo(
            f"added {result['id']}: {format_bytes(result['bytes'])}, "
            f"{format_seconds(result['duration_seconds'])}, {rate}, {result['extents']} extents"
        )


@cli.command("remove")
@store_option
@click.argument("title")
@json_option
def remove_command(store: Path, title: str, as_json: bool) -> None:
    """Remove TITLE from the store, also while it is served.

    \b
    Example:
      vodserver remove a-day-in-may
    """
    with _shown(f"removing {title}", as_json=as_json) as show:
        result = run_operation(store, "remove", {"title": title}, show)
    if as_json:
        print_json({"event": "removed", **result})
    else:
        click.echo(f"removed {result['id']}: {format_bytes(result['bytes'])}")


@cli.command("fsck")
@store_option
@click.option("--deep", is_flag=True, help="Read every replica, and compare its checksums.")
@click.option(
    "--repair",
    is_flag=True,
    help="Make bad and missing replicas again from good ones; remove what is of no title.",
)
@json_option
@click.pass_context
def fsck_command(
    context: click.Context, store: Path, deep: bool, repair: bool, as_json: bool
) -> None:
    """Compare the catalog with the disks.

    The exit code is 1 if problems are left.

    \b
    Example:
      vodserver fsck --deep
    """
    with _shown("checking", as_json=as_json) as show:
        result = run_operation(store, "fsck", {"deep": deep, "repair": repair}, show)
    if as_json:
        print_json(result)
    else:
        _print_fsck(result)
    if not result["clean"]:
        context.exit(1)


def _print_fsck(result: dict[str, Any]) -> None:
    if result["findings"]:
        table = Table(box=None, pad_edge=False)
        table.add_column("kind", no_wrap=True)
        table.add_column("what", overflow="fold")
        for finding in result["findings"]:
            reason = finding["not_repaired"]
            why = "" if reason is None else f"; not repaired: {reason}"
            table.add_row(finding["kind"], f"{finding['message']}{why}")
        _print_table(table)
    unlisted = sum(result["counts"].values()) - len(result["findings"])
    if unlisted > 0:
        click.echo(f"... and {unlisted} more")
    problems = sum(n for kind, n in result["counts"].items() if kind not in NOTES)
    verdict = "clean" if result["clean"] else f"{problems} problems"
    repaired = f", {result['repaired']} repaired" if result["repaired"] else ""
    how = "read and compared" if result["deep"] else "compared by name and size"
    click.echo(
        f"{verdict}{repaired}: {result['titles']} titles, {result['replicas']} replicas, "
        f"{format_bytes(result['bytes'])}, {how}"
    )


@contextlib.contextmanager
def _shown(doing: str, *, as_json: bool) -> Iterator[Callable[[dict[str, Any]], None]]:
    """Show the progress of an operation to people."""
    signal.signal(signal.SIGTERM, interrupt)
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    with Progress(
        *columns,
        TimeRemainingColumn(),
        console=console,
        disable=as_json or not console.is_terminal,
        transient=True,
    ) as bar:
        task = bar.add_task(doing, total=None)

        def show(fact: dict[str, Any]) -> None:
            if "bytes_done" in fact:
                bar.update(task, completed=fact["bytes_done"], total=fact["bytes_total"])

        yield show


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
        print_json([describe_title(title) for title in titles])
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
    _print_table(table)


def _print_table(table: Table) -> None:
    # A table that is piped somewhere is not folded to the width of a terminal that is not there.
    Console(width=None if sys.stdout.isatty() else 200).print(table)
