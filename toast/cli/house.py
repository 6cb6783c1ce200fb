"""The daemon's clients: `toast status`, `list`, `add`, `remove`, `pause`, `resume`, and so on."""

import sys
import webbrowser
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from toast.cli.daemon import rules_from, state_option
from toast.common.cli import print_json
from toast.common.units import format_bytes, format_rate, format_seconds
from toast.daemon.client import Client
from toast.viewer import Behaviour

__all__ = ["COMMANDS"]

_json_option = click.option("--json", "as_json", is_flag=True, help="JSON for programs.")


@click.command()
@state_option
@_json_option
def status(state: Path, as_json: bool) -> None:
    """How the daemon is doing.

    \b
    Example:
      toast status
    """
    facts = Client(state).ask("GET", "/status")
    if as_json:
        print_json(facts)
        return
    disk, schedule = facts["disk"], facts["schedule"]
    rows = {
        "films": str(facts["films"]),
        "up since": format_seconds(facts["uptime_seconds"]),
        "from peers": format_rate(facts["down_rate"]),
        "to peers": format_rate(facts["up_rate"]),
        "sent today": _of(facts["uploaded_bytes"], facts["upload_quota_bytes"]),
        "asked of servers today": _of(facts["origin_bytes_today"], facts["origin_quota_bytes"]),
        "disk": _of(disk["used_bytes"], disk["quota_bytes"]),
        "free": format_bytes(disk["free_bytes"]),
        "schedule": _schedule(schedule),
    }
    table = Table(show_header=False, box=None)
    for name, value in rows.items():
        table.add_row(name, value)
    _console().print(table)
    for notice in facts["notices"]:
        click.echo(notice, err=True)


def _of(used: int, quota: int | None) -> str:
    return format_bytes(used) + ("" if quota is None else f" of {format_bytes(quota)}")


def _schedule(schedule: dict[str, Any]) -> str:
    words = [
        *([] if schedule["uploads"] else ["no uploads"]),
        *([] if schedule["downloads"] else ["no downloads"]),
        *(
            f"{way} {format_rate(schedule[f'{way}_rate'])}"
            for way in ("upload", "download")
            if schedule[f"{way}_rate"] is not None
        ),
    ]
    text = " / ".join(words) or "full"
    if schedule["next_change"] is not None:
        text += f" until {datetime.fromtimestamp(schedule['next_change']).astimezone():%a %H:%M}"
    return text


@click.command("list")
@state_option
@_json_option
def list_films(state: Path, as_json: bool) -> None:
    """The films that the daemon has.

    \b
    Example:
      toast list
    """
    films = Client(state).ask("GET", "/films")["films"]
    if as_json:
        print_json({"films": films})
        return
    table = Table(box=None, pad_edge=False)
    for name in ("id", "film", "state", "have", "size", "down", "up", "peers"):
        table.add_column(
            name, justify="right" if name in {"have", "size", "down", "up", "peers"} else "left"
        )
    for film in films:
        table.add_row(
            film["id"][:8],
            _plain(film["name"]),
            film["state"],
            f"{film['pieces_have'] / film['pieces']:.0%}",
            format_bytes(film["size_bytes"]),
            format_rate(film["down_rate"]),
            format_rate(film["up_rate"]),
            str(film["neighbours"]),
        )
    _console().print(table, highlight=False, markup=False)


@click.command()
@click.argument("source")
@click.option(
    "--mode",
    type=click.Choice(["watch", "download", "queue"]),
    default="download",
    show_default=True,
    help="Start it at once, as soon as there is room, or after the others.",
)
@click.option(
    "--behaviour",
    type=click.Choice([str(behaviour) for behaviour in Behaviour]),
    help="How long to serve it to others.  [default: as 'toast settings' says]",
)
@state_option
@_json_option
def add(source: str, mode: str, behaviour: str | None, state: Path, as_json: bool) -> None:
    """Add the film that SOURCE names.

    SOURCE is a .torrent, the URL of a title on a VoD server, or a magnet link.

    \b
    Example:
      toast add http://127.0.0.1:8080/titles/film
    """
    film = Client(state).add(source, mode=mode, behaviour=behaviour)
    _show(film, as_json, f"{film['id'][:8]} {film['name']} is added")


@click.command()
@click.argument("film")
@click.option("--data", is_flag=True, help="Delete its files too.")
@state_option
@_json_option
def remove(film: str, data: bool, state: Path, as_json: bool) -> None:
    """Let FILM go: a part of its name, or the beginning of its id.

    \b
    Example:
      toast remove sintel --data
    """
    client = Client(state)
    found = client.find(film)
    client.ask("DELETE", client.film_path(found) + ("?data=1" if data else ""))
    gone = "and its files are deleted" if data else "and its files stay"
    _show(
        {"id": found["id"], "removed": True, "data": data},
        as_json,
        f"{found['name']} is removed, {gone}",
    )


def _change(film: str, state: Path, as_json: bool, changes: dict[str, Any], what: str) -> None:
    client = Client(state)
    found = client.find(film)
    shown = client.ask("PATCH", client.film_path(found), changes)
    _show(shown, as_json, f"{found['name']} {what}")


@click.command()
@click.argument("film")
@state_option
@_json_option
def pause(film: str, state: Path, as_json: bool) -> None:
    """Halt FILM: it is neither downloaded nor served.

    \b
    Example:
      toast pause sintel
    """
    _change(film, state, as_json, {"paused": True}, "is paused")


@click.command()
@click.argument("film")
@click.option("--priority", type=click.IntRange(-1000, 1000), help="Higher ones come first.")
@state_option
@_json_option
def resume(film: str, priority: int | None, state: Path, as_json: bool) -> None:
    """Let FILM go on; also after an error.

    \b
    Example:
      toast resume sintel --priority 5
    """
    changes: dict[str, Any] = {"paused": False}
    if priority is not None:
        changes["priority"] = priority
    _change(film, state, as_json, changes, "goes on")


@click.command()
@click.argument("film")
@state_option
@_json_option
def info(film: str, state: Path, as_json: bool) -> None:
    """Everything that is known of FILM.

    \b
    Example:
      toast info sintel
    """
    found = Client(state).find(film)
    if as_json:
        print_json(found)
        return
    table = Table(show_header=False, box=None)
    for name, value in found.items():
        table.add_row(name, _plain(_readable(name, value)))
    _console().print(table, highlight=False, markup=False)


def _date(unix: float) -> str:
    return f"{datetime.fromtimestamp(unix).astimezone():%Y-%m-%d %H:%M}"


_WRITERS: Mapping[str, Callable[[Any], str]] = {
    "rate": format_rate,
    "bytes": format_bytes,
    "seconds": format_seconds,
    "at": _date,
}
"""By the end of a fact's name."""


def _readable(name: str, value: Any) -> str:
    if value is None:
        return "-"
    if name == "subtitles":
        return ", ".join(each["label"] for each in value) or "-"
    end = "bytes" if "bytes" in name else name.rpartition("_")[2]
    return _WRITERS.get(end, str)(value)


@click.command("open")
@click.option("--print", "only_print", is_flag=True, help="Print the address and open nothing.")
@state_option
@_json_option
def open_page(only_print: bool, state: Path, as_json: bool) -> None:
    """Open the daemon's page in a browser.

    \b
    Example:
      toast open
    """
    client = Client(state)
    client.ask("GET", "/status")  # says so if no daemon runs
    if as_json:
        print_json({"url": client.page_url})
    elif only_print or not sys.stdout.isatty() or not webbrowser.open(client.page_url):
        click.echo(client.page_url)


@click.command()
@click.argument("assignments", metavar="[NAME=VALUE]...", nargs=-1)
@state_option
@_json_option
def settings(assignments: tuple[str, ...], state: Path, as_json: bool) -> None:
    """Show the daemon's settings, or change some.

    Changes are remembered. 'none' takes a limit away.

    \b
    Example:
      toast settings disk_bytes=500GB schedule="22:00-7:00 full, otherwise upload 1Mbps"
    """
    changes = rules_from(assignments)
    client = Client(state)
    shown = client.ask("PATCH", "/settings", changes) if changes else client.ask("GET", "/settings")
    if as_json:
        print_json(shown)
        return
    table = Table(show_header=False, box=None)
    for name, value in shown.items():
        table.add_row(name, "none" if value in {None, ""} else _readable(name, value))
    _console().print(table, highlight=False, markup=False)


def _show(facts: Any, as_json: bool, words: str) -> None:
    if as_json:
        print_json(facts)
    else:
        click.echo(_plain(words))


def _console() -> Console:
    return Console(soft_wrap=not sys.stdout.isatty())


def _plain(text: str) -> str:
    """Without what could command the terminal: names come from strangers."""
    return "".join(letter if letter.isprintable() else "�" for letter in text)


COMMANDS = (status, list_films, add, remove, pause, resume, info, open_page, settings)
