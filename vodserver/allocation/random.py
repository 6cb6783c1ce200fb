"""Each extent on one disk at random."""

from typing import ClassVar

from vodserver.allocation.base import ALLOCATIONS
from vodserver.allocation.frame import Drawn

__all__ = ["Random"]


class Random(Drawn):
    """One copy, on a disk drawn for each extent independently, each as likely as it is large.

    Source: the thesis, chapter 4 ("random"): no film has a disk of its own, but of D requests
    some disk has Theta(log D / log log D) with high probability, and a lost disk takes a part of
    every film.
    """

    __slots__ = ()

    name: ClassVar[str] = "random"
    copies: ClassVar[int] = 1
    min_disks: ClassVar[int] = 1


ALLOCATIONS.register(Random.name, Random)
