"""What is compiled, and the name of a build: a digest of all that it depends on."""

import hashlib
import platform
import sys
import sysconfig
from importlib import metadata
from pathlib import Path
from typing import Final

from experiments.errors import LabError

__all__ = ["GROUP", "MODULES", "ROOT", "SEEN", "SUFFIX", "build_name", "path_of", "sources"]

ROOT: Final = Path(__file__).resolve().parents[2]
"""Where this program's packages lie."""
SUFFIX: Final[str] = sysconfig.get_config_var("EXT_SUFFIX") or ".so"
"""How the files of compiled modules end."""
GROUP: Final = "toast_lab"
"""mypyc puts all code into one library, and names it after this."""

MODULES: Final = (
    *(
        f"experiments.sim.{name}"
        for name in (
            *("choking", "cut", "events", "flow", "links", "neighbourhood", "origin", "peer"),
            *("playing", "rows", "settings", "tracker", "viewer", "world"),
        )
    ),
    *(
        f"toast.policy.{name}"
        for name in (
            *("budget", "buffer", "estimate", "facts", "giveup", "handover", "lead", "lookahead"),
            *("lots", "neighbours", "patience", "view", "viewing"),
            *("pickers.base", "pickers.beta", "pickers.hybrid", "pickers.in_order"),
            "pickers.rarest_first",
        )
    ),
    "toast.common.geometry",
    "toast.common.timemap",
)
"""The modules in which a simulation spends its time; their packages stay as they are."""

SEEN: Final = (
    *("toast/__init__.py", "toast/common", "toast/policy"),
    *("experiments/__init__.py", "experiments/bound.py", "experiments/errors.py"),
    *("experiments/compiled/compiler.py", "experiments/sim", "experiments/swarms"),
)
"""All that a build comes from: the compiler, and the sources that it may look at for their types,
since compiled code relies on what it saw there."""


def path_of(module: str) -> str:
    """The file of a module, from the root on, without its ending."""
    return module.replace(".", "/")


def sources(root: Path) -> list[Path]:
    """The files of `SEEN` under a root, in a fixed order."""
    found = [root / each for each in SEEN]
    return sorted(
        path for each in found for path in (each.rglob("*.py") if each.is_dir() else [each])
    )


def build_name(root: Path) -> str:
    """What the build of the sources under a root is called, here and with this Python.

    Raises:
        LabError: mypyc is not installed, or the sources cannot be read.
    """
    try:
        made_with = [metadata.version(name) for name in ("mypy", "numpy")]
    except metadata.PackageNotFoundError as error:
        raise LabError(f"{error.name} is not installed: pip install {error.name}") from error
    digest = hashlib.sha256()
    words = (*MODULES, *made_with, sys.version, SUFFIX, platform.machine())
    digest.update(repr(words).encode())
    try:
        for path in sources(root):
            text = path.read_bytes()
            digest.update(f"{path.relative_to(root).as_posix()} {len(text)}\n".encode())
            digest.update(text)
    except OSError as error:
        raise LabError(f"{error.filename} cannot be read: {error.strerror}") from error
    return digest.hexdigest()[:20]
