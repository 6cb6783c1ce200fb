"""The group that the commands join, and what several of them share."""

from pathlib import Path
from types import FrameType
from typing import NoReturn

import click

__all__ = ["cli", "interrupt", "json_option", "store_option"]

store_option = click.option(
    "--store",
    type=click.Path(path_type=Path),
    default=Path("vod-store"),
    envvar="VODSERVER_STORE",
    show_default=True,
    show_envvar=True,
    help="The store's directory.",
)
json_option = click.option(
    "--json", "as_json", is_flag=True, help="One line of JSON, for programs."
)


@click.group(name="vodserver")
@click.version_option(package_name="toast-vod", prog_name="vodserver")
def cli() -> None:
    """Keep films on many disks, serve them over HTTP and seed them to the swarm.

    \b
    Example:
      vodserver init --disk /mnt/a --disk /mnt/b --disk /mnt/c --disk /mnt/d
      vodserver add film.mp4
      vodserver serve --tracker http://127.0.0.1:6969/announce
    """


def interrupt(_: int, __: FrameType | None) -> NoReturn:
    """Make SIGTERM clean up as Ctrl-C does."""
    raise KeyboardInterrupt
