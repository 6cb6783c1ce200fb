"""Loading a build: in a process that was told to, compiled modules come from its folder.

The word comes through the environment, since it must be there before the first module of ours is.
"""

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ExtensionFileLoader, ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Final

from experiments.compiled.recipe import GROUP, MODULES, ROOT, SUFFIX, build_name, path_of
from experiments.errors import LabError

__all__ = ["BUILDS", "ENVIRONMENT", "environment", "find_build", "is_compiled", "load", "variables"]

BUILDS: Final = Path("run/compiled")
"""Where builds are kept, unless somebody says another place."""
ENVIRONMENT: Final = "TOAST_LAB_COMPILED"
"""The environment variable with the folder of the build that a process shall load."""


class _Finder(MetaPathFinder):
    """Finds compiled modules in the folder of a build, before anybody finds their sources."""

    def __init__(self, folder: Path) -> None:
        library = f"{GROUP}__mypyc"
        self._files = {name: folder / f"{path_of(name)}{SUFFIX}" for name in (library, *MODULES)}

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002 - the protocol's
        target: ModuleType | None = None,  # noqa: ARG002 - the protocol's
    ) -> ModuleSpec | None:
        """Where a module is; None: not here."""
        file = self._files.get(fullname)
        if file is None:
            return None
        loader = ExtensionFileLoader(fullname, str(file))
        return spec_from_file_location(fullname, file, loader=loader)


def find_build(folder: Path) -> Path:
    """The build of exactly these sources, among all in a folder.

    Raises:
        LabError: why there is none, in a line.
    """
    build = folder / build_name(ROOT)
    if not build.is_dir():
        raise LabError("there is no build of these sources: toast-lab compile makes one")
    return build.resolve()


def variables(say: Callable[[str], None], folder: Path = BUILDS) -> dict[str, str]:
    """What makes a process load the build of these sources; nothing if there is none.

    Args:
        say: is told why there is none.
        folder: of all builds.
    """
    try:
        return {ENVIRONMENT: str(find_build(folder))}
    except LabError as error:
        say(f"simulated in plain Python: {error}")
        return {}


def load(build: Path) -> bool:
    """Have compiled modules of this process come from a build. Returns whether they will.

    They do not if the build is not of the sources that are here now, or is gone, or if some of
    these modules are loaded already: half of each would be neither.
    """
    if any(name in sys.modules for name in MODULES) or not build.is_dir():
        return False
    try:
        if build.name != build_name(ROOT):
            return False
    except LabError:
        return False
    sys.meta_path.insert(0, _Finder(build))
    return True


def is_compiled(module: ModuleType) -> bool:
    """Whether a module was loaded from a build."""
    return isinstance(module.__loader__, ExtensionFileLoader)


@contextmanager
def environment(more: Mapping[str, str]) -> Iterator[None]:
    """Some more variables in the environment, for the processes that are started meanwhile."""
    before = {name: os.environ.get(name) for name in more}
    os.environ.update(more)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
