"""Guests that cannot be had; tests/lab/test_netem_uml.py boots real ones."""

import stat
import sys
from pathlib import Path

import pytest

from netem.errors import NetemError
from netem.guest.guest import MODULES, Guest, boot_command, find_kernel


def fake_kernel(folder, code):
    program = folder / "linux.uml"
    program.write_text(f"#!/bin/sh\n{code}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return str(program)


def with_modules(folder):
    for name in MODULES:
        file = folder / f"1.2.3/kernel/{name}.ko"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    return folder


def test_without_the_program_the_package_is_named():
    with pytest.raises(NetemError, match="Debian has it in user-mode-linux"):
        find_kernel("linux.uml-that-nobody-has")


def test_without_its_module_the_path_is_named(tmp_path):
    with pytest.raises(NetemError, match=f"not its module {tmp_path}/1.2.3/kernel/net/sched/sch_"):
        find_kernel(fake_kernel(tmp_path, "echo 1.2.3"), tmp_path)


@pytest.mark.parametrize(
    ("release", "flags", "dies"),
    [
        ("6.1.1", "fpu avx512f amx_tile amx_int8", True),
        ("5.10.1", "fpu amx_tile", True),
        ("6.1.1", "fpu avx512f", False),
        ("6.1.1", "fpu amx_tiles", False),
        ("6.12.1", "fpu amx_tile", False),
        ("7.0.1", "fpu amx_tile", False),
        ("none", "fpu amx_tile", False),
    ],
)
def test_a_processor_whose_registers_are_too_large_for_it_is_named(tmp_path, release, flags, dies):
    processor = tmp_path / "cpuinfo"
    processor.write_text(f"processor\t: 0\nflags\t\t: {flags}\nbogomips\t: 1\n")
    with_modules(tmp_path)
    (tmp_path / "1.2.3").rename(tmp_path / release)
    kernel = fake_kernel(tmp_path, f"echo {release}")
    if dies:
        with pytest.raises(NetemError, match=f"of kernel {release}, which dies on a processor"):
            find_kernel(kernel, tmp_path, processor)
    else:
        assert find_kernel(kernel, tmp_path, processor)[0] == kernel
    assert find_kernel(kernel, tmp_path, tmp_path / "none")[0] == kernel


def test_a_program_that_is_no_kernel_is_said_to_be_none(tmp_path):
    with pytest.raises(NetemError, match="does not tell its version"):
        find_kernel(fake_kernel(tmp_path, "exit 3"), tmp_path)


def test_what_is_booted_is_the_agent_with_the_hosts_files():
    command = boot_command("linux.uml", [Path("/m.ko")], 7, 512 << 20)
    assert "mem=512M" in command
    assert "ssl0=fd:7,fd:7" in command
    assert command[command.index("--") - 1] == f"init={sys.executable}"
    assert command[-3].endswith("netem/guest/agent.py")
    assert command[-2:] == ["/m.ko", "end"]


def test_a_path_with_a_space_is_refused():
    with pytest.raises(NetemError, match="the path '/a b': it has a space"):
        boot_command("linux.uml", [Path("/a b")], 7, 512 << 20)


async def test_a_guest_that_panics_is_reported_with_its_last_words(tmp_path, monkeypatch):
    kernel = fake_kernel(tmp_path, "echo Kernel panic")
    monkeypatch.setattr(
        "netem.guest.guest.find_kernel", lambda: (kernel, [with_modules(tmp_path) / "m.ko"])
    )
    with pytest.raises(NetemError, match="the guest has ended: Kernel panic"):
        async with Guest():
            pass
