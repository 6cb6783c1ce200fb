import shutil
import stat
import sys
from pathlib import Path

import pytest

from netem.backends.uml import UmlBackend, boot_command


def fake_kernel(folder, code):
    program = folder / "linux.uml"
    program.write_text(f"#!/bin/sh\n{code}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return str(program)


def test_without_the_program_the_package_is_named():
    report = UmlBackend(program="linux.uml-that-nobody-has").probe()
    assert not report.works
    assert "Debian has it in user-mode-linux" in report.reason


def test_without_its_module_the_path_is_named(tmp_path):
    kernel = fake_kernel(tmp_path, "echo 1.2.3")
    report = UmlBackend(program=kernel, modules=tmp_path).probe()
    assert not report.works
    assert f"{tmp_path}/1.2.3/kernel/net/sched/sch_netem.ko" in report.reason


def test_a_program_that_is_no_kernel_is_said_to_be_none(tmp_path):
    report = UmlBackend(program=fake_kernel(tmp_path, "exit 3"), modules=tmp_path).probe()
    assert not report.works
    assert "does not tell its version" in report.reason


def test_a_guest_that_panics_is_reported_with_its_last_words(tmp_path):
    module = tmp_path / "1.2.3/kernel/net/sched/sch_netem.ko"
    module.parent.mkdir(parents=True)
    module.touch()
    kernel = fake_kernel(tmp_path, '[ "$1" = --version ] && echo 1.2.3 || echo Kernel panic')
    report = UmlBackend(program=kernel, modules=tmp_path).probe()
    assert not report.works
    assert "Kernel panic" in report.reason


def test_a_guest_may_not_write_to_the_hosts_files():
    command = boot_command("linux.uml", Path("/run/x"), [Path("/m.ko")])
    assert "ro" in command
    assert "rw" not in command
    assert command[command.index("--") - 1] == f"init={sys.executable}"
    assert command[-2:] == ["/m.ko", "end"]


@pytest.mark.slow
def test_a_real_guest_delays_packets_with_netem():
    """4 ms asked for; a guest on a busy machine may be late, never early."""
    if shutil.which("linux.uml") is None:
        pytest.skip("no linux.uml here (Debian package user-mode-linux)")
    report = UmlBackend().probe()
    assert report.works, report.reason
    assert 0.0036 <= report.facts["delay_seconds"] <= 0.02
    assert report.facts["guest_kernel"]
