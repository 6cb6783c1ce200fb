"""docs/netem.md cannot lie about its example and the backends."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from netem import cli
from netem.backends import BACKENDS
from netem.presets import PRESETS
from netem.topology import MAX_CLASSES, MAX_HOSTS
from netem.topology_text import CLASS_FIELDS

PAGE = (Path(__file__).parents[2] / "docs/netem.md").read_text()


def test_the_example_is_valid_and_shows_what_is_said_of_it(tmp_path):
    file = tmp_path / "example.toml"
    file.write_text(re.search(r"```toml\n(.*?)```", PAGE, re.DOTALL)[1])
    shown = CliRunner(env={"COLUMNS": "120"}).invoke(cli._netem, ["show", str(file)]).output
    assert "21 ± 4 ms, 1 % lost" in shown
    assert "40 ± 8 ms, 1.99 % lost" in shown
    assert "21 ± 4 ms" in PAGE
    assert "40 ± 8 ms with 1.99 %" in PAGE


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.name)
def test_every_backend_stands_there(backend):
    assert f"| `{backend.name}` |" in PAGE


def test_the_limits_are_the_real_ones():
    assert f"up to {MAX_CLASSES} classes and {MAX_HOSTS} hosts" in PAGE


@pytest.mark.parametrize("name", [*CLASS_FIELDS, *PRESETS])
def test_every_field_and_preset_stands_there(name):
    assert f"`{name}`" in PAGE
