"""`toast-netem`: what can emulate a network here, what a topology says, and networks that run."""

import signal
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, NoReturn

import click
from rich.console import Console
from rich.table import Table

from netem.backends import BACKENDS, BackendReport
from netem.cli_standing import COMMANDS
from netem.effects import Effect
from netem.errors import NetemError
from netem.guest.run import run_in_guest
from netem.machine import Machine, describe_machine
from netem.topology import LatencyClass, Topology
from netem.topology_file import read_topology
from toast.common.cli import print_json, run_cli
from toast.common.units import format_bytes, format_rate, parse_bytes

__all__ = ["main"]

_LEAST_GUEST_BYTES: Final = 128_000_000


def main() -> NoReturn:
    """Run `toast-netem`."""
    # A trial may be running when we are asked to stop: leave through its clean-up.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    run_cli(_netem)


@click.group(name="toast-netem")
@click.version_option(package_name="toast-vod", prog_name="toast-netem")
def _netem() -> None:
    """Emulated networks: which kinds work here, what a topology file means, and networks that run.

    \b
    Example:
      toast-netem up town-and-country.toml
      toast-netem exec viewer-1 -- ip address
      toast-netem measure
      toast-netem down
    """


for _command in COMMANDS:
    _netem.add_command(_command)


@_netem.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
def doctor(*, as_json: bool) -> None:
    """Try each way of emulating a network, for real; takes a few seconds.

    Says what each can do, and of one that does not work what is missing and how to get it. Exit
    code 0 if at least one works.

    \b
    Example:
      toast-netem doctor --json
    """
    machine = describe_machine()
    reports = []
    with Console(stderr=True).status("") as status:
        for backend in BACKENDS:
            status.update(f"trying {backend.description}")
            reports.append(backend.probe())
    if as_json:
        backends = {
            report.name: {
                "works": report.works,
                "reason": report.reason,
                "effects": sorted(backend.effects),
                **report.facts,
            }
            for backend, report in zip(BACKENDS, reports, strict=True)
        }
        print_json({"machine": asdict(machine), "backends": backends})
    else:
        _show_doctor(machine, reports)
    if not any(report.works for report in reports):
        raise NetemError("no network can be emulated here; the reasons are above")


@_netem.command("guest", context_settings={"ignore_unknown_options": True})
@click.option("--memory", default="1GB", show_default=True, help="How much the guest has.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def guest(*, memory: str, command: tuple[str, ...]) -> None:
    """Run a command in a user-mode Linux guest, whose kernel has NetEm.

    The guest has this machine's files; the command may change those that you may. Everything in it
    ends with the command, whose exit code is ours.

    \b
    Example:
      toast-netem guest -- toast-netem doctor
    """
    size = parse_bytes(memory)
    if size < _LEAST_GUEST_BYTES:
        raise click.UsageError(f"--memory must be at least {format_bytes(_LEAST_GUEST_BYTES)}")
    sys.exit(run_in_guest(command, size))


@_netem.command()
@click.argument("file", metavar="TOPOLOGY.toml", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
def show(file: Path, *, as_json: bool) -> None:
    """Show the classes of a topology file, and its round trips.

    \b
    Example:
      toast-netem show town-and-country.toml
    """
    topology = read_topology(file)
    if as_json:
        print_json(_as_json(topology))
    else:
        _show_topology(topology)


def _as_json(topology: Topology) -> dict[str, Any]:
    names = [latency_class.name for latency_class in topology.classes]
    return {
        "name": topology.name,
        "classes": [asdict(latency_class) for latency_class in topology.classes],
        "hosts": [asdict(host) for host in topology.hosts],
        "paths": [
            {"from": sender, "to": receiver, **asdict(topology.path(sender, receiver))}
            for sender in names
            for receiver in names
        ],
    }


def _show_doctor(machine: Machine, reports: list[BackendReport]) -> None:
    console = Console()
    console.print(f"kernel {machine.kernel}, {machine.processors} processors", highlight=False)
    console.print(
        f"TCP congestion control {machine.congestion_control or 'unknown'}"
        f" (of {', '.join(machine.congestion_controls) or 'unknown'}),"
        f" default queueing {machine.default_qdisc or 'unknown'}",
        highlight=False,
    )
    table = Table("backend", "works", "seen", "cannot do", highlight=False)
    for backend, report in zip(BACKENDS, reports, strict=True):
        lacking = ", ".join(sorted(frozenset(Effect) - backend.effects))
        table.add_row(report.name, "yes" if report.works else "no", report.reason, lacking)
    console.print(table)


def _show_topology(topology: Topology) -> None:
    console = Console()
    classes = Table("class", "hosts", "delay", "loss", "rate", title=topology.name)
    for each in topology.classes:
        classes.add_row(
            each.name,
            str(len(topology.hosts_in(each.name))),
            _milliseconds(each.delay_seconds, each.jitter_seconds),
            _percent(each.mean_loss),
            "no limit" if each.rate is None else format_rate(each.rate),
        )
    console.print(classes)
    console.print(_round_trips(topology.classes, topology))


def _round_trips(classes: tuple[LatencyClass, ...], topology: Topology) -> Table:
    trips = Table("from \\ to", *(each.name for each in classes), title="round trips")
    for sender in classes:
        row = []
        for receiver in classes:
            path = topology.path(sender.name, receiver.name)
            cell = _milliseconds(path.round_trip_seconds, path.jitter_seconds)
            row.append(f"{cell}, {_percent(path.loss)} lost" if path.loss else cell)
        trips.add_row(sender.name, *row)
    return trips


def _milliseconds(seconds: float, jitter_seconds: float) -> str:
    jitter = f" ± {jitter_seconds * 1e3:.3g}" if jitter_seconds else ""
    return f"{seconds * 1e3:.4g}{jitter} ms"


def _percent(fraction: float) -> str:
    return f"{fraction * 100:.3g} %"
