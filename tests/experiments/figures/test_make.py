"""Figures as files: pictures, and data."""

import json

import pytest

from experiments.errors import LabError
from experiments.figures.catalog import FIGURES
from experiments.figures.make import sweep_name, write_figure
from experiments.figures.results import Results

PLACE = {"name": "5.3", "engine": "sim", "scale": "quick"}


def test_a_sweeps_name_is_the_name_of_one_folder():
    assert sweep_name("5.3", []) == "5.3"
    assert sweep_name("5.3", ["film.file=../x y"]) == "5.3,film.file=..-x-y"


@pytest.mark.slow
def test_a_picture_and_its_data_are_written(tmp_path, results_of):
    data, picture = write_figure(tmp_path, FIGURES["5.3"], results_of("5.3"), **PLACE)
    assert picture.name == "figure-5.3-sim-quick.png"
    assert picture.read_bytes().startswith(b"\x89PNG")
    told = json.loads(data.read_text())
    assert len(told["cells"]) == 12
    cell = told["cells"][-1]
    assert cell["cell"] == "hybrid-2mbps-streaming"
    assert cell["offload"] == pytest.approx(0.89, abs=0.01)
    assert cell["seeds"] == [1, 2, 3]
    assert len(told["claims"]) == len(FIGURES["5.3"].claims)
    assert {claim["reproduced"] for claim in told["claims"]} <= {True, False, None}


def test_without_results_there_is_data_alone(tmp_path):
    (data,) = write_figure(tmp_path, FIGURES["5.3"], Results([]), **PLACE)
    told = json.loads(data.read_text())
    assert told["cells"] == []
    assert {claim["reproduced"] for claim in told["claims"]} == {None}


def test_a_folder_that_is_a_file(tmp_path):
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(LabError, match="cannot be written"):
        write_figure(file, FIGURES["5.3"], Results([]), **PLACE)
