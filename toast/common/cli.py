"""What every command line of the project shares: one-line errors, exit codes, unit types."""

import json
import sys
from collections.abc import Callable
from typing import Any, NoReturn

import click

from toast.common.errors import ToastError, UsageError
from toast.common.units import parse_bytes, parse_rate, parse_seconds

__all__ = ["RATE", "SECONDS", "SIZE", "print_json", "run_cli"]


class _Unit(click.ParamType[float]):
    """A number with a unit, read by one of the parsers of `toast.common.units`."""

    def __init__(self, name: str, parse: Callable[[str], float]) -> None:
        self.name = name
        self._parse = parse

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        if isinstance(value, int | float):
            return value
        try:
            return self._parse(str(value))
        except UsageError as error:
            self.fail(str(error), param, ctx)


SIZE = _Unit("size", parse_bytes)
RATE = _Unit("rate", parse_rate)
SECONDS = _Unit("seconds", parse_seconds)


def print_json(value: Any) -> None:
    """Print one JSON value on one line of standard output, at once."""
    sys.stdout.write(json.dumps(value, sort_keys=False, allow_nan=False) + "\n")
    sys.stdout.flush()


def run_cli(command: click.Command) -> NoReturn:
    """Run a command line: exit 0 only on success, one clear line on every foreseen failure.

    Exit codes: 1 something failed, 2 wrong usage or unusable input, 130 interrupted.
    """
    try:
        code = command.main(standalone_mode=False)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.Abort:
        _complain(command, "interrupted")
        sys.exit(130)
    except click.ClickException as error:
        if isinstance(error, click.UsageError) and error.ctx is not None:
            click.echo(error.ctx.get_usage(), err=True)
        _complain(command, error.format_message())
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        _complain(command, "interrupted")
        sys.exit(130)
    except ToastError as error:
        _complain(command, str(error))
        sys.exit(error.exit_code)
    sys.exit(code if isinstance(code, int) else 0)


def _complain(command: click.Command, message: str) -> None:
    line = " ".join(message.split())
    click.echo(f"{command.name}: {line}", err=True)
