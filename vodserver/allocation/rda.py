"""Random duplicate assignment: each extent on two different disks at random; or on three."""

from typing import ClassVar

from vodserver.allocation.base import ALLOCATIONS
from vodserver.allocation.frame import Drawn

__all__ = ["Rda", "Rda3"]


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


class Rda3(Drawn):
    """Three copies on different disks at random: no two disks that are lost take any film away.

    A read has three queues to choose from, which shortens the longest waits further, for half as
    much room again.
    """

    __slots__ = ()

    name: ClassVar[str] = "rda-3"
    copies: ClassVar[int] = 3
    min_disks: ClassVar[int] = 3


ALLOCATIONS.register(Rda.name, Rda)
ALLOCATIONS.register(Rda3.name, Rda3)
