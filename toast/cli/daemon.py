"""`toast daemon`: many films, in the background."""

import asyncio
import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path
from typing import Any

import click

from toast.cli.network import NetworkOptions, network_options
from toast.common.cli import RATE, SECONDS, SIZE, print_json
from toast.common.errors import UsageError
from toast.common.units import parse_bytes, parse_rate, parse_seconds
from toast.daemon.service import Service
from toast.daemon.settings import DaemonSettings, RuleSettings, default_state
from toast.swarm import SessionSettings
from toast.viewer import Behaviour

__all__ = ["daemon", "state_option"]

_RULES = RuleSettings()
_DAEMON = DaemonSettings(state=Path())
_CONNECTIONS = 200

_READERS: Mapping[str, Callable[[str], float]] = {
    "rate": parse_rate,
    "bytes": parse_bytes,
    "seconds": parse_seconds,
    "ratio": float,
}
"""By the end of a setting's name; the others are whole numbers."""

state_option = click.option(
    "--state",
    type=click.Path(file_okay=False, path_type=Path),
    default=default_state,
    show_default="$STATE_DIRECTORY, or toast in $XDG_STATE_HOME or ~/.local/state",
    help="Folder of what the daemon remembers.",
)


@click.command()
@state_option
@click.option(
    "--films",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of the films.  [default: films in the state folder]",
)
@click.option(
    "--watch",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder in which .torrents are looked for; each becomes a film.",
)
@click.option(
    "--host",
    default=_DAEMON.host,
    show_default=True,
    help="IP address of page and API; another than loopback lets other machines in.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=_DAEMON.port,
    show_default=True,
    help="Port of page and API; 0 takes any free one.",
)
@network_options
@click.option("--upload", "upload_rate", type=RATE, help="Most to send to others, as 2Mbps.")
@click.option("--download", "download_rate", type=RATE, help="Most to take from others.")
@click.option("--upload-day", "upload_day_bytes", type=SIZE, help="Most to send in a day, as 20GB.")
@click.option(
    "--origin-day", "origin_day_bytes", type=SIZE, help="Most to ask of servers in a day."
)
@click.option("--origin-rate", type=RATE, help="Most to ask of servers on average, as 4Mbps.")
@click.option("--disk", "disk_bytes", type=SIZE, help="Most that all films may take, as 500GB.")
@click.option("--most-active", type=click.IntRange(0), help="Films that are downloaded at a time.")
@click.option(
    "--behaviour",
    type=click.Choice([str(behaviour) for behaviour in Behaviour]),
    help="How long films are served to others.",
)
@click.option("--seed-ratio", type=click.FloatRange(0), help="Sent so often, seeding ends.")
@click.option("--seed-time", "seed_seconds", type=SECONDS, help="After so long, seeding ends.")
@click.option("--schedule", help="As '22:00-07:00 full, otherwise upload 1Mbps / no downloads'.")
@click.option(
    "--systemd-unit",
    type=click.Choice(["user", "system"]),
    help="Print a unit file for systemd, and end.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line.")
def daemon(
    *,
    state: Path,
    films: Path | None,
    watch: Path | None,
    host: str,
    port: int,
    listen: str,
    utp: str,
    port_mapping: bool,
    discovery: bool,
    systemd_unit: str | None,
    as_json: bool,
    **rules: Any,
) -> int | None:
    """Run the daemon: many films, a page, and an API.

    It goes on until Ctrl-C or SIGTERM, and takes up where it was when it is started again.
    Settings given here are remembered only if they are set with 'toast settings'.

    \b
    Example:
      toast daemon --disk 500GB --schedule "22:00-07:00 full, otherwise upload 1Mbps"
    """
    if systemd_unit is not None:
        sys.stdout.write(
            files("toast.daemon").joinpath(f"toast-{systemd_unit}.service").read_text()
        )
        return None
    given = {name: value for name, value in rules.items() if value is not None}
    for name in ("upload_day_bytes", "origin_day_bytes", "disk_bytes"):
        if name in given:
            given[name] = round(given[name])
    network = NetworkOptions.parse(
        listen=listen, utp=utp, port_mapping=port_mapping, discovery=discovery
    )
    settings = DaemonSettings(
        state=state.absolute(), films=films, watch=watch, host=host, port=port
    )
    session = SessionSettings(**asdict(network), connections=_CONNECTIONS)
    return asyncio.run(_serve(Service(settings, session, given), as_json))


async def _serve(service: Service, as_json: bool) -> int:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    async with service:
        for notice in service.notices:
            click.echo(f"toast: {notice}", err=True)
        if as_json:
            print_json(
                {
                    "event": "listening",
                    "url": service.url,
                    "state": str(service.settings.state),
                    "peers_port": service.peers_port,
                    "films": len(service.library.films()),
                    "notices": service.notices,
                }
            )
        else:
            click.echo(f"the daemon is at {service.url}; 'toast open' opens its page", err=True)
        running = asyncio.create_task(service.run())
        stopping = asyncio.create_task(stopped.wait())
        await asyncio.wait({running, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        running.cancel()
        results = await asyncio.gather(running, return_exceptions=True)
    for error in results:
        if isinstance(error, Exception):
            raise error
    return 0


def rules_from(assignments: tuple[str, ...]) -> dict[str, Any]:
    """Rules written as people write them: `upload_rate=2Mbps`, `disk_bytes=none`.

    Raises:
        UsageError: one that is no assignment, no rule, or no value of it.
    """
    found: dict[str, Any] = {}
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        if not equals or not hasattr(_RULES, name):
            raise UsageError(f"'{assignment}' changes no setting: write for example most_active=2")
        found[name] = _value(name, text.strip())
    return found


def _value(name: str, text: str) -> Any:
    if name in {"behaviour", "schedule"}:
        return "" if text == "none" else text
    if text == "none":
        return None
    if name == "eject_watched":
        if text not in {"yes", "no", "true", "false"}:
            raise UsageError(f"{name} is yes or no")
        return text in {"yes", "true"}
    try:
        return _READERS.get(name.rpartition("_")[2], int)(text)
    except UsageError:
        raise
    except ValueError as error:
        raise UsageError(f"'{text}' is no value of {name}") from error
