"""The command line of the laboratory, `toast-lab`."""

import asyncio
import contextlib
import signal
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, NoReturn

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from experiments.accounting import failures
from experiments.bound import Behaviour, FluidScenario, ViewerPlan, evenly_spaced, offload_bound
from experiments.cells import CELLS, Cell
from experiments.decoder import DecodeResult, decode_in_real_time
from experiments.demo import Demo, DemoSettings
from experiments.display import follow, show_evidence, show_results
from experiments.errors import LabError
from experiments.evidence import Evidence, Result, checkout, commit_of
from experiments.film import FilmSpec, cached_film, make_film
from experiments.signals import interrupt_on_sigterm
from experiments.swarm_cli import SWARM_COMMANDS
from toast.common.cli import RATE, SECONDS, print_json, run_cli
from toast.common.units import format_bytes, format_rate
from toast.policy.pickers import picker_names

__all__ = ["cli", "main"]

_FILM = FilmSpec()
_DEMO = DemoSettings()
_FILMS = Path("run/films")
_EVIDENCE = Path("run/evidence")
_behaviours = click.Choice([str(behaviour) for behaviour in Behaviour])
_json = click.option("--json", "as_json", is_flag=True, help="One line of JSON, for programs.")


@click.group(name="toast-lab")
@click.version_option(package_name="toast-vod", prog_name="toast-lab")
def cli() -> None:
    """Films, bounds and whole swarms of real programs to measure.

    \b
    Example:
      toast-lab demo --viewers 8
    """


@cli.command("demo")
@click.option(
    "--film",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A film of yours.  [default: one of 60 s at 2 Mb/s, made for this]",
)
@click.option(
    "--viewers",
    type=click.IntRange(1, 200),
    default=_DEMO.viewers,
    show_default=True,
    help="How many watch.",
)
@click.option(
    "--spacing",
    "spacing_seconds",
    type=SECONDS,
    default=_DEMO.spacing_seconds,
    show_default=True,
    help="Seconds from one arrival to the next.",
)
@click.option(
    "--upload",
    "upload_rate",
    type=RATE,
    metavar="RATE",
    help="Upload cap of each viewer, such as 1Mbps.  [default: the film's bit rate]",
)
@click.option(
    "--picker",
    type=click.Choice(sorted(picker_names())),
    default=_DEMO.picker,
    show_default=True,
    help="Which piece viewers ask for next.",
)
@click.option(
    "--behaviour",
    type=_behaviours,
    default=str(_DEMO.behaviour),
    show_default=True,
    help="When viewers leave.",
)
@click.option(
    "--seed/--no-seed", default=_DEMO.seed, show_default=True, help="Seed besides serving, or not."
)
@click.option(
    "--duration",
    "duration_seconds",
    type=SECONDS,
    default=_FILM.duration_seconds,
    show_default=True,
    help="Length of the film that is made.",
)
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=_DEMO.folder,
    show_default=True,
    help="Where the run keeps its files.",
)
@click.option("--keep", is_flag=True, help="Keep the run's files: stores, films, logs.")
@_json
def demo_command(
    film: Path | None, duration_seconds: float, behaviour: str, as_json: bool, **options: Any
) -> None:
    """Put a film on a server, and let viewers watch it.

    Real programs, real sockets. Ends with the figures as one line of JSON. Succeeds only if no
    viewer stalled, every film is bit-identical, every frame was decoded and nobody sent more than
    its cap.

    \b
    Example:
      toast-lab demo --viewers 20 --upload 1Mbps --picker in-order
    """
    settings = DemoSettings(behaviour=Behaviour(behaviour), **options)
    notes = Console(stderr=True)

    def say(line: str) -> None:
        if not as_json:
            notes.print(line, highlight=False, soft_wrap=True)

    interrupt_on_sigterm()
    if film is None:
        spec = FilmSpec(duration_seconds=duration_seconds)
        film = _with_bar(notes, "making a film", lambda tell: cached_film(_FILMS, spec, tell))
    demo = Demo(film, settings, say)
    say(
        f"{film.name}: {format_bytes(demo.film_bytes)}, {format_rate(demo.bit_rate)}; "
        f"upload caps {format_rate(demo.upload_rate)}"
    )
    try:
        figures = asyncio.run(_run_demo(demo, None if as_json else notes))
    except asyncio.CancelledError:  # by SIGTERM
        raise KeyboardInterrupt from None
    if not as_json:
        show_results(demo, figures, Console())
    print_json(figures)
    if wrong := failures(figures):
        raise LabError(f"the run did not show what it must: {', '.join(wrong)}")


@cli.command("film")
@click.argument("out", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--duration",
    "duration_seconds",
    type=SECONDS,
    default=_FILM.duration_seconds,
    show_default=True,
    help="Its length.",
)
@click.option(
    "--rate",
    "bit_rate",
    type=RATE,
    default=_FILM.bit_rate,
    help="Bit rate of the file.  [default: 2Mbps]",
)
@click.option("--width", type=int, default=_FILM.width, show_default=True, help="Pixels.")
@click.option("--height", type=int, default=_FILM.height, show_default=True, help="Pixels.")
@click.option("--fps", type=int, default=_FILM.fps, show_default=True, help="Pictures per second.")
@click.option(
    "--faststart/--no-faststart",
    default=_FILM.faststart,
    show_default=True,
    help="Index in front of the film, or behind it.",
)
@click.option(
    "--random-seed", "seed", type=int, default=_FILM.seed, help="Another seed, another film."
)
@_json
def film_command(out: Path, as_json: bool, **options: Any) -> None:
    """Make a film with a clock in its picture and a climbing tone.

    Writes it to OUT: MP4, H.264 and AAC.

    \b
    Example:
      toast-lab film test.mp4 --duration 5min --rate 4Mbps
    """
    spec = FilmSpec(**options)
    interrupt_on_sigterm()
    console = Console(stderr=True)
    _with_bar(console, out.name, lambda tell: make_film(out, spec, tell), quiet=as_json)
    size = out.stat().st_size
    if as_json:
        print_json({"event": "made", "path": str(out), "bytes": size, **asdict(spec)})
    else:
        click.echo(f"{out}: {format_bytes(size)}, {format_rate(size / spec.duration_seconds)}")


@cli.command("bound")
@click.option(
    "--viewers",
    type=click.IntRange(1, 10_000),
    default=_DEMO.viewers,
    show_default=True,
    help="How many watch.",
)
@click.option(
    "--spacing",
    type=SECONDS,
    default=_DEMO.spacing_seconds,
    show_default=True,
    help="Seconds from one arrival to the next.",
)
@click.option(
    "--duration",
    type=SECONDS,
    default=_FILM.duration_seconds,
    show_default=True,
    help="Length of the film.",
)
@click.option(
    "--rate", type=RATE, default=_FILM.bit_rate, help="Bit rate of the film.  [default: 2Mbps]"
)
@click.option("--upload", type=RATE, help="Upload cap of each.  [default: the film's rate]")
@click.option("--download", type=RATE, help="Download cap of each.  [default: none]")
@click.option(
    "--behaviour",
    type=_behaviours,
    default=str(_DEMO.behaviour),
    show_default=True,
    help="When viewers leave.",
)
@click.option("--end", type=SECONDS, help="End of the run, for seeding viewers.")
@click.option(
    "--pieces",
    type=click.IntRange(1, 20_000),
    default=200,
    show_default=True,
    help="How finely the film is cut.",
)
@_json
def bound_command(
    *,
    viewers: int,
    spacing: float,
    duration: float,
    rate: float,
    upload: float | None,
    download: float | None,
    behaviour: str,
    end: float | None,
    pieces: int,
    as_json: bool,
) -> None:
    """The most that peers could deliver, whatever they do.

    \b
    Example:
      toast-lab bound --viewers 300 --spacing 36 --duration 1h --behaviour seeding --end 4h
    """
    plan = ViewerPlan(
        arrival_seconds=0.0,
        upload_rate=rate if upload is None else upload,
        download_rate=download,
        behaviour=Behaviour(behaviour),
    )
    scenario = FluidScenario(
        film_bytes=max(1, round(rate * duration)),
        duration_seconds=duration,
        viewers=evenly_spaced(viewers, spacing, plan),
        pieces=pieces,
        end_seconds=end,
    )
    value = offload_bound(scenario)
    if as_json:
        print_json({"bound": round(value, 6), "viewers": viewers})
    else:
        click.echo(f"{value:.4f}")


@cli.command("decode")
@click.argument("url")
@_json
def decode_command(url: str, as_json: bool) -> None:
    """Decode the film at URL in its own time, every frame of it.

    As a player would, but it counts what a player passes over in silence.

    \b
    Example:
      toast-lab decode http://127.0.0.1:8080/titles/film/content
    """
    result: DecodeResult = decode_in_real_time(url)
    if as_json:
        print_json({"event": "decoded", **asdict(result)})
    else:
        click.echo(
            f"{result.frames} pictures, {result.errors} errors, "
            f"halted for {result.halt_seconds:g} s, "
            f"first frame after {result.first_frame_seconds:g} s"
        )
    if result.errors:
        raise LabError(f"{result.errors} errors while decoding {url}")


@cli.command("evidence")
@click.option(
    "--only",
    "names",
    multiple=True,
    metavar="CELL",
    help="This one alone; may be given more than once.",
)
@click.option("--again", is_flag=True, help="Also what was obtained from this commit already.")
@click.option("--list", "only_list", is_flag=True, help="Run nothing; tell what is known.")
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=_EVIDENCE,
    show_default=True,
    help="Where results are kept, one file each.",
)
@_json
def evidence_command(
    *, names: tuple[str, ...], again: bool, only_list: bool, folder: Path, as_json: bool
) -> None:
    """Obtain everything that the project must show, in full size.

    Takes about twenty-five minutes. A result is kept, good or bad, for the commit that it was
    obtained from; so this can be interrupted and resumed. Succeeds only if all of it holds.

    \b
    Example:
      toast-lab evidence --only demo --only interop
    """
    interrupt_on_sigterm()
    root = checkout()
    evidence = Evidence(folder.absolute(), root, commit_of(root), CELLS)
    cells = evidence.select(names)
    results = {cell.name: None if again else evidence.known(cell) for cell in cells}
    notes = Console(stderr=True, quiet=as_json)
    if not only_list:
        try:
            asyncio.run(_obtain(evidence, cells, results, notes))
        except asyncio.CancelledError:  # by SIGTERM
            raise KeyboardInterrupt from None
    if as_json:
        found = [
            {"cell": cell.name, "shows": cell.shows, "held": result.held if result else None}
            | (asdict(result) if result else {})
            for cell in cells
            for result in (results[cell.name],)
        ]
        print_json({"held": all(cell["held"] for cell in found), "cells": found})
    else:
        show_evidence(cells, results, Console())
    missing = [name for name, result in results.items() if result is None or not result.held]
    if missing and not only_list:
        raise LabError(f"this does not hold: {', '.join(missing)}")


async def _obtain(
    evidence: Evidence,
    cells: tuple[Cell, ...],
    results: dict[str, Result | None],
    notes: Console,
) -> None:
    """Fill in the results that are missing, one after the other: they need the machine."""
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    for cell in cells:
        if results[cell.name] is not None:
            continue
        with notes.status(f"{cell.name}: {cell.shows}"):
            result = results[cell.name] = await evidence.obtain(cell)
        verdict = "holds" if result.held else f"fails: {'; '.join(result.wrong)}"
        notes.print(f"{cell.name}: {verdict} ({result.seconds:.0f} s)", highlight=False)


async def _run_demo(demo: Demo, console: Console | None) -> dict[str, Any]:
    task = asyncio.current_task()
    assert task is not None
    # Ctrl-C cancels this task by itself (asyncio.run); SIGTERM must clean up just the same.
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    if console is None:
        return await demo.run()
    picture = asyncio.create_task(follow(demo, console))
    try:
        return await demo.run()
    finally:
        picture.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await picture


def _with_bar(
    console: Console,
    what: str,
    make: Callable[[Callable[[float], None]], Path],
    *,
    quiet: bool = False,
) -> Path:
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=quiet) as bar:
        task = bar.add_task(what, total=1.0)
        return make(lambda share: bar.update(task, completed=share))


for _command in SWARM_COMMANDS:
    cli.add_command(_command)


def main() -> NoReturn:
    """Run the command line."""
    run_cli(cli)


if __name__ == "__main__":
    main()
