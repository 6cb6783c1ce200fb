"""The VoD server beside nginx: random ranges of a cached film, same cores, rounds interleaved.

What is measured, and how, stands in docs/benchmarks.md.
"""

import itertools
import json
import os
import signal
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import click
from rich.console import Console
from rich.progress import Progress
from server.load import SCRIPT, Run, find_wrk, measure
from server.nginx import CONFIGURATIONS
from server.programs import BenchError
from server.report import OURS, Cell, figures, goals, label, table
from server.servers import Server, check, hold, prepare, run_nginx, run_ours, warm

from experiments.nginx import find_nginx
from toast.common.cli import SIZE, run_cli

_SIZES = "64k,256k,1m,4m"
_CONNECTIONS = "1,8,64,256"
_QUICK_CONNECTIONS = "8,64"
_UNITS = {"k": 1 << 10, "m": 1 << 20}


def _sizes(_: click.Context, __: click.Parameter, text: str) -> list[int]:
    try:
        return [int(word[:-1]) * _UNITS[word[-1]] for word in text.lower().split(",")]
    except (ValueError, KeyError, IndexError):
        raise click.BadParameter(f"'{text}' is no list of sizes such as {_SIZES}") from None


def _numbers(_: click.Context, __: click.Parameter, text: str) -> list[int]:
    try:
        numbers = [int(word) for word in text.split(",")]
    except ValueError:
        numbers = []
    if not numbers or min(numbers) < 1:
        raise click.BadParameter(f"'{text}' is no list of numbers such as {_CONNECTIONS}")
    return numbers


def _tries(_: click.Context, __: click.Parameter, words: tuple[str, ...]) -> dict[str, str]:
    tried = {}
    for word in words:
        name, found, directives = word.partition("=")
        if not found or not name.isidentifier():
            raise click.BadParameter(f"'{word}' is not NAME=DIRECTIVES")
        tried[name] = directives
    return tried


@click.command(name="bench_server")
@click.option("--seconds", type=click.IntRange(1), help="Of each run.  [default: 3]")
@click.option(
    "--rounds", type=click.IntRange(1), help="Runs of each server per cell.  [default: 3]"
)
@click.option("--sizes", default=_SIZES, show_default=True, callback=_sizes, help="Of a range.")
@click.option("--connections", default=_CONNECTIONS, show_default=True, callback=_numbers)
@click.option("--quick", is_flag=True, help="Fewer and shorter runs: about a minute in all.")
@click.option("--only", type=click.Choice(["ours", "nginx"]), help="Only one of the servers.")
@click.option(
    "--nginx",
    "named",
    type=click.Choice(sorted(CONFIGURATIONS)),
    multiple=True,
    default=("default", "best"),
    show_default=True,
    help="Which of nginx's configurations; may be given more than once.",
)
@click.option(
    "--nginx-try",
    "tried",
    multiple=True,
    callback=_tries,
    metavar="NAME=DIRECTIVES",
    help="A configuration to try: what goes into nginx's http block.",
)
@click.option(
    "--load",
    type=click.Choice(["drain", "wrk"]),
    default="drain",
    show_default=True,
    help="Who asks: one that has the kernel drop the bytes unread, or wrk, which copies them.",
)
@click.option("--core", type=click.IntRange(0), default=0, show_default=True, help="The server's.")
@click.option(
    "--cores",
    type=click.IntRange(1, 2),
    default=1,
    show_default=True,
    help="How many cores the servers have: with 2 they share them with the load.",
)
@click.option("--serve-args", default="", help='More arguments of ours, such as "--workers 2".')
@click.option("--film-bytes", type=SIZE, default=1 << 30, help="Of the film.  [default: 1 GiB]")
@click.option(
    "--keep",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder in which film and store are made, and stay for the next time.",
)
@click.option("--json", "as_json", is_flag=True, help="One line of JSON with the figures.")
def bench(**options: Any) -> None:
    """Measure how fast the VoD server sends ranges of a film, beside nginx.

    \b
    Example:
      python benchmarks/bench_server.py --quick --sizes 64k,256k
    """
    signal.signal(signal.SIGTERM, _interrupt)
    quick = options.pop("quick")
    if quick:
        options["seconds"] = options["seconds"] or 1
        options["rounds"] = options["rounds"] or 2
        if click.get_current_context().get_parameter_source("connections") == (
            click.core.ParameterSource.DEFAULT
        ):
            options["connections"] = [int(word) for word in _QUICK_CONNECTIONS.split(",")]
    if options["load"] == "wrk":
        find_wrk()
    if options["only"] != OURS:
        find_nginx()
    server_cores, load_cores = _split(options["core"], options["cores"])
    runs = _compare(options, server_cores, load_cores)
    console = Console(stderr=options["as_json"], width=None if sys.stdout.isatty() else 150)
    console.print(table(runs))
    for goal in goals(runs):
        console.print(str(goal))
    if options["as_json"]:
        about = {
            "load": options["load"],
            "seconds": options["seconds"] or 3,
            "rounds": options["rounds"] or 3,
        }
        print(json.dumps({**about, "server_cores": len(server_cores), **figures(runs)}))
    broken = sum(run.errors for cell in runs.values() for rounds in cell.values() for run in rounds)
    if broken:
        raise BenchError(f"{broken} errors: the cells marked so are invalid")


def _interrupt(_: int, __: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


def _split(core: int, cores: int) -> tuple[list[int], list[int]]:
    """The servers' cores, and the load's."""
    usable = sorted(os.sched_getaffinity(0))
    if core not in usable or len(usable) < 2:
        raise BenchError(f"two cores are needed, {core} among them, and there are {usable}")
    others = [number for number in usable if number != core]
    if cores == 1:
        return [core], others[:1]
    return [core, others[0]], [core, others[0]]


def _compare(
    options: dict[str, Any], server_cores: Sequence[int], load_cores: Sequence[int]
) -> dict[Cell, dict[str, list[Run]]]:
    """Start all servers, and load one after the other, in an order that rotates with the round."""
    configurations = {name: CONFIGURATIONS[name] for name in options["named"]} | options["tried"]
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-server-")))
        film = prepare(options["keep"] or scratch / "data", int(options["film_bytes"]))
        script = scratch / "ranges.lua"
        script.write_text(SCRIPT)
        servers: dict[str, Server] = {}
        if options["only"] != "nginx":
            servers[OURS] = stack.enter_context(
                run_ours(
                    options["serve_args"],
                    folder=scratch,
                    store=film.parent / "store",
                    cores=server_cores,
                )
            )
        if options["only"] != OURS:
            for name, directives in configurations.items():
                servers[name] = stack.enter_context(
                    run_nginx(name, directives, folder=scratch, film=film, cores=server_cores)
                )
        for server in servers.values():
            warm(server)
            check(server, film, options["sizes"])
        stack.enter_context(hold([film, *film.parent.glob("disk*/extents/*/*")]))
        cells = list(itertools.product(options["sizes"], options["connections"]))
        runs: dict[Cell, dict[str, list[Run]]] = {
            cell: {name: [] for name in servers} for cell in cells
        }
        rounds = options["rounds"] or 3
        progress = stack.enter_context(Progress(console=Console(stderr=True), transient=True))
        task = progress.add_task("", total=rounds * len(cells) * len(servers))
        for number in range(rounds):
            for size, connections in cells:
                names = list(servers)
                turn = number % len(names)
                for name in names[turn:] + names[:turn]:
                    progress.update(task, description=f"{label(size)} c{connections} {name}")
                    runs[size, connections][name].append(
                        measure(
                            servers[name].program,
                            servers[name].url,
                            load=options["load"],
                            script=script,
                            film_bytes=film.stat().st_size,
                            size=size,
                            connections=connections,
                            seconds=options["seconds"] or 3,
                            server_cores=server_cores,
                            cores=load_cores,
                            seed=number,
                        )
                    )
                    progress.advance(task)
        return runs


def main() -> None:
    """Run the comparison."""
    run_cli(bench)


if __name__ == "__main__":
    main()
