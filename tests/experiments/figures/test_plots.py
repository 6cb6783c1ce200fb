"""Pictures: that every figure can be drawn, and what is in it."""

import io
import sys

import pytest
from PIL import Image

from experiments.errors import LabError
from experiments.figures.catalog import FIGURES
from experiments.figures.plots import _columns, plot_figure, plot_load
from experiments.figures.results import CellResults, Results


@pytest.mark.slow
@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_can_be_drawn(name, results_of):
    picture = Image.open(io.BytesIO(plot_figure(FIGURES[name], results_of(name))))
    assert picture.width > 900
    assert colours(picture) >= (3 if name == "5.4" else 4 if name != "5.7" else 2)


def test_a_legend_has_no_more_columns_than_fit():
    assert _columns(["bound", "hybrid", "in-order", "beta", "rarest-first"]) == 5
    long = ["bound", "all watch to the end", "20 % leave", "20 % jump", "20 % leave, 20 % jump"]
    assert _columns(long) == 3
    assert _columns(["x" * 200, "y" * 200]) == 1


@pytest.mark.slow
def test_the_same_results_are_the_same_file_and_in_the_dark_another(results_of):
    figure, results = FIGURES["5.7"], results_of("5.7")
    light = plot_figure(figure, results)
    dark = plot_figure(figure, results, dark=True)
    assert light == plot_figure(figure, results)
    corner = [Image.open(io.BytesIO(png)).convert("L").getpixel((0, 0)) for png in (light, dark)]
    assert corner[0] > 250
    assert corner[1] < 50


@pytest.mark.slow
@pytest.mark.parametrize(("name", "series"), [("5.3", 4), ("5.4", 3)])
def test_the_load_over_time_can_be_drawn(name, series, results_of):
    picture = Image.open(io.BytesIO(plot_load(FIGURES[name], results_of(name))))
    assert colours(picture) >= series


def colours(picture):
    """How many colours a picture has much of, greys apart."""
    found = picture.convert("RGB").getcolors(1 << 24)
    return sum(count > 40 and max(rgb) - min(rgb) > 40 for count, rgb in found)


def test_nothing_is_no_picture():
    with pytest.raises(LabError, match=r"5\.3: there is no result"):
        plot_figure(FIGURES["5.3"], Results([]))
    with pytest.raises(LabError, match=r"5\.3: no run has told its load"):
        plot_load(FIGURES["5.3"], Results([CellResults("x", {}, {})]))


def test_without_matplotlib_the_error_says_what_to_install(results_of, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(LabError, match=r"pip install 'toast-vod\[lab\]'"):
        plot_figure(FIGURES["5.7"], results_of("5.7"))
