"""The command: where the build is, or why there is none."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from experiments.cli import cli, main
from experiments.compiled import cli as module
from experiments.errors import LabError


def test_it_says_where_the_build_is(monkeypatch):
    monkeypatch.setattr(module, "make_build", lambda folder, say: folder / "a1b2")
    told = CliRunner().invoke(cli, ["compile", "--json"])
    assert json.loads(told.stdout) == {"event": "compiled", "path": "run/compiled/a1b2"}
    assert told.stderr == ""
    words = CliRunner().invoke(cli, ["compile"]).stdout
    assert words == f"{Path('run/compiled/a1b2')}: simulations use it from now on\n"


def test_why_there_is_none_is_one_line(monkeypatch, capsys):
    def fail(folder, say):
        raise LabError("there is no C compiler: install gcc")

    monkeypatch.setattr(module, "make_build", fail)
    monkeypatch.setattr("sys.argv", ["toast-lab", "compile"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    assert capsys.readouterr().err == "toast-lab: there is no C compiler: install gcc\n"
