"""A folder of results as one page: figures, cells, claims, loads and agreement.

It needs no script, no other file and nothing from the net; it follows the reader's choice of light
or dark, and in a narrow window tables scroll by themselves.
"""

import base64
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from experiments.errors import LabError
from experiments.figures.agreement import Agreement, compare
from experiments.figures.catalog import KNOWN
from experiments.figures.figure import Claim, Figure, Verdict
from experiments.figures.make import figure_tasks, judge_all
from experiments.figures.plots import plot_figure, plot_load
from experiments.figures.records import Record, Records
from experiments.figures.results import CellResults, Results
from experiments.figures.tables import COLUMNS, cell_row

__all__ = ["Group", "group_records", "make_report"]

_STYLE: Final = """
:root{color-scheme:light dark;--ink:#1b1d21;--paper:#fff;--line:#d8dbe0;--soft:#5c636d;
--yes:#12703c;--no:#b3261e;--open:#8a5a00}
@media(prefers-color-scheme:dark){:root{--ink:#e6e8eb;--paper:#16181c;--line:#3a3f47;--soft:#a2a9b4;
--yes:#5fd08f;--no:#ff8a80;--open:#f0b95a}}
body{font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);
max-width:68rem;margin:0 auto;padding:1rem}
h1{line-height:1.2}h2{margin-top:3rem;border-top:1px solid var(--line);padding-top:1rem}
img{max-width:100%;height:auto}a{color:inherit}
.scroll{overflow-x:auto;margin:1rem 0}table{border-collapse:collapse;font-size:.875rem}
th,td{padding:.25rem .6rem;text-align:right;border-bottom:1px solid var(--line);white-space:nowrap}
th:first-child,td:first-child{text-align:left}
.claims th,.claims td{text-align:left;white-space:normal}.claims td:nth-child(2){white-space:nowrap}
.yes{color:var(--yes)}.no{color:var(--no)}.open{color:var(--open)}
.soft{color:var(--soft);font-size:.875rem}
"""
_CLASSES: Final = {True: "yes", False: "no", None: "open"}


@dataclass(frozen=True, slots=True)
class Group:
    """The results of one figure or sweep, by one engine at one scale.

    Attributes:
        sweep: name of the folder.
        engine: by name.
        scale: of the figure, or "-".
        figure: which one; None for a sweep of another kind.
        results: of its cells.
        left_out: results of scenarios that the figure no longer has.
        origins: how many results come from each commit.
    """

    sweep: str
    engine: str
    scale: str
    figure: Figure | None
    results: Results
    left_out: int
    origins: Counter[str]

    @property
    def title(self) -> str:
        """For its heading."""
        name = f"{self.sweep}: {self.figure.title}" if self.figure else self.sweep
        return f"{name} ({self.engine}, {self.scale})"


def group_records(records: Iterable[Record]) -> list[Group]:
    """Records by figure, engine and scale; figures in the order of the catalog."""
    groups: dict[tuple[str, str, str], list[Record]] = defaultdict(list)
    for record in records:
        groups[record.sweep, record.engine, record.scale].append(record)
    order = list(KNOWN)

    def place(entry: tuple[str, str, str]) -> tuple[int, str, str, str]:
        figure = entry[0].partition(",")[0]
        return (order.index(figure) if figure in order else len(order), *entry)

    return [_group(*key, groups[key]) for key in sorted(groups, key=place)]


def _group(sweep: str, engine: str, scale: str, records: Sequence[Record]) -> Group:
    name, _, changes = sweep.partition(",")
    figure = KNOWN.get(name)
    kept = list(records)
    if figure is not None and not changes:
        seeds = max(record.seed for record in records)
        tasks = figure_tasks(figure, engine, scale, seeds)
        now = {(task.cell.name, task.key) for task in tasks}
        kept = [record for record in records if (record.cell, record.key) in now]
    cells: dict[str, CellResults] = {}
    if figure is not None:
        # In the figure's order, whatever the folder's.
        cells = {c.name: CellResults(c.name, c.axes, {}) for c in figure.cells(scale)}
    runs: dict[str, dict[int, Record]] = defaultdict(dict)
    for record in kept:
        runs[record.cell][record.seed] = record
        cells.setdefault(record.cell, CellResults(record.cell, record.axes, {}))
    results = Results(
        CellResults(name, cell.axes, {seed: r.done.result for seed, r in runs[name].items()})
        for name, cell in cells.items()
    )
    origins = Counter(record.done.commit for record in kept)
    return Group(sweep, engine, scale, figure, results, len(records) - len(kept), origins)


def make_report(
    records: Records, tell: Callable[[int, int], None] = lambda _done, _all: None
) -> str:
    """The page of a folder of results.

    Args:
        records: the results.
        tell: is told how many of how many figures are drawn.

    Raises:
        LabError: there are none, or Matplotlib is not installed.
    """
    groups = [group for group in group_records(records) if group.results.cells]
    if not groups:
        raise LabError(f"there is no result in {records.folder}: run 'toast-lab figure' first")
    judged = [judge_all(g.figure, g.results) if g.figure else [] for g in groups]
    sections = []
    for nth, (group, claims) in enumerate(zip(groups, judged, strict=True)):
        tell(nth, len(groups))
        sections.append(_section(group, claims))
    agreement = compare(records)
    if agreement.cells:
        sections.append(_agreement(agreement))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>Swarms</title><style>{_STYLE}</style></head><body>\n"
        "<h1>Swarms: figures and claims</h1>\n"
        f"{_contents(groups, judged, agreement)}\n" + "\n".join(sections) + "\n</body></html>\n"
    )


def _contents(
    groups: Sequence[Group],
    judged: Sequence[Sequence[tuple[Claim, Verdict]]],
    agreement: Agreement,
) -> str:
    rows = []
    for group, claims in zip(groups, judged, strict=True):
        counts = Counter(verdict.reproduced for _, verdict in claims)
        link = f'<a href="#{_anchor(group)}">{escape(group.title)}</a>'
        rows.append([link, *(str(counts[seen]) if claims else "" for seen in (True, False, None))])
    if agreement.cells:
        rows.append(['<a href="#agreement">Simulator and real swarm</a>', "", "", ""])
    return _table(("figure", "reproduced", "not", "cannot tell"), rows)


def _section(group: Group, claims: Sequence[tuple[Claim, Verdict]]) -> str:
    parts = [f'<h2 id="{_anchor(group)}">{escape(group.title)}</h2>']
    figure = group.figure
    if figure is not None:
        parts.append(
            _picture(lambda dark: plot_figure(figure, group.results, dark=dark), figure.title)
        )
        if figure.note:
            parts.append(f"<p>{escape(figure.note)}</p>")
        rows = [
            [
                escape(claim.text),
                _word(verdict.label, seen=verdict.reproduced),
                escape(verdict.words),
            ]
            for claim, verdict in claims
        ]
        parts.append(_table(("the source says", "seen", "number"), rows, "claims"))
    cells = [[escape(text) for text in cell_row(cell)] for cell in group.results.cells]
    parts.append(_table(COLUMNS, cells))
    if figure is not None and any(
        len(run.load) > 1 for cell in group.results.cells for run in cell.runs.values()
    ):
        parts.append("<h3>The operator's load over time, first seed</h3>")
        parts.append(_picture(lambda dark: plot_load(figure, group.results, dark=dark), "load"))
    notes = dict.fromkeys(
        note for cell in group.results.cells for run in cell.runs.values() for note in run.notes
    )
    parts += [f'<p class="soft">{escape(note)}</p>' for note in notes]
    made = ", ".join(f"{commit} ({count})" for commit, count in group.origins.most_common())
    left = f" {group.left_out} results of older scenarios are left out." if group.left_out else ""
    parts.append(f'<p class="soft">Runs by commit: {escape(made)}.{left}</p>')
    return "\n".join(parts)


def _agreement(agreement: Agreement) -> str:
    worst = agreement.worst
    assert worst is not None, "asked for where there is something to compare"
    farthest = f"farthest apart: {worst.cell}, {100 * worst.difference:+.1f} points"
    rows = [
        [
            escape(f"{cell.scale} {cell.cell}"),
            _percent(cell.simulated.mean),
            _percent(cell.real.mean),
            f"{100 * cell.difference:+.1f}",
            f"{cell.simulated.seeds} / {cell.real.seeds}",
        ]
        for cell in agreement.cells
    ]
    ranks = [
        [
            escape(ranking.case),
            escape(" > ".join(ranking.simulated)),
            escape(" > ".join(ranking.real)),
            _word("yes" if ranking.is_same else "no", seen=ranking.is_same),
        ]
        for ranking in agreement.rankings
    ]
    parts = [
        '<h2 id="agreement">Simulator and real swarm</h2>',
        f"<p>{len(agreement.cells)} cells; {escape(farthest)}.</p>",
        _table(("cell", "simulated", "real", "points", "seeds"), rows),
    ]
    if ranks:
        heads = ("pickers, best first", "simulated", "real", "same")
        parts.append(_table(heads, ranks, "claims"))
    return "\n".join(parts)


def _picture(draw: Callable[[bool], bytes], words: str) -> str:
    light, dark = (base64.b64encode(draw(each)).decode() for each in (False, True))
    return (
        '<picture><source media="(prefers-color-scheme: dark)" '
        f'srcset="data:image/png;base64,{dark}">'
        f'<img alt="{escape(words)}" src="data:image/png;base64,{light}"></picture>'
    )


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], kind: str = "") -> str:
    head = "".join(f"<th>{escape(word)}</th>" for word in heads)
    body = "\n".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return (
        f'<div class="scroll"><table class="{kind}"><thead><tr>{head}</tr></thead>'
        f"<tbody>\n{body}\n</tbody></table></div>"
    )


def _word(text: str, *, seen: bool | None) -> str:
    return f'<span class="{_CLASSES[seen]}">{text}</span>'


def _anchor(group: Group) -> str:
    return escape(f"{group.sweep}-{group.engine}-{group.scale}".replace(" ", "-"))


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %"
