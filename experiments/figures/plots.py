"""Figures as pictures: bars or lines with 95 % intervals, and the bound above them."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from itertools import cycle
from textwrap import fill
from typing import Any, Final

import numpy as np

from experiments.errors import LabError
from experiments.figures.figure import Figure
from experiments.figures.results import CellResults, Results

__all__ = ["plot_figure", "plot_load"]

# Colours that people of every colour vision tell apart (Okabe and Ito), one per picker everywhere.
_COLOURS: Final = {
    "rarest-first": "#E69F00",
    "in-order": "#56B4E9",
    "beta": "#009E73",
    "hybrid": "#D55E00",
}
_OTHERS: Final = (
    *("#0072B2", "#CC79A7", "#F0E442", "#999999"),
    *("#E69F00", "#56B4E9", "#009E73", "#D55E00"),
)
_SIZE: Final = (7.6, 4.2)
_LETTERS: Final = 75
"""So many fit beside one another under a picture of this width."""

_AXES: Final = {
    "range": "in-order range, minutes of the source's hour",
    "offload": "offload, %",
    "total_bytes": "sent by everyone, GB",
    "streams": "streams, of which none starves",
    "incidents": "starvation incidents",
    "starved_mean_seconds": "mean starvation, seconds",
    "starved_max_seconds": "longest starvation, seconds",
    "response_p99_seconds": "99th percentile of a read's time, seconds",
}
_MOST_COLUMNS: Final = 5
_LINE_LETTERS: Final = 84  # of a legend in a picture of this width
_KEY_LETTERS: Final = 8  # what the sign before a label takes
_SCALES: Final = {"offload": 100.0, "total_bytes": 1e-9}


def plot_figure(figure: Figure, results: Results, *, dark: bool = False) -> bytes:
    """A figure as PNG.

    Raises:
        LabError: there is nothing to plot, or Matplotlib is not installed.
    """
    if not results.cells:
        raise LabError(f"figure {figure.name}: there is no result to plot")
    with _canvas(dark=dark) as (canvas, axes):
        (_draw_lines if figure.lines else _draw_bars)(axes, figure, results)
        axes.set_title(
            f"{figure.name}: {figure.title}" if figure.name[0].isdigit() else figure.title
        )
        axes.set_ylabel(_AXES.get(figure.field, figure.field))
        axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
        axes.grid(axis="y", alpha=0.3)
        axes.set_axisbelow(True)
        columns = _columns(axes.get_legend_handles_labels()[1])
        canvas.legend(loc="outside lower center", ncols=columns, frameon=False)
        return _png(canvas)


def plot_load(figure: Figure, results: Results, *, dark: bool = False) -> bytes:
    """What the operator sent over time in each cell of a figure, of its first seed, as PNG.

    Raises:
        LabError: there is nothing to plot, or Matplotlib is not installed.
    """
    cells = [cell for cell in results.cells if len(_load(cell)[0]) > 1]
    if not cells:
        raise LabError(f"figure {figure.name}: no run has told its load")
    if figure.lines:
        cells = _ends(figure, cells)
    places = [""] if figure.lines else list(dict.fromkeys(_place(figure, c) for c in cells))
    names = {cell.name: _line_name(figure, cell) for cell in cells}
    colours = _choose_colours(names.values())
    # Wide below narrow: a line that lies on another does not hide it.
    widths = dict(zip(colours, np.linspace(1 + 0.8 * len(colours), 1.2, len(colours)), strict=True))
    end = max(_load(cell)[0][-1] for cell in cells)
    unit, length = ("minutes", 60.0) if end > 180 else ("seconds", 1.0)
    columns = min(3, len(places))
    rows = -(-len(places) // columns)
    with _canvas((_SIZE[0], 1.2 + 1.9 * rows), dark=dark, shape=(rows, columns)) as (canvas, grid):
        panels = np.atleast_1d(grid).ravel()
        shown: dict[str, Any] = {}
        for cell in cells:
            times, rates = _load(cell)
            name = names[cell.name]
            axes = panels[0 if figure.lines else places.index(_place(figure, cell))]
            (shown[name],) = axes.plot(
                times / length, rates * 8 / 1e6, color=colours[name], linewidth=widths[name]
            )
        for axes, place in zip(panels, places, strict=False):
            axes.set_title(place, fontsize=9)
            axes.set_ylim(bottom=0)
            axes.grid(alpha=0.3)
        for axes in panels[len(places) :]:
            axes.set_visible(False)
        canvas.supxlabel(unit, fontsize=9)
        canvas.supylabel("operator's load, Mb/s", fontsize=9)
        canvas.legend(
            shown.values(), shown, loc="outside upper center", ncols=5, frameon=False, fontsize=8
        )
        return _png(canvas)


def _columns(labels: Sequence[str]) -> int:
    """Of a legend below the axes: as many as fit, each as wide as its longest label."""
    for columns in range(min(_MOST_COLUMNS, len(labels)), 1, -1):
        widths = [max(map(len, labels[n::columns])) + _KEY_LETTERS for n in range(columns)]
        if sum(widths) <= _LINE_LETTERS:
            return columns
    return 1


@contextmanager
def _canvas(
    size: tuple[float, float] = _SIZE, *, dark: bool, shape: tuple[int, int] = (1, 1)
) -> Iterator[tuple[Any, Any]]:
    try:
        from matplotlib import rc_context, style  # noqa: PLC0415 - slow, and an extra
        from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415
        from matplotlib.figure import Figure as Canvas  # noqa: PLC0415
    except ImportError as error:
        raise LabError("pictures need Matplotlib: pip install 'toast-vod[lab]'") from error
    with rc_context(), style.context("dark_background" if dark else "default"):
        canvas = Canvas(figsize=size, layout="constrained")
        FigureCanvasAgg(canvas)
        if dark:
            canvas.set_facecolor("#16181c")
        grid = canvas.subplots(*shape, sharey=True)
        for axes in np.atleast_1d(grid).ravel():
            axes.spines[["top", "right"]].set_visible(False)
            if dark:
                axes.set_facecolor("#16181c")
        yield canvas, grid


def _png(canvas: Any) -> bytes:
    out = BytesIO()
    # No date and no version: the same results make the same file.
    canvas.savefig(out, format="png", dpi=130, metadata={"Software": None})
    return out.getvalue()


def _draw_bars(axes: Any, figure: Figure, results: Results) -> None:
    places = list(dict.fromkeys(_place(figure, cell) for cell in results.cells))
    colours = _colours(figure, results.cells)
    width = 0.8 / len(colours)
    scale = _SCALES.get(figure.field, 1.0)
    level = figure.level or ("bound" if figure.field == "offload" else "")
    bounds: list[tuple[float, float]] = []
    for nth, (series, colour) in enumerate(colours.items()):
        cells = [cell for cell in results.cells if cell.axes[figure.series] == series]
        values = [cell.estimate(figure.field) for cell in cells]
        at = [places.index(_place(figure, c)) + (nth + 0.5) * width - 0.4 for c in cells]
        axes.bar(
            at,
            [value.mean * scale for value in values],
            width * 0.92,
            yerr=[value.half_width * scale for value in values],
            color=colour,
            label=series,
            capsize=2,
            error_kw={"elinewidth": 1},
            ecolor=axes.xaxis.label.get_color(),
        )
        if level:
            bounds += [(x, cell.estimate(level).mean) for x, cell in zip(at, cells, strict=True)]
    if level:
        axes.hlines(
            [bound * scale for _, bound in bounds],
            [x - width / 2 for x, _ in bounds],
            [x + width / 2 for x, _ in bounds],
            colors=axes.xaxis.label.get_color(),
            linestyles="dashed",
            linewidth=1,
            label=level.replace("_streams", ""),
        )
    letters = _LETTERS // len(places)
    axes.set_xticks(range(len(places)), [_wrapped(place, letters) for place in places])


def _wrapped(label: str, letters: int) -> str:
    """In lines of so many letters at most, where that can be done between words."""
    if len(label) <= letters:
        return label
    parts = [fill(part, max(1, letters), break_long_words=False) for part in label.split(", ")]
    return "\n".join(parts)


def _draw_lines(axes: Any, figure: Figure, results: Results) -> None:
    colours = _colours(figure, results.cells)
    scale = _SCALES.get(figure.field, 1.0)
    (axis,) = figure.x
    for series, colour in colours.items():
        cells = [cell for cell in results.cells if cell.axes[figure.series] == series]
        line = sorted((float(cell.axes[axis]), cell) for cell in cells if axis in cell.axes)
        if line:
            values = [cell.estimate(figure.field) for _, cell in line]
            axes.errorbar(
                [x for x, _ in line],
                [value.mean * scale for value in values],
                yerr=[value.half_width * scale for value in values],
                color=colour,
                label=series,
                marker="o",
                markersize=4,
                capsize=2,
            )
        for cell in cells:
            if axis not in cell.axes:
                level = cell.estimate(figure.field)
                axes.axhline(level.mean * scale, color=colour, label=series, linestyle="-.")
                low, high = level.mean - level.half_width, level.mean + level.half_width
                axes.axhspan(low * scale, high * scale, color=colour, alpha=0.15, linewidth=0)
    if figure.field == "offload":
        bound = float(np.mean([cell.estimate("bound").mean for cell in results.cells]))
        ink = axes.xaxis.label.get_color()
        axes.axhline(bound * scale, color=ink, linestyle="dashed", linewidth=1, label="bound")
    axes.set_xlabel(_AXES.get(axis, axis))
    axes.set_xticks(sorted({float(c.axes[axis]) for c in results.cells if axis in c.axes}))


def _place(figure: Figure, cell: CellResults) -> str:
    return ", ".join(cell.axes[axis] for axis in figure.x if axis in cell.axes)


def _colours(figure: Figure, cells: Sequence[CellResults]) -> dict[str, str]:
    """The colour of each series, in the order in which they come."""
    return _choose_colours(cell.axes[figure.series] for cell in cells)


def _choose_colours(names: Iterable[str]) -> dict[str, str]:
    others = cycle(_OTHERS)
    return {name: _COLOURS.get(name) or next(others) for name in dict.fromkeys(names)}


def _ends(figure: Figure, cells: Sequence[CellResults]) -> list[CellResults]:
    """Of a line its two ends, and all levels: more lines than these say less."""
    (axis,) = figure.x
    line = sorted((c for c in cells if axis in c.axes), key=lambda c: float(c.axes[axis]))
    return [*line[:1], *line[-1:], *(cell for cell in cells if axis not in cell.axes)]


def _line_name(figure: Figure, cell: CellResults) -> str:
    series = cell.axes.get(figure.series, cell.name)
    return f"{series} {_place(figure, cell)}".strip() if figure.lines else series


def _load(cell: CellResults) -> tuple[Any, Any]:
    """Times (seconds) and the operator's rate up to each (bytes/second), of the first seed.

    Over stretches of a thirtieth of the run, since pieces come in gulps.
    """
    run = cell.runs[min(cell.runs)]
    samples = np.array(run.load, dtype=np.float64).reshape(-1, 4)
    if len(samples) < 2 or samples[-1, 0] <= samples[0, 0]:
        return np.empty(0), np.empty(0)
    edges = np.linspace(samples[0, 0], samples[-1, 0], min(31, len(samples)))
    sent = np.interp(edges, samples[:, 0], samples[:, 1] + samples[:, 2])
    return (edges[1:] + edges[:-1]) / 2, np.diff(sent) / np.diff(edges)
