"""`toast-netem up`, `exec`, `measure` and `down`: networks that run."""

import asyncio
import itertools
import os
from dataclasses import asdict, replace
from pathlib import Path
from statistics import median
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from netem.backends import choose
from netem.errors import NetemError
from netem.measure import loaded, measure
from netem.measured import Measured
from netem.spec import NetworkSpec
from netem.standing import Standing, bring_up, default_folder, find, take_down
from netem.topology import Topology
from netem.topology_file import read_topology
from toast.common.cli import print_json
from toast.common.units import format_rate

__all__ = ["COMMANDS"]

_named = click.option("--name", default="lab", show_default=True, help="Which network.")
_json = click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")


@click.command()
@click.argument("file", metavar="TOPOLOGY.toml", type=click.Path(path_type=Path))
@_named
@click.option("--backend", help="What runs it; by default the first that can do all of it.")
@click.option("--seed", type=click.IntRange(0), help="Of all chance; by default the file's.")
@click.option("--congestion-control", help="TCP's, in every host; by default the machine's.")
@_json
def up(
    file: Path,
    *,
    name: str,
    backend: str | None,
    seed: int | None,
    congestion_control: str | None,
    as_json: bool,
) -> None:
    """Make the network of a topology file; it stays until `down`.

    \b
    Example:
      toast-netem up town-and-country.toml
    """
    topology = read_topology(file)
    chosen = choose(topology, backend, seed=seed)
    # A lifeline would end with this command.
    spec = replace(NetworkSpec(topology, seed, congestion_control), lifeline=False)
    standing = bring_up(default_folder(), name, chosen.backend, spec)
    hosts = {host: entry["address"] for host, entry in standing.facts["hosts"].items()}
    facts = {
        "name": name,
        "backend": chosen.backend.name,
        "why": chosen.why,
        "hosts": hosts,
        "pid": standing.pid,
    }
    facts["congestion_control"] = standing.facts["congestion_control"]
    if as_json:
        print_json(facts)
        return
    console = Console(highlight=False)
    table = Table("host", "address", title=f"{name}: {topology.name}")
    for host, address in hosts.items():
        table.add_row(host, address)
    console.print(table)
    console.print(
        f"by {chosen.backend.name} ({chosen.why}),"
        f" TCP's congestion control {facts['congestion_control']};"
        f" end it with: toast-netem down --name {name}"
    )


@click.command("exec", context_settings={"ignore_unknown_options": True})
@_named
@click.argument("host")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def exec_(*, name: str, host: str, command: tuple[str, ...]) -> None:
    """Run a command in a host, as that command's own exit code says.

    \b
    Example:
      toast-netem exec viewer-1 -- ip address
    """
    enter = find(default_folder(), name).command(host, command)
    os.execv(enter[0], enter)  # noqa: S606  (no shell is wanted)


@click.command("measure")
@_named
@click.argument("hosts", nargs=-1)
@click.option(
    "--pings",
    default=1000,
    show_default=True,
    type=click.IntRange(10, 100_000),
    help="How many, and as many numbered packets.",
)
@click.option(
    "--load",
    type=click.FloatRange(0, 1),
    help="Have all other hosts send at such a share of their rate meanwhile.",
)
@_json
def measure_(
    *, name: str, hosts: tuple[str, ...], pings: int, load: float | None, as_json: bool
) -> None:
    """Compare what packets meet with what was asked for.

    Round trips and their spread, loss, copies, flipped bits, overtaking, and rate; what is expected
    of the latter ones is reckoned from the topology. Exit code 1 if something differs.

    HOSTS are the two ends. Without them, one host of each class is measured to one of each other.

    \b
    Example:
      toast-netem measure server viewer-1
    """
    standing = find(default_folder(), name)
    if len(hosts) not in {0, 2}:
        raise click.UsageError("name two hosts, or none")
    pairs = [(hosts[0], hosts[1])] if hosts else _pairs(standing.topology)
    with Console(stderr=True).status("") as status:
        results = []
        for sender, receiver in pairs:
            status.update(f"measuring {sender} to {receiver}")
            results.append(asyncio.run(_measure(standing, sender, receiver, pings, load)))
    if as_json:
        print_json({"name": name, "paths": [_as_json(each) for each in results]})
    else:
        _show(results)
    if wrong := [f"{e.sender} to {e.receiver}: {what}" for e in results for what in e.wrong()]:
        raise NetemError("; ".join(wrong))


@click.command()
@_named
@_json
def down(*, name: str, as_json: bool) -> None:
    """End a network and everything that runs in it.

    \b
    Example:
      toast-netem down
    """
    report = take_down(default_folder(), name)
    if as_json:
        print_json({"name": name, **report})
    elif report:
        share = report["cpu_seconds"] / report["seconds"] if report["seconds"] else 0.0
        packets = ""
        if "forwarded" in report:  # the kernel keeps no count for us
            packets = (
                f" {report['forwarded']} packets, {report['lost']} lost by chance,"
                f" {report['dropped']} at full queues;"
            )
        Console(highlight=False).print(
            f"{name} is down:{packets} {report['cpu_seconds']:.2f} s of processor time"
            f" ({share:.1%} of one)"
        )
    else:
        Console(highlight=False).print(f"{name} was down already")


COMMANDS = (up, exec_, measure_, down)
"""In the order in which they are used."""


def _pairs(topology: Topology) -> list[tuple[str, str]]:
    """One host of each class to one of every class, where there are two different ones."""
    groups = [topology.hosts_in(each.name) for each in topology.classes]
    groups = [group for group in groups if group]
    within = [(group[0].name, group[1].name) for group in groups if len(group) > 1]
    return within + [(a[0].name, b[0].name) for a, b in itertools.permutations(groups, 2)]


async def _measure(
    standing: Standing, sender: str, receiver: str, pings: int, load: float | None
) -> Measured:
    others: list[str] = []
    rates: list[float] = []
    for host in standing.topology.hosts if load else ():
        rate = standing.topology.latency_class(host.latency_class).rate
        if rate is not None and load and host.name not in {sender, receiver}:
            others.append(host.name)
            rates.append(load * rate)
    async with loaded(standing, others, rates):
        return await measure(standing, sender, receiver, pings=pings, packets=pings)


def _as_json(measured: Measured) -> dict[str, Any]:
    expected = asdict(measured.expected)
    expected["round_trip_seconds"] = median(expected.pop("round_trips"))
    return {
        "sender": measured.sender,
        "receiver": measured.receiver,
        "asked": asdict(measured.asked),
        "expected": expected,
        "pings": measured.pings,
        "answered": len(measured.round_trips),
        "round_trip_seconds": measured.round_trip_seconds,
        "round_trip_p95_seconds": measured.round_trip_p95_seconds,
        "spread_distance": measured.spread_distance,
        "stream": asdict(measured.stream),
        "rate": measured.rate,
        "wrong": measured.wrong(),
    }


def _show(results: list[Measured]) -> None:
    table = Table("from", "to", "round trip", "p95", "lost", "overtaken", "rate", "as asked for")
    for each in results:
        trip, late = each.round_trip_seconds, each.round_trip_p95_seconds
        table.add_row(
            each.sender,
            each.receiver,
            "none" if trip is None else f"{trip * 1e3:.2f} ms",
            "none" if late is None else f"{late * 1e3:.2f} ms",
            f"{each.stream.lost / each.stream.sent:.2%}",
            f"{each.stream.reordered / each.stream.sent:.2%}",
            "no limit" if each.rate is None else format_rate(each.rate),
            "no" if each.wrong() else "yes",
        )
    Console().print(table)
