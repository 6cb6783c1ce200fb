"""Values on the command line that are either an amount or a share of something."""

from typing import Any

import click

from toast.common.errors import UsageError
from toast.common.units import parse_bytes, parse_fraction

__all__ = ["BUFFER"]


class _Buffer(click.ParamType[tuple[int | None, float | None]]):
    """`2GB` or `25%`: bytes, and a fraction of the film."""

    name = "buffer"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int | None, float | None]:
        """Read it.

        Raises:
            click.BadParameter: it is neither.
        """
        text = str(value)
        try:
            if text.endswith("%"):
                return None, parse_fraction(text)
            return parse_bytes(text), None
        except UsageError as error:
            self.fail(str(error), param, ctx)


BUFFER = _Buffer()
