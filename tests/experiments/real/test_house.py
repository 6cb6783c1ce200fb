"""Addresses, folders and the command line of a run's server."""

import ipaddress
import os
from pathlib import Path

import pytest

from experiments.errors import LabError
from experiments.real.house import LOGS, Net, run_folder, serve_command
from experiments.swarms.scenario import Scenario

STORE = Path("store")


def test_every_viewer_has_an_address_of_its_own_on_loopback():
    with Net() as net:
        hosts = [net.viewer_host(number) for number in range(1000)]
        everyone = {*hosts, net.tracker_host, net.server_host}
    assert len(everyone) == 1002
    assert all(ipaddress.ip_address(host).is_loopback for host in everyone)


def test_two_runs_do_not_meet_and_addresses_come_back():
    with Net() as first:
        taken = first.tracker_host
        with Net() as second:
            assert second.tracker_host != taken
    with Net() as third:
        assert third.tracker_host == taken


def test_the_folder_of_a_run_goes_with_it_whatever_happens(tmp_path):
    def fail():
        with run_folder(tmp_path / "runs") as folder:
            (folder / "film").write_bytes(b"x")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert list((tmp_path / "runs").iterdir()) == []


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def fail(runs, said=None):
    with run_folder(runs) as folder:
        if said is not None:
            (folder / LOGS).mkdir()
            (folder / LOGS / "worker-1.log").write_bytes(said)
        raise LabError("worker-1 ended")


def test_what_the_programs_of_a_failed_run_said_is_kept(tmp_path, temporary):
    said = b"progress\n" * 200_000 + b"Traceback: the reason\n"
    with pytest.raises(LabError, match=rf"^worker-1 ended \(.* is in {temporary}/") as told:
        fail(tmp_path / "runs", said)
    (kept,) = temporary.iterdir()
    assert str(kept) in str(told.value)
    log = (kept / "worker-1.log").read_bytes()
    assert said.endswith(log)
    assert len(log) == 1 << 20
    assert list((tmp_path / "runs").iterdir()) == []


def test_of_failed_runs_the_last_few_are_kept(tmp_path, temporary):
    mine = temporary / "toast-notes"
    mine.mkdir()
    for number in range(7):
        with pytest.raises(LabError):
            fail(tmp_path / "runs", b"%d" % number)
        newest = max(temporary.glob("toast-failed-*"), key=lambda each: each.stat().st_ctime_ns)
        os.utime(newest, (number, number))
    left = {path.read_bytes() for path in temporary.glob("toast-failed-*/worker-1.log")}
    assert left == {b"2", b"3", b"4", b"5", b"6"}
    assert mine.is_dir()


def test_who_said_nothing_leaves_nothing(tmp_path, temporary):
    with pytest.raises(LabError, match=r"^worker-1 ended$"):
        fail(tmp_path / "runs")
    assert list(temporary.iterdir()) == []


def test_what_a_killed_run_left_is_removed_and_what_others_use_is_not(tmp_path):
    gone = tmp_path / "toast-swarm-4194305-abc"  # above the highest process number there is
    others = [tmp_path / f"toast-swarm-{os.getppid()}-abc", tmp_path / "toast-swarm-notes-abc"]
    for folder in (gone, *others):
        folder.mkdir()
    with run_folder(tmp_path) as folder:
        assert sorted(tmp_path.iterdir()) == sorted([folder, *others])
    assert sorted(tmp_path.iterdir()) == sorted(others)


def test_a_folder_that_cannot_be_is_one_line(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(LabError, match="nothing can be written to"), run_folder(tmp_path / "file"):
        pass


def test_the_server_has_the_caps_of_the_scenario():
    scenario = Scenario(seed_upload_bps=4e6, origin_rate_bps=8e6)
    command = serve_command(scenario, STORE, "127.9.255.2", "http://127.9.255.1:1/announce")
    assert command[command.index("--seed-upload") + 1] == "500000.000B/s"
    assert command[command.index("--egress") + 1] == "1000000.000B/s"
    assert command[command.index("--tracker") + 1] == "http://127.9.255.1:1/announce"


def test_without_caps_there_are_no_options():
    command = serve_command(Scenario(seed_upload_bps=0), STORE, "127.9.255.2", "http://t/announce")
    assert "--no-seed" in command
    assert "--seed" not in command
    assert "--egress" not in command
