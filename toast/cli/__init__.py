"""The command `toast`: watch a film with others."""

import click

from toast.cli.daemon import daemon
from toast.cli.house import COMMANDS
from toast.cli.play import play
from toast.cli.watch import watch
from toast.common.cli import run_cli

__all__ = ["main", "toast"]


@click.group()
@click.version_option(package_name="toast-vod")
def toast() -> None:
    """Watch a film that comes from other viewers, and from the server only what they cannot bring.

    \b
    Example:
      toast play http://127.0.0.1:8080/titles/film
    """


toast.add_command(watch)
toast.add_command(play)
toast.add_command(daemon)
for _command in COMMANDS:
    toast.add_command(_command)


def main() -> None:
    """Run the command line."""
    run_cli(toast)
