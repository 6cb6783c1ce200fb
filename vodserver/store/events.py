"""What happens in a store that others act upon: the seed, the upkeep, other processes."""

from dataclasses import dataclass

from vodserver.store.catalog import Extent, Title

__all__ = [
    "BlocksBad",
    "DiskChanged",
    "ReplicaBad",
    "StoreEvent",
    "TitleAdded",
    "TitleChanged",
    "TitleRemoved",
]


@dataclass(frozen=True, slots=True)
class TitleAdded:
    """A title was committed."""

    title: Title


@dataclass(frozen=True, slots=True)
class TitleChanged:
    """Replicas of a title lie elsewhere now, or it has block hashes; its bytes are the same.

    Attributes:
        title: as it is now.
    """

    title: Title


@dataclass(frozen=True, slots=True)
class TitleRemoved:
    """A title is gone; its files go next."""

    title: Title


@dataclass(frozen=True, slots=True)
class ReplicaBad:
    """A replica was found missing, short, unreadable or rotten.

    Attributes:
        title: whose.
        extent: of which extent.
        disk: number of the disk that it is on.
        fault: what was found, in words.
    """

    title: Title
    extent: Extent
    disk: int
    fault: str


@dataclass(frozen=True, slots=True)
class DiskChanged:
    """A disk came or went.

    Attributes:
        number: which.
    """

    number: int


@dataclass(frozen=True, slots=True)
class BlocksBad:
    """A title's block hashes were found missing, short or rotten.

    Attributes:
        title: whose.
    """

    title: Title


StoreEvent = TitleAdded | TitleChanged | TitleRemoved | ReplicaBad | BlocksBad | DiskChanged
