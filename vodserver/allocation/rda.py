"""Random duplicate assignment: each extent on two different disks at random."""

from typing import ClassVar

from vodserver.allocation.base import ALLOCATIONS
from vodserver.allocation.frame import Drawn

__all__ = ["Rda"]


class Rda(Drawn):
    """Two copies on a random pair of different disks, independently for each extent.

    With the shorter of two queues to read from, N extents leave D disks in ceil(N/D)+1 rounds
    with high probability (Sanders, Egner, Korst, SODA 2000), and no disk's loss or slowness
    takes any film away (thesis, chapter 4). Disks of one size make every pair equally likely;
    otherwise each disk's share follows its capacity, up to one copy of every extent.
    """

    __slots__ = ()

    name: ClassVar[str] = "rda"
    copies: ClassVar[int] = 2
    min_disks: ClassVar[int] = 2


ALLOCATIONS.register(Rda.name, Rda)
