"""`model` and `calibrate`, as a person and as a program run them."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from toast.common.errors import ToastError, UsageError
from vodserver.cli import cli


def invoke(*arguments):
    return CliRunner().invoke(cli, list(map(str, arguments)))


def answer(*arguments):
    result = invoke(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def complaint(*arguments) -> str:
    error = invoke(*arguments).exception
    assert isinstance(error, ToastError)
    assert "\n" not in str(error)
    return str(error)


def test_the_sources_array_is_the_default():
    assert answer("model") | {"table": None} == {
        "streams": 539,
        "disk_streams": pytest.approx(539.5, abs=0.1),
        "link_streams": None,
        "limit": "disks",
        "disks": 8,
        "bit_rate_bps": 6e6,
        "buffer_seconds": 5.0,
        "stripe": 1,
        "table": None,
    }


def test_the_table_falls_with_the_bit_rate():
    table = answer("model", "--link", "2Gbps")["table"]

    assert [row["bit_rate_bps"] for row in table] == [n * 1e6 for n in (1, 2, 4, 6, 8, 12, 18, 25)]
    streams = [row["streams"] for row in table]
    assert streams == sorted(streams, reverse=True)
    assert streams[3] == 316
    assert table[3]["limit"] == "link"


def test_people_see_what_limits_it():
    result = invoke("model", "--disks", 1, "--bit-rate", "25Mbps")

    assert result.exit_code == 0
    assert "19 streams of 25 Mb/s from 1 disk; limited by the disks" in result.output
    assert "limited by" in result.output
    limited = invoke("model", "--link", "100Mbps").output
    assert "15 streams of 6 Mb/s from 8 disks; limited by the link" in limited


def test_the_reverse_says_how_many_disks():
    assert answer("model", "--streams", 539)["disks"] == 8
    found = answer("model", "--streams", 540, "--link", "1Gbps")
    assert found == {"disks": 9, "streams": 540, "link_suffices": False}
    shown = invoke("model", "--streams", 540, "--link", "1Gbps").output
    assert "9 disks for 540 streams" in shown
    assert "the link is too slow for them: they take 3.24 Gb/s" in shown


@pytest.fixture
def calibration(tmp_path) -> Path:
    path = tmp_path / "disks.json"
    rows = [{"access_seconds": 0.017, "rate": 65.625e6}, {"access_seconds": 0.008, "rate": 2e8}]
    path.write_text(json.dumps({"disks": rows}))
    return path


def test_a_calibration_takes_the_place_of_the_defaults(calibration):
    one, two = 5 / (0.017 + 3.75e6 / 65.625e6), 5 / (0.008 + 3.75e6 / 2e8)

    assert answer("model", "--calibration", calibration)["disk_streams"] == pytest.approx(
        one + two, abs=0.1
    )
    four = answer("model", "--calibration", calibration, "--disks", 4)
    assert four["disks"] == 4
    assert four["disk_streams"] == pytest.approx(2 * (one + two), abs=0.1)
    assert answer("model", "--calibration", calibration, "--streams", 500)["disks"] == 6


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{}",
        "\ufeff\x00",
        "[" * 100_000,
        '{"disks": 3}',
        '{"disks": []}',
        '{"disks": [{"rate": 5}]}',
        '{"disks": [{"access_seconds": -1, "rate": 5}]}',
    ],
    ids=range(9),
)
def test_a_file_that_is_no_calibration_is_refused(tmp_path, content):
    path = tmp_path / "disks.json"
    path.write_text(content)

    assert str(path) in complaint("model", "--calibration", path)


def test_options_that_do_not_go_together_are_refused(tmp_path, calibration):
    assert "one or the other" in complaint("model", "--calibration", calibration, "--access", "1ms")
    assert "striped 3 wide" in complaint("model", "--disks", 2, "--stripe", 3)
    assert "cannot read" in complaint("model", "--calibration", tmp_path / "absent.json")
    assert isinstance(invoke("model", "--bit-rate", "0Mbps").exception, UsageError)


@pytest.mark.parametrize(
    "option", [("--rate", "65"), ("--disks", "0"), ("--buffer", "soon"), ("--link", "fast")]
)
def test_a_figure_without_its_unit_is_refused(option):
    assert invoke("model", *option).exit_code == 2


@pytest.mark.slow
def test_a_directory_is_calibrated_and_the_model_reads_that(tmp_path):
    """What it measures depends on the machine: here only that the two commands fit together."""
    result = invoke("calibrate", tmp_path, "--seconds", 1, "--size", "64MiB", "--json")
    if isinstance(result.exception, ToastError):
        pytest.skip(str(result.exception))
    assert result.exit_code == 0
    (tmp_path / "disks.json").write_text(result.stdout)
    (disk,) = json.loads(result.stdout)["disks"]

    assert disk["path"] == str(tmp_path)
    assert disk["scratch_bytes"] == 64 << 20
    assert disk["rate_interval"][0] <= disk["rate"]
    assert answer("model", "--calibration", tmp_path / "disks.json")["disks"] == 1
    assert [path.name for path in tmp_path.iterdir()] == ["disks.json"]


def test_what_cannot_be_calibrated_is_refused_in_one_line(tmp_path):
    assert "is not a directory" in complaint("calibrate", tmp_path / "absent")
    assert invoke("calibrate").exit_code == 2


def test_a_plan_for_every_placement():
    found = answer("plan", "--films", 100, "--viewers", 400, "--busy", 100)["plans"]
    assert [(one["placement"], one["disks"]) for one in found] == [
        ("rda", 6),
        ("rda-3", 6),
        ("raid1", 8),
        ("naive", 8),
    ]
    shown = invoke("plan", "--films", 100, "--viewers", 400).output
    assert "less a disk" in shown
    assert "by two" in shown
    assert "rda" in shown
