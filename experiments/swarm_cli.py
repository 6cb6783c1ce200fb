"""Commands of the swarm laboratory: `toast-lab swarm`, `figure`, `sweep`, `agreement`, `report`."""

import json
import os
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, Final

import click
from rich.console import Console

from experiments.arrays.against_figure import (
    AGAINST,
    check_against_options,
    make_against,
    show_against,
)
from experiments.arrays.confirm import confirm
from experiments.arrays.confirmed import show_confirmed
from experiments.arrays.make import (
    check_array_options,
    find_array_figures,
    make_array_figure,
    show_array_figure,
)
from experiments.arrays.make import summarise as summarise_array
from experiments.compiled.cli import compile_command
from experiments.compiled.loading import variables
from experiments.errors import LabError, ScenarioError
from experiments.figures.agreement import compare
from experiments.figures.catalog import find_figures
from experiments.figures.display import SweepDisplay
from experiments.figures.engines import ENGINES, MakeEngine, create_engine
from experiments.figures.figure import Figure
from experiments.figures.grid import grid_cells
from experiments.figures.jobs import Job, Runner, run_here
from experiments.figures.make import (
    figure_tasks,
    judge_all,
    summarise,
    sweep_name,
    write_figure,
)
from experiments.figures.records import Records
from experiments.figures.report import make_report
from experiments.figures.sweep import Sweep, Task, gather
from experiments.figures.tables import show_agreement, show_cells, show_claims, show_run
from experiments.figures.workers import CpuGate, run_in_processes, run_on_dask
from experiments.signals import interrupt_on_sigterm
from experiments.swarms.changes import with_changes
from experiments.swarms.presets import SCALES
from experiments.swarms.scenario import Scenario
from experiments.swarms.text import describe, read_scenario
from toast.common.cli import print_json
from toast.common.units import format_bytes

__all__ = ["SWARM_COMMANDS"]

_FOLDER: Final = Path("run/swarms")
_ARRAYS_FOLDER: Final = Path("run/arrays")
_SEEDS: Final = {"source": 10, "compressed": 10, "quick": 3}
_MOST_REAL_RUNS: Final = 4

_engine = click.option(
    "--engine",
    type=click.Choice(ENGINES),
    default="sim",
    show_default=True,
    help="Simulated viewers, or real ones.",
)
_set = click.option(
    "--set",
    "changes",
    multiple=True,
    metavar="FIELD=VALUE",
    help="Another value of a field, as docs/swarms.md names them; may be given more than once.",
)
_scale = click.option(
    "--scale",
    type=click.Choice(list(SCALES)),
    default="compressed",
    show_default=True,
    help="Which size of the source's scenario.",
)
_folder = click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=_FOLDER,
    show_default=True,
    help="Where results are kept, one file each.",
)
_file = click.argument(
    "file",
    metavar="[SCENARIO.toml]",
    required=False,
    type=click.Path(dir_okay=False, path_type=Path),
)
_instead = click.option(
    "--scale",
    type=click.Choice(list(SCALES)),
    help="The source's scenario in this size, instead of a file.",
)
_json = click.option("--json", "as_json", is_flag=True, help="One line of JSON, for programs.")


def _sweeping(command: Any) -> Any:
    """The options of what makes many runs."""
    options = (
        click.option(
            "--jobs",
            type=click.IntRange(1, 1024),
            help="Runs at once.  [default: one per core; real ones while the processor has room]",
        ),
        click.option("--dask", metavar="ADDRESS", help="Run on the workers of a Dask scheduler."),
        click.option("--again", is_flag=True, help="Also what there is a result of already."),
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.command("swarm")
@_file
@_instead
@_engine
@_set
@click.option(
    "--network",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="TOPOLOGY.toml",
    help="Real viewers in the hosts of an emulated network; the operator is in its host 'server'.",
)
@click.option("--backend", help="What emulates it; by default the first that can do all of it.")
@click.option("--congestion-control", help="TCP's, in every host; by default the machine's.")
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), help="Also write the result here."
)
@_json
def swarm_command(
    *,
    file: Path | None,
    scale: str | None,
    engine: str,
    changes: tuple[str, ...],
    network: Path | None,
    backend: str | None,
    congestion_control: str | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Let a swarm watch a film, once.

    The scenario is a file, or one of the source's in a size; docs/swarms.md has its fields. Ends
    with the figures, and the bound that no policy could have passed. With --network, docs/netem.md
    says what the file is; where it takes a kernel of its own, all of it runs in a guest.

    \b
    Example:
      toast-lab swarm --scale quick --set picker=beta --set links.upload_bps=1e6
    """
    interrupt_on_sigterm()
    scenario = with_changes(_scenario(file, scale), changes)
    job = Job("run", scenario.name, describe(scenario))
    notes = Console(stderr=True, quiet=as_json)
    make_engine: MakeEngine = partial(create_engine, engine)
    if network is not None:
        if engine != "real":
            raise ScenarioError("network: it is for real viewers: add --engine real")
        # It needs netlink and more, which nothing else here does.
        from experiments.real.on_network import engine_on  # noqa: PLC0415

        make_engine = partial(engine_on, network, backend, congestion_control)
    runner = run_here(make_engine)
    if engine == "sim" and (more := variables(_telling(notes))):
        # In a process of its own: this one has loaded much of the simulator as plain Python.
        runner = run_in_processes(make_engine, 1, variables=more)
    with (
        SweepDisplay(notes, 1, lines=True) as display,
        closing(runner([job], display.tell)) as all_,
    ):
        (outcome,) = all_
    if outcome.done is None:
        raise (LabError if outcome.is_possible else ScenarioError)(outcome.error)
    result = outcome.done.result
    if out is not None:
        _write_text(out, json.dumps(result.to_dict(), indent=1) + "\n")
    if as_json:
        print_json(result.to_dict())
    else:
        show_run(result, Console())


def _scenario(file: Path | None, scale: str | None) -> Scenario:
    if (file is None) == (scale is None):
        raise ScenarioError(f"give either a file or --scale {'|'.join(SCALES)}")
    return SCALES[scale] if scale is not None else read_scenario(file or Path())


@click.command("figure")
@click.argument("name", metavar="FIGURE")
@_engine
@_scale
@click.option(
    "--seeds",
    type=click.IntRange(1, 1000),
    help="Runs of each cell.  [default: 10; 3 at the quick scale; 1 with real viewers]",
)
@_set
@_sweeping
@_folder
@_json
def figure_command(
    *,
    name: str,
    engine: str,
    scale: str,
    seeds: int | None,
    changes: tuple[str, ...],
    folder: Path,
    as_json: bool,
    **how: Any,
) -> None:
    """Make a FIGURE of the source, such as 5.3; or all of the swarm's.

    3.2 to 4.7 are of disk arrays, "arrays" is all of those, and docs/arrays.md names more.

    Runs what there is no result of, and writes a picture and its data. Prints what the source says
    of the figure, and whether it was seen. Can be interrupted and resumed, also on another machine.

    \b
    Example:
      toast-lab figure 5.3 --scale quick
      toast-lab figure all --scale source --seeds 10
      toast-lab figure 4.2 --engine real --jobs 3
      toast-lab figure nginx --engine real
    """
    if name == AGAINST:
        check_against_options(engine, changes, how)
        interrupt_on_sigterm()
        into = _ARRAYS_FOLDER if folder == _FOLDER else folder
        notes = Console(stderr=True, quiet=as_json)
        compared = make_against(into, seeds=seeds or 1, jobs=how["jobs"], notes=notes)
        (print_json if as_json else show_against)(compared)
        return
    if array_figures := find_array_figures(name):
        check_array_options(name, engine, changes, how)
        into = _ARRAYS_FOLDER if folder == _FOLDER else folder
        if engine == "real":
            interrupt_on_sigterm()
            notes = Console(stderr=True, quiet=as_json)
            (figure,) = array_figures
            real = confirm(figure, into, seeds=seeds or 1, jobs=how["jobs"] or 1, notes=notes)
            print_json(real) if as_json else show_confirmed(real, Console())
            return
        _make_array_figures(array_figures, into, seeds or 10, how["jobs"], as_json=as_json)
        return
    figures = find_figures(name)
    seeds = seeds or (1 if engine == "real" else _SEEDS[scale])
    tasks = {figure.name: figure_tasks(figure, engine, scale, seeds, changes) for figure in figures}
    notes = Console(stderr=True, quiet=as_json)
    records = _open(folder, notes)
    every = [task for figure in figures for task in tasks[figure.name]]
    # All figures of the first seed, then of the next: there is something to see early.
    failed = _sweep(records, sorted(every, key=lambda task: task.seed), notes, engine, **how)
    told = []
    for figure in figures:
        results = gather(records, tasks[figure.name])
        place = {"name": sweep_name(figure.name, changes), "engine": engine, "scale": scale}
        written = write_figure(folder, figure, results, **place)
        told.append(summarise(figure, results, **place))
        if not as_json:
            _show(figure, written, results)
    if as_json:
        print_json(told)
    _complain(failed)


def _make_array_figures(
    figures: Sequence[Figure], folder: Path, seeds: int, jobs: int | None, *, as_json: bool
) -> None:
    interrupt_on_sigterm()
    notes = Console(stderr=True, quiet=as_json)
    told = []
    for figure in figures:
        results = make_array_figure(figure, folder, seeds=seeds, jobs=jobs, notes=notes)
        told.append(summarise_array(figure, results))
        if not as_json:
            show_array_figure(figure, results, Console())
    if as_json:
        print_json(told)


def _show(figure: Figure, written: Sequence[Path], results: Any) -> None:
    console = Console()
    console.rule(f"{figure.name}: {figure.title}")
    show_cells(results, console)
    show_claims(judge_all(figure, results), console)
    if figure.note:
        console.print(f"({figure.note})", highlight=False)
    for path in written:
        console.print(str(path), highlight=False, soft_wrap=True)


def _open(folder: Path, notes: Console) -> Records:
    records = Records(folder)
    for path in records.set_aside:
        notes.print(f"{path} could not be read and is set aside", highlight=False, soft_wrap=True)
    return records


def _sweep(
    records: Records,
    tasks: Sequence[Task],
    notes: Console,
    engine: str,
    *,
    jobs: int | None,
    dask: str | None,
    again: bool,
) -> list[str]:
    """Run what is missing of the tasks; what failed, in words."""
    interrupt_on_sigterm()
    sweep = Sweep(records, tasks, again=again)
    longest = max((task.cell.scenario.film.duration_seconds for task in tasks), default=0.0)
    if sweep.missing:
        runner = _runner(engine, jobs, dask, notes, settle_seconds=1.1 * longest)
        ready = len({task.key for task in tasks}) - len(sweep.missing)
        words = f"{len(sweep.missing)} runs to make, {ready} there"
        notes.print(words, highlight=False)
        with (
            SweepDisplay(notes, len(sweep.missing)) as display,
            closing(sweep.run(runner, display.tell)) as outcomes,
        ):
            for outcome in outcomes:
                display.ended(outcome)
    return [f"{failure.job.label}: {failure.error}" for failure in sweep.failures]


def _telling(notes: Console) -> Callable[[str], None]:
    return partial(notes.print, highlight=False, soft_wrap=True)


def _runner(
    engine: str, jobs: int | None, dask: str | None, notes: Console, *, settle_seconds: float
) -> Runner:
    make_engine = partial(create_engine, engine)
    if dask is not None:
        return run_on_dask(make_engine, dask)
    if engine == "real":
        if jobs is not None:  # whoever says how many knows the machine
            return run_in_processes(make_engine, jobs)
        return run_in_processes(make_engine, _MOST_REAL_RUNS, CpuGate(settle_seconds))
    jobs = jobs or os.cpu_count() or 1
    return run_in_processes(make_engine, jobs, variables=variables(_telling(notes)))


@click.command("sweep")
@_file
@_instead
@click.option(
    "--vary",
    "varied",
    multiple=True,
    required=True,
    metavar="FIELD=VALUE,...",
    help="Values of a field; given more than once, all combinations.",
)
@_engine
@click.option(
    "--seeds", type=click.IntRange(1, 1000), default=1, show_default=True, help="Runs of each cell."
)
@_set
@_sweeping
@_folder
@_json
def sweep_command(
    *,
    file: Path | None,
    scale: str | None,
    varied: tuple[str, ...],
    engine: str,
    seeds: int,
    changes: tuple[str, ...],
    folder: Path,
    as_json: bool,
    **how: Any,
) -> None:
    """Run a scenario with some of its fields in all combinations.

    Resumes as figures do; every combination is a cell with its mean over the seeds, which are
    counted from the scenario's random_seed on.

    \b
    Example:
      toast-lab sweep --scale quick --vary picker=hybrid,beta --vary upload_slots=2,4,8 --seeds 3
    """
    scenario = with_changes(_scenario(file, scale), changes)
    name, cells = f"sweep-{scenario.name}", grid_cells(scenario, varied)
    tasks = [
        Task(name, engine, scale or "own", cell, cell.scenario.random_seed + nth)
        for nth in range(seeds)
        for cell in cells
    ]
    notes = Console(stderr=True, quiet=as_json)
    records = _open(folder, notes)
    failed = _sweep(records, tasks, notes, engine, **how)
    results = gather(records, tasks)
    if as_json:
        print_json(results.to_list("offload"))
    else:
        show_cells(results, Console())
    _complain(failed)


@click.command("agreement")
@_folder
@_json
def agreement_command(*, folder: Path, as_json: bool) -> None:
    """Compare simulator and real swarm.

    The offload of every cell that both have run, the pickers' ranking, and the cell in which they
    are farthest apart.

    \b
    Example:
      toast-lab agreement --json
    """
    found = compare(_open(folder, Console(stderr=True, quiet=as_json)))
    if not found.cells:
        raise LabError(f"no cell in {folder} has results of both engines")
    if as_json:
        print_json(found.to_dict())
    else:
        show_agreement(found, Console())


@click.command("report")
@click.argument(
    "folder", default=_FOLDER, type=click.Path(exists=True, file_okay=False, path_type=Path)
)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("report.html"),
    show_default=True,
    help="The page.",
)
@_json
def report_command(*, folder: Path, out: Path, as_json: bool) -> None:
    """Write all results of a FOLDER as one page.

    Figures, cells, claims, the operator's load over time, and simulator beside real swarm. The page
    needs no other file. FOLDER is run/swarms if it is not given.

    \b
    Example:
      toast-lab report --out report.html
    """
    notes = Console(stderr=True, quiet=as_json)
    records = _open(folder, notes)
    with notes.status("drawing") as status:
        page = make_report(records, lambda done, of: status.update(f"drawing {done + 1} of {of}"))
    _write_text(out, page)
    if as_json:
        print_json({"event": "made", "path": str(out), "bytes": len(page.encode())})
    else:
        click.echo(f"{out}: {format_bytes(len(page.encode()))}")


def _complain(failed: Sequence[str]) -> None:
    if failed:
        runs = "one run" if len(failed) == 1 else f"{len(failed)} runs"
        raise LabError(f"{runs} failed: {failed[0]}")


def _write_text(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise LabError(f"{path} cannot be written: {error.strerror}") from error


SWARM_COMMANDS: Final = (
    swarm_command,
    figure_command,
    sweep_command,
    agreement_command,
    report_command,
    compile_command,
)
