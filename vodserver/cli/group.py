"""The group that the commands join, and what several of them share."""

import importlib
from collections.abc import MutableMapping
from pathlib import Path
from types import FrameType
from typing import Final, NoReturn

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


_MODULES: Final = {
    "planning": ("model", "plan", "calibrate"),
    "serving": ("serve", "link"),
    "titles": ("init", "add", "remove", "fsck", "list"),
    "upkeep": ("disk", "rebalance", "scrub", "status"),
}
"""Where each command is."""


class _Commands(click.Group):
    """A group that imports a command's module when the command is wanted, and no other.

    `vodserver list` has no use for HTTP, and would spend most of its time on loading it.
    """

    @property
    def commands(self) -> MutableMapping[str, click.Command]:
        """All of them, loaded."""
        for module in _MODULES:
            _load(module)
        return self._loaded

    @commands.setter
    def commands(self, loaded: MutableMapping[str, click.Command]) -> None:
        self._loaded = loaded

    def add_command(self, cmd: click.Command, name: str | None = None) -> None:
        """Take in a command, from the module that is being loaded."""
        self._loaded[str(name or cmd.name)] = cmd

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's
        """Load one of them."""
        for module, names in _MODULES.items():
            if cmd_name in names:
                _load(module)
        return self._loaded.get(cmd_name)


def _load(module: str) -> None:
    importlib.import_module(f"vodserver.cli.{module}")  # its commands join the group


@click.group(name="vodserver", cls=_Commands)
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
