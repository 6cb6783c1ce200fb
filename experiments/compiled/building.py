"""Making a build: aside, proved to load, and then put in its place in one step."""

import contextlib
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from experiments.compiled.loading import ENVIRONMENT, environment
from experiments.compiled.recipe import ROOT, build_name, sources
from experiments.errors import LabError

__all__ = ["make_build", "missing_tool"]

_LOG: Final = "failed.log"
_PROOF: Final = """
import experiments.sim.world as world
from experiments.compiled.loading import is_compiled
raise SystemExit(not is_compiled(world))
"""


def missing_tool() -> str | None:
    """What is missing to compile anything here, and what to do; None: nothing is."""
    for module, package in (("mypyc", "mypy"), ("setuptools", "setuptools")):
        if find_spec(module) is None:
            return f"{module} is not installed: pip install {package}"
    compiler = (sysconfig.get_config_var("CC") or "cc").split()[0]
    if shutil.which(compiler) is None:
        return f"there is no C compiler: install {compiler}"
    if not Path(sysconfig.get_path("include"), "Python.h").is_file():
        return "Python's headers are not installed: they come with python3-dev or python3-devel"
    return None


def make_build(
    folder: Path, root: Path = ROOT, say: Callable[[str], None] = lambda _: None
) -> Path:
    """The build of the sources under a root, made if it is not there yet.

    Several may do so at once: each works aside, and the first to end puts its own in place.

    Args:
        folder: of all builds.
        root: where the packages are.
        say: is told what is being done.

    Raises:
        LabError: it cannot be made; why, in a line.
    """
    build = folder / build_name(root)
    if build.is_dir():
        return build
    if (tool := missing_tool()) is not None:
        raise LabError(tool)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".building-") as name:
            return _put(_made(Path(name).resolve(), root, folder, say), folder)
    except OSError as error:
        raise LabError(f"nothing can be built in {folder}: {error.strerror}") from error


def _made(aside: Path, root: Path, folder: Path, say: Callable[[str], None]) -> Path:
    copies, out = aside / "sources", aside / "out"
    for path in sources(root):
        copy = copies / path.relative_to(root)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
    build = aside / build_name(copies)  # of what is compiled, whatever happens to the sources now
    say("compiling the simulator: a minute or two")
    compiler = [sys.executable, "-m", "experiments.compiled.compiler", str(copies), str(out)]
    _run(compiler, folder / _LOG)
    out.rename(build)
    if build.name == build_name(root):
        say("looking whether it loads")
        with environment({ENVIRONMENT: str(build)}):
            _run([sys.executable, "-c", _PROOF], folder / _LOG)
    return build


def _run(command: list[str], log: Path) -> None:
    """Run a step; what it wrote is kept if it failed."""
    done = subprocess.run(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode:
        log.write_text(done.stdout, encoding="utf-8")
        errors = [line for line in done.stdout.splitlines() if "error:" in line]
        raise LabError(f"it does not compile: {errors[0] if errors else 'see'} ({log})")


def _put(build: Path, folder: Path) -> Path:
    """Into its place at once, unless another one, made of the same, has come there first."""
    place = folder / build.name
    try:
        build.rename(place)
    except OSError:
        if not place.is_dir():
            raise
        with contextlib.suppress(OSError):
            shutil.rmtree(build)
    return place
