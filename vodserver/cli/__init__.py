"""The command line of the VoD server: one module for each kind of command."""

from typing import NoReturn

from toast.common.cli import run_cli
from vodserver.cli.group import cli

__all__ = ["cli", "main"]


def main() -> NoReturn:
    """Run the command line."""
    run_cli(cli)
