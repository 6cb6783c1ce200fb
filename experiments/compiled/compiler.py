"""The compiler's own process: mypyc ends the interpreter when it has something to complain of.

    python -m experiments.compiled.compiler SOURCES OUT

SOURCES is a copy of what the recipe names, and is written to; OUT is where the libraries go.
"""

import os
import sys

from experiments.compiled.recipe import GROUP, MODULES, path_of

__all__ = ["main"]


def main(folder: str, out: str) -> None:
    """Compile the modules of the recipe.

    Raises:
        SystemExit: it cannot be done; why is on standard error.
    """
    # Not all machines that simulate have these: who builds looked for them.
    from mypyc.build import mypycify  # noqa: PLC0415
    from setuptools import setup  # noqa: PLC0415

    os.chdir(folder)
    files = [f"{path_of(name)}.py" for name in MODULES]
    # Nobody's own settings of mypy: the same sources give the same build.
    options = ["--config-file=", "--ignore-missing-imports", "--cache-dir=/dev/null"]
    modules = mypycify([*options, *files], opt_level="2", debug_level="0", group_name=GROUP)
    words = ["--quiet", "build_ext", "--build-lib", out, "--build-temp", "temporary"]
    setup(name="toast-lab-compiled", ext_modules=modules, script_args=words)


if __name__ == "__main__":
    main(*sys.argv[1:])
