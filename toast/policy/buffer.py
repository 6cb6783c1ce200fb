"""The limited local buffer: what to throw away, and when to stop asking.

The source ("Toast", ch. 5) caps the bytes kept: at the cap, pieces behind the playhead go first;
if there are none, all downloading is suspended until the playhead frees something.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from toast.common.registry import Registry
from toast.policy.errors import PolicyError
from toast.policy.view import SwarmView

__all__ = ["Buffer", "BufferDecision", "Unlimited", "buffer_names", "create_buffer"]


@dataclass(frozen=True, eq=False, slots=True)
class BufferDecision:
    """What a buffer wants.

    Attributes:
        eject: intp[n], pieces to delete, first ones first.
        suspend: whether to ask for nothing more for now.
    """

    eject: NDArray[np.intp]
    suspend: bool


class Buffer(Protocol):
    """Decides what is kept."""

    @property
    def name(self) -> str:
        """The name it is registered under."""

    def decide(self, view: SwarmView, stored_bytes: int) -> BufferDecision:
        """What to do with so many bytes stored."""


class Unlimited:
    """Keeps everything: disks are large, and every piece kept is one that a neighbour may take."""

    name = "unlimited"

    def decide(self, view: SwarmView, stored_bytes: int) -> BufferDecision:  # noqa: ARG002 - the protocol's
        """Nothing to eject, no reason to stop."""
        return BufferDecision(np.empty(0, dtype=np.intp), suspend=False)


_BUFFERS: Registry[Buffer] = Registry("buffer", PolicyError)
_FACTORIES: dict[str, Callable[..., Buffer]] = {"unlimited": Unlimited}
for _name, _factory in _FACTORIES.items():
    _BUFFERS.register(_name, _factory)


def create_buffer(name: str, **params: Any) -> Buffer:
    """A buffer by name.

    Raises:
        PolicyError: no such buffer, or not its parameters.
    """
    return _BUFFERS.create(name, **params)


def buffer_names() -> tuple[str, ...]:
    """The names of all buffers, sorted."""
    return _BUFFERS.names()
