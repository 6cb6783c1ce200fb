"""NetEm inside user-mode Linux: a kernel with NetEm as an ordinary process, no root needed.

Debian's package `user-mode-linux` brings both the kernel (`linux.uml`) and its modules.
"""

import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from netem.backends.base import BackendReport
from netem.backends.process import run_trial_process
from netem.backends.trial_mark import MARK
from netem.effects import Effect
from netem.errors import NetemError

__all__ = ["UmlBackend", "boot_command"]

_PATIENCE_SECONDS = 30.0
_MODULE = "kernel/net/sched/sch_netem.ko"


@dataclass(frozen=True, slots=True)
class UmlBackend:
    """NetEm in a user-mode Linux guest that sees this machine's files."""

    program: str = "linux.uml"
    modules: Path = Path("/usr/lib/uml/modules")
    name: str = "uml"
    description: str = "NetEm in user-mode Linux"
    effects: frozenset[Effect] = frozenset()
    """It can be tried, and does not run topologies yet."""
    keeper: tuple[str, ...] = ()

    def probe(self) -> BackendReport:
        """Boot a guest, delay packets in it, and let it power off."""
        kernel = shutil.which(self.program)
        if kernel is None:
            return self._lacking(f"no {self.program} here; Debian has it in user-mode-linux")
        try:
            module = self._module_for(kernel)
            with tempfile.TemporaryDirectory(prefix="toast-netem-") as folder:
                command = boot_command(kernel, Path(folder), [module])
                result = run_trial_process(command, seconds=_PATIENCE_SECONDS)
        except NetemError as error:
            return self._lacking(str(error))
        works, reason = result.pop("works"), result.pop("reason")
        return BackendReport(self.name, works=works, reason=reason, facts=result)

    def _lacking(self, reason: str) -> BackendReport:
        return BackendReport(self.name, works=False, reason=reason)

    def _module_for(self, kernel: str) -> Path:
        try:
            shown = subprocess.run(  # noqa: S603  (the program that shutil.which found)
                [kernel, "--version"], capture_output=True, text=True, timeout=10, check=True
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise NetemError(f"{kernel} does not tell its version: {error}") from error
        module = self.modules / shown.stdout.strip() / _MODULE
        if not module.is_file():
            raise NetemError(f"{kernel} is here, but not its module {module}")
        return module


def boot_command(kernel: str, folder: Path, modules: list[Path]) -> list[str]:
    """What boots a guest whose only program is the trial.

    Args:
        kernel: path of `linux.uml`.
        folder: where the guest's sockets and process number go.
        modules: kernel modules to load, as files.
    """
    return [
        kernel,
        "mem=256M",
        f"uml_dir={folder}",
        # The host's files, read-only. `root` names a disk that is not there; hostfs ignores it, but
        # user-mode Linux adds its own, behind our program's arguments, where it is missing.
        "root=98:0",
        "rootfstype=hostfs",
        "ro",
        "quiet",
        "con=null",
        "con0=fd:0,fd:1",
        f"init={sys.executable}",
        "--",
        "-m",
        "netem.uml_guest",
        MARK,
        *map(str, modules),
        "end",
    ]
