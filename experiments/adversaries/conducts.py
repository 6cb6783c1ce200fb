"""How peers misbehave. Each conduct is small; the honest one is the base of all."""

import asyncio
from collections.abc import Callable

import numpy as np

from experiments.adversaries.wire import Request
from experiments.errors import LabError

__all__ = [
    "Choker",
    "Conduct",
    "Liar",
    "Poisoner",
    "Silent",
    "Slow",
    "conduct_names",
    "create_conduct",
]

SLOW_RATE = 10_000.0


class Conduct:
    """An honest peer: takes everybody, serves what it is asked for.

    Attributes:
        rate: bytes/second that it sends to all together; None: as fast as it can.
        unchokes: whether anybody is ever let in.
    """

    rate: float | None = None
    unchokes: bool = True

    async def serve(self, request: Request, block: bytes) -> bytes:  # noqa: ARG002 - the others'
        """The bytes to answer a request with; may take as long as it likes.

        Args:
            request: what was asked for.
            block: the film's bytes there.
        """
        return block


class Slow(Conduct):
    """Sends the truth at 10 kB/s, whatever it is asked for."""

    rate = SLOW_RATE


class Silent(Conduct):
    """Lets everybody in, takes their requests, and is never heard of again."""

    async def serve(self, request: Request, block: bytes) -> bytes:  # noqa: ARG002 - never answers
        """Never."""
        await asyncio.Event().wait()
        raise AssertionError


class Poisoner(Conduct):
    """Some of its blocks are wrong in one byte. Which ones depends on the block alone.

    Args:
        rng: chooses them.
        share: how many of all blocks.
    """

    def __init__(self, rng: np.random.Generator, share: float = 0.25) -> None:
        self._share = share
        self._salt = int(rng.integers(1 << 32))
        self.poisoned = 0

    async def serve(self, request: Request, block: bytes) -> bytes:
        """The block, or the block with a byte of it turned over."""
        luck = np.random.default_rng((self._salt, request.piece, request.start))
        if luck.random() >= self._share:
            return block
        self.poisoned += 1
        place = int(luck.integers(len(block)))
        return block[:place] + bytes([block[place] ^ 0xFF]) + block[place + 1 :]


class Choker(Conduct):
    """Claims the whole film and never lets anybody take of it."""

    unchokes = False


class Liar(Conduct):
    """Claims the whole film and has each second piece of it; requests for others are forgotten."""

    async def serve(self, request: Request, block: bytes) -> bytes:
        """The block, if it is of a piece that it has."""
        if request.piece % 2:
            await asyncio.Event().wait()
        return block


_CONDUCTS: dict[str, Callable[[np.random.Generator], Conduct]] = {
    "honest": lambda _: Conduct(),
    "slow": lambda _: Slow(),
    "silent": lambda _: Silent(),
    "poisoner": Poisoner,
    "choker": lambda _: Choker(),
    "liar": lambda _: Liar(),
}


def conduct_names() -> tuple[str, ...]:
    """The names of all conducts."""
    return tuple(_CONDUCTS)


def create_conduct(name: str, rng: np.random.Generator) -> Conduct:
    """A conduct by name.

    Raises:
        LabError: there is none of that name.
    """
    if name not in _CONDUCTS:
        raise LabError(f"no peer behaves like '{name}': choose of {', '.join(_CONDUCTS)}")
    return _CONDUCTS[name](rng)
