"""What people see of runs and figures on a terminal."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from experiments.figures.agreement import Agreement
from experiments.figures.figure import Claim, Verdict
from experiments.figures.results import CellResults, Results
from experiments.swarms.result import RunResult
from toast.common.units import format_bytes

__all__ = ["COLUMNS", "cell_row", "show_agreement", "show_cells", "show_claims", "show_run"]

COLUMNS = (
    "cell",
    "offload",
    "bound",
    "efficiency",
    "copies",
    "stalls",
    "start p50",
    "p95",
    "waste",
    "regret",
    "traffic",
    "seeds",
)
_NARROW = ("cell", "offload", "bound", "efficiency", "stalls", "seeds")
"""What stands in a table where there is no room for more."""
_STYLES = {True: "green", False: "bold red", None: "yellow"}


def show_run(result: RunResult, console: Console) -> None:
    """One run."""
    bound = f"of at most {result.bound:.1%}"
    if result.efficiency is not None:
        bound += f", efficiency {result.efficiency:.1%}"
    lines = {
        "offload": f"[bold]{result.offload:.1%}[/bold] {bound}",
        "operator": f"{format_bytes(result.operator_bytes)}, {result.copies:.2f} copies of the film"
        f" (HTTP {format_bytes(result.operator_http_bytes)},"
        f" seed {format_bytes(result.operator_seed_bytes)})",
        "peers": f"{format_bytes(result.peer_bytes)}, waste {_share(result.waste)},"
        f" regret {format_bytes(result.regret_bytes)}",
        "traffic": f"{format_bytes(result.total_bytes)} sent by everyone",
        "viewers": f"{result.viewers}; {result.viewers_stalled} stalled,"
        f" {result.stalls} times, {result.stall_seconds:.1f} s in all",
        "start": f"p50 {_seconds(result.start_seconds_p50)},"
        f" p95 {_seconds(result.start_seconds_p95)}",
        "upload": f"{_share(result.upload_used)} used;"
        f" caps {'respected' if result.upload_cap_respected else '[bold red]broken[/bold red]'}",
        "run": f"{result.wall_seconds:.1f} s, processor {result.cpu_seconds:.1f} s"
        f"{' (compiled)' if result.compiled else ''},"
        f" memory {format_bytes(result.peak_memory_bytes)}",
    }
    table = Table(box=None, pad_edge=False, show_header=False)
    for name, line in lines.items():
        table.add_row(name, line)
    for note in result.notes:
        table.add_row("note", Text(note))
    console.print(table)


def cell_row(cell: CellResults) -> tuple[str, ...]:
    """A cell under `COLUMNS`: means over its seeds, the offload with its interval."""
    offload = cell.estimate("offload")
    interval = f" ± {100 * offload.half_width:.1f}" if offload.half_width else ""

    def mean(field: str) -> float | None:
        return cell.estimate(field).mean if cell.values(field) else None

    return (
        cell.name,
        f"{100 * offload.mean:.1f}{interval} %",
        _share(mean("bound")),
        _share(mean("efficiency")),
        _number(mean("copies")),
        f"{mean('stalls') or 0:g}",
        _seconds(mean("start_seconds_p50")),
        _seconds(mean("start_seconds_p95")),
        _share(mean("waste")),
        format_bytes(mean("regret_bytes") or 0.0),
        format_bytes(mean("total_bytes") or 0.0),
        str(offload.seeds),
    )


def show_cells(results: Results, console: Console) -> None:
    """Every cell of a figure."""
    shown = [n for n, name in enumerate(COLUMNS) if console.width >= 120 or name in _NARROW]
    table = Table(box=None, pad_edge=False)
    for n in shown:
        _add_column(table, COLUMNS[n], of_numbers=n > 0)
    for cell in results.cells:
        row = cell_row(cell)
        table.add_row(*(row[n] for n in shown))
    console.print(table)


def show_claims(claims: Sequence[tuple[Claim, Verdict]], console: Console) -> None:
    """What the source says, and whether it was seen."""
    table = Table(box=None, pad_edge=False)
    table.add_column("the source says", overflow="fold", ratio=5)
    table.add_column("seen", no_wrap=True)
    table.add_column("number", overflow="fold", ratio=4)
    for claim, verdict in claims:
        label = Text(verdict.label, _STYLES[verdict.reproduced])
        table.add_row(Text(claim.text), label, Text(verdict.words))
    console.print(table)


def show_agreement(agreement: Agreement, console: Console) -> None:
    """Simulator beside real swarm."""
    table = Table(box=None, pad_edge=False)
    for nth, heading in enumerate(("cell", "simulated", "real", "points")):
        _add_column(table, heading, of_numbers=nth > 0)
    for cell in agreement.cells:
        shares = (_share(cell.simulated.mean), _share(cell.real.mean))
        table.add_row(f"{cell.scale} {cell.cell}", *shares, f"{100 * cell.difference:+.1f}")
    console.print(table)
    for ranking in agreement.rankings:
        label = "[green]same[/green]" if ranking.is_same else "[bold red]another[/bold red]"
        orders = f"{' > '.join(ranking.simulated)}; real: {' > '.join(ranking.real)}"
        console.print(f"{ranking.case}: {label} ranking: {orders}", highlight=False)
    worst = agreement.worst
    if worst is not None:
        words = f"farthest apart: {worst.cell}, {100 * worst.difference:+.1f} points"
        console.print(words, highlight=False)


def _add_column(table: Table, heading: str, *, of_numbers: bool) -> None:
    """Where there is little room, names go on in another line: what is cut off tells nothing."""
    if of_numbers:
        table.add_column(heading, justify="right", no_wrap=True)
    else:
        table.add_column(heading, overflow="fold")


def _share(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f} %"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _seconds(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{1000 * value:.0f} ms" if value < 1 else f"{value:.2f} s"
