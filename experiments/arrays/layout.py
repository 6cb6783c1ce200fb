"""Where the bytes of films lie on disks that know nothing of films' extents. Pure.

What a plain file server has: a file on one disk, or files that are striped over all (raid0).
"""

from dataclasses import dataclass

from experiments.errors import ScenarioError

__all__ = ["Layout", "Part"]


@dataclass(frozen=True, slots=True)
class Part:
    """What one disk has of a piece of a film."""

    disk: int
    position: int
    """Where on the disk, bytes."""

    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Films of one size, spread evenly: film k, or its first byte, is on disk k mod D."""

    disks: int
    """D."""

    film_bytes: int
    """Size of every film."""

    unit: int | None = None
    """Bytes that lie on a disk before the next one has its turn; None: the whole film."""

    def __post_init__(self) -> None:
        if self.disks < 1 or self.film_bytes < 1 or (self.unit is not None and self.unit < 1):
            raise ScenarioError("a layout has disks, films and stripe units of 1 or more")

    @property
    def film_room(self) -> int:
        """Bytes of each disk that a film takes (striped), or of its own disk."""
        if self.unit is None:
            return self.film_bytes
        return -(-self.film_bytes // (self.disks * self.unit)) * self.unit

    def parts(self, film: int, offset: int, size: int) -> list[Part]:
        """The reads that bring bytes of a film: one of each disk, since stripes of a disk adjoin.

        Args:
            film: its number.
            offset: of the first byte.
            size: bytes; more than 0, and all within the film.
        """
        if self.unit is None:
            return [Part(film % self.disks, film // self.disks * self.film_bytes + offset, size)]
        found: dict[int, Part] = {}
        at, end = offset, offset + size
        while at < end:
            stripe, within = divmod(at, self.unit)
            taken = min(self.unit - within, end - at)
            disk = (film + stripe) % self.disks
            position = film * self.film_room + stripe // self.disks * self.unit + within
            before = found.get(disk)
            found[disk] = (
                Part(disk, position, taken)
                if before is None
                else Part(disk, before.position, before.size + taken)
            )
            at += taken
        return list(found.values())
