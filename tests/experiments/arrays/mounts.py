"""Whether nginx can serve from mounted disks on this machine."""

import os
import subprocess
from pathlib import Path

import pytest

from experiments.arrays.mounted import mounted_command
from experiments.errors import LabError
from experiments.nginx import find_nginx

__all__ = ["need_mounts"]


def need_mounts(spec: Path) -> None:
    """Skip, and say why, where that cannot be done."""
    try:
        find_nginx()
        command = mounted_command(spec)
    except LabError as error:
        pytest.skip(str(error))
    alone = [*command[: command.index("private") + 1], "true"]
    if os.geteuid() != 0 or subprocess.run(alone, check=False, capture_output=True).returncode:
        pytest.skip("nothing can be mounted here: it takes root and a mount namespace")
