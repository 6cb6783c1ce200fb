"""Commands that keep a store whole: disks, scrub, status."""

import signal
import sys
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from toast.common.cli import RATE, print_json
from toast.common.units import format_bytes, format_seconds
from vodserver.cli.group import cli, interrupt, json_option, store_option
from vodserver.control import run_operation
from vodserver.store.upkeep.rebalance import DEFAULT_TOLERANCE


def run_shown(
    store: Path, name: str, arguments: dict[str, Any], *, as_json: bool, doing: str
) -> dict[str, Any]:
    """Run an operation with its progress on show: a bar for people, lines of JSON for programs."""
    signal.signal(signal.SIGTERM, interrupt)
    if as_json:
        return run_operation(
            store, name, arguments, lambda told: print_json({"event": "progress", **told})
        )
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    with Progress(
        *columns,
        TimeRemainingColumn(),
        console=console,
        disable=not console.is_terminal,
        transient=True,
    ) as bar:
        task = bar.add_task(doing, total=None)

        def progress(told: dict[str, Any]) -> None:
            bar.update(task, completed=told.get("bytes_done"), total=told.get("bytes_total"))

        return run_operation(store, name, arguments, progress)


@cli.group("disk")
def disk_group() -> None:
    """Take disks in, empty them, replace them.

    \b
    Example:
      vodserver disk add /mnt/e
    """


@disk_group.command("add")
@store_option
@click.argument("directory", type=click.Path(path_type=Path))
@json_option
def disk_add(store: Path, directory: Path, as_json: bool) -> None:
    """Take DIRECTORY in as another disk. It is made if it is not there, and empty if it is.

    \b
    Example:
      vodserver disk add /mnt/e
    """
    result = run_shown(
        store, "disk add", {"path": str(Path.cwd() / directory)}, as_json=as_json, doing="adding"
    )
    if as_json:
        print_json({"event": "added", **result})
    else:
        click.echo(
            f"disk {result['number']} is {result['path']}: new films use it; "
            "'vodserver rebalance' moves a part of the old ones there"
        )


@disk_group.command("list")
@store_option
@json_option
def disk_list(store: Path, as_json: bool) -> None:
    """List the disks: where each is, its state, how full it is.

    \b
    Example:
      vodserver disk list
    """
    result = run_operation(store, "disk list", {}, lambda _: None)
    if as_json:
        print_json(result["disks"])
        return
    table = _table("disk", "directory", "state", right=("used", "size", "free"))
    for disk in result["disks"]:
        table.add_row(
            str(disk["number"]),
            disk["path"],
            _state(disk),
            format_bytes(disk["used_bytes"]),
            _size(disk["capacity_bytes"]),
            _size(disk["free_bytes"]),
        )
    _print(table)


@disk_group.command("drain")
@store_option
@click.argument("number", type=click.IntRange(min=0))
@click.option("--cancel", is_flag=True, help="Let a disk that is being drained take films again.")
@json_option
def disk_drain(store: Path, number: int, cancel: bool, as_json: bool) -> None:
    """Move everything off disk NUMBER, and retire it.

    Stopped, it goes on when run again.

    \b
    Example:
      vodserver disk drain 2
    """
    result = run_shown(
        store,
        "disk drain",
        {"number": number, "cancel": cancel},
        as_json=as_json,
        doing=f"draining disk {number}",
    )
    if as_json:
        print_json({"event": "active" if cancel else "drained", **result})
    elif cancel:
        click.echo(f"disk {number} takes films again")
    else:
        click.echo(f"disk {number} is retired: {_moved(result)}; it can be taken away")


@disk_group.command("replace")
@store_option
@click.argument("number", type=click.IntRange(min=0))
@click.argument("directory", type=click.Path(path_type=Path))
@json_option
def disk_replace(store: Path, number: int, directory: Path, as_json: bool) -> None:
    """Have DIRECTORY take the place of disk NUMBER.

    DIRECTORY must be empty; the disk may be dead. What was on it is made again from the other
    replicas. Stopped, it goes on when run again.

    \b
    Example:
      vodserver disk replace 2 /mnt/new
    """
    result = run_shown(
        store,
        "disk replace",
        {"number": number, "path": str(Path.cwd() / directory)},
        as_json=as_json,
        doing=f"replacing disk {number}",
    )
    if as_json:
        print_json({"event": "replaced", **result})
    else:
        click.echo(f"disk {number} is {result['path']} now: {_moved(result)}")


@cli.command("rebalance")
@store_option
@click.option(
    "--tolerance",
    type=click.FloatRange(0, 1),
    default=DEFAULT_TOLERANCE,
    show_default=True,
    help="How far from the mean a disk's used part may stay.",
)
@json_option
def rebalance_command(store: Path, tolerance: float, as_json: bool) -> None:
    """Move replicas until the disks are equally full.

    \b
    Example:
      vodserver rebalance --tolerance 0.05
    """
    result = run_shown(
        store, "rebalance", {"tolerance": tolerance}, as_json=as_json, doing="rebalancing"
    )
    if as_json:
        print_json({"event": "rebalanced", **result})
    else:
        click.echo(f"rebalanced: {_moved(result)}")
    if result["failed"]:
        sys.exit(1)


@cli.command("scrub")
@store_option
@click.option("--rate", type=RATE, metavar="RATE", help="Most to read, such as 80Mbps or 20MB/s.")
@click.option("--restart", is_flag=True, help="Begin anew, wherever an earlier one was stopped.")
@json_option
def scrub_command(store: Path, rate: float | None, restart: bool, as_json: bool) -> None:
    """Read every replica from its disk, and repair what is bad.

    Stopped, it goes on where it was when run again. Exit code 1 if something stays bad.

    \b
    Example:
      vodserver scrub --rate 20MB/s
    """
    result = run_shown(
        store, "scrub", {"rate": rate, "restart": restart}, as_json=as_json, doing="scrubbing"
    )
    if as_json:
        print_json({"event": "scrubbed", **result})
    else:
        unreachable = result["unreachable"]
        click.echo(
            f"checked {result['checked']} replicas ({format_bytes(result['checked_bytes'])}) in "
            f"{format_seconds(result['seconds'])}: {result['bad']} bad, "
            f"{result['repaired']} repaired"
            + (f", {unreachable} on disks that are not there" if unreachable else "")
        )
    if result["bad"] > result["repaired"]:
        sys.exit(1)


@cli.command("status")
@store_option
@json_option
def status_command(store: Path, as_json: bool) -> None:
    """Show the state of the store and of its disks.

    \b
    Example:
      vodserver status
    """
    status = run_operation(store, "status", {}, lambda _: None)
    if as_json:
        print_json(status)
        return
    table = _table(
        *("disk", "state"), right=("used", "size", "queue", "mean read", "from memory", "bad")
    )
    for disk in status["disks"]:
        service, hits, queued = (
            disk[name] for name in ("mean_service_seconds", "hit_rate", "queued_bytes")
        )
        table.add_row(
            str(disk["number"]),
            _state(disk),
            format_bytes(disk["used_bytes"]),
            _size(disk["capacity_bytes"]),
            "-" if queued is None else format_bytes(queued),
            "-" if service is None else f"{1000 * service:.1f} ms",
            "-" if hits is None else f"{100 * hits:.0f} %",
            str(disk["bad_replicas"]),
        )
    _print(table)
    for line in _lines(status):
        click.echo(line)


def _lines(status: dict[str, Any]) -> list[str]:
    there, wanted = status["replicas_there"], status["replicas_wanted"]
    films = f"{status['titles']} titles, {format_bytes(status['film_bytes'])}"
    lines = [f"{films}; {there} of {wanted} replicas are there and good"]
    if short := status["under_replicated_extents"]:
        lines.append(f"{short} extents have too few replicas")
    if lost := status["unreadable_extents"]:
        lines.append(f"{lost} extents cannot be read from anywhere now")
    now, last = status["scrub"]["now"], status["scrub"]["last"]
    if now is not None:
        done, total = format_bytes(now["bytes_done"]), format_bytes(now["bytes_total"])
        lines.append(f"scrub: {done} of {total}, {now['bad']} bad so far")
    elif last is not None:
        lines.append(
            f"last scrub: {last['checked']} replicas in {format_seconds(last['seconds'])}, "
            f"{last['bad']} bad"
        )
    server = status.get("server")
    if server is None:
        lines.append("not being served")
    else:
        lines.append(f"served on {server['url']}" if "url" in server else "being served")
        if seed := server.get("seed"):
            lines.append(f"seed on port {seed['port']}: {seed['peers']} peers")
        if server.get("operation"):
            lines.append(f"'{server['operation']}' is under way")
    return lines


def _moved(result: dict[str, Any]) -> str:
    text = f"{result['replicas']} replicas, {format_bytes(result['bytes'])}, were written"
    return text + (f", {result['failed']} could not be" if result["failed"] else "")


def _state(disk: dict[str, Any]) -> str:
    return f"{disk['state']}: {disk['reason']}" if disk["reason"] else str(disk["state"])


def _size(count: int | None) -> str:
    return format_bytes(count) if count else "-"


def _table(*left: str, right: tuple[str, ...]) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in left:
        table.add_column(heading, overflow="fold")
    for heading in right:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def _print(table: Table) -> None:
    # A table that is piped somewhere is not folded to the width of a terminal that is not there.
    Console(width=None if sys.stdout.isatty() else 200).print(table)
