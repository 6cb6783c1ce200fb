"""The command that compiles: `toast-lab compile`."""

import click
from rich.console import Console

from experiments.compiled.building import make_build
from experiments.compiled.loading import BUILDS
from experiments.signals import interrupt_on_sigterm
from toast.common.cli import print_json

__all__ = ["compile_command"]


@click.command("compile")
@click.option("--json", "as_json", is_flag=True, help="One line of JSON, for programs.")
def compile_command(*, as_json: bool) -> None:
    """Compile the simulator: the same results, in less time.

    Takes a C compiler and mypyc. What is made is kept in run/compiled, and used by every simulation
    that is started from here while the sources stay as they are.

    \b
    Example:
      toast-lab compile
    """
    interrupt_on_sigterm()
    notes = Console(stderr=True, quiet=as_json)
    with notes.status("looking") as status:
        build = make_build(BUILDS, say=status.update)
    if as_json:
        print_json({"event": "compiled", "path": str(build)})
    else:
        click.echo(f"{build}: simulations use it from now on")
