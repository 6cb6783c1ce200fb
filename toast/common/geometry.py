"""How a film is cut: pieces (hashed, announced) of blocks (requested, 16 KiB)."""

from dataclasses import dataclass

from toast.common.errors import UsageError

__all__ = ["BLOCK_BYTES", "Geometry"]

BLOCK_BYTES = 16 * 1024
"""The BitTorrent request unit; every client in use asks for exactly this (BEP 3)."""


@dataclass(frozen=True, slots=True)
class Geometry:
    """The cut of one film.

    Attributes:
        film_bytes: size of the film in bytes, > 0.
        piece_bytes: size of every piece but perhaps the last, a multiple of 16 KiB.

    Raises:
        UsageError: a size that no torrent can have.
    """

    film_bytes: int
    piece_bytes: int

    def __post_init__(self) -> None:
        if self.film_bytes <= 0:
            raise UsageError("the film is empty: there is nothing to cut into pieces")
        if self.piece_bytes <= 0 or self.piece_bytes % BLOCK_BYTES:
            raise UsageError(f"piece length {self.piece_bytes} is not a multiple of 16 KiB")

    @property
    def pieces(self) -> int:
        """Number of pieces."""
        return -(-self.film_bytes // self.piece_bytes)

    def piece_start(self, piece: int) -> int:
        """First byte of a piece."""
        return piece * self.piece_bytes

    def piece_size(self, piece: int) -> int:
        """Bytes in a piece; only the last one may be shorter."""
        return min(self.piece_bytes, self.film_bytes - piece * self.piece_bytes)

    def blocks_in(self, piece: int) -> int:
        """Number of blocks in a piece."""
        return -(-self.piece_size(piece) // BLOCK_BYTES)

    def block_size(self, piece: int, block: int) -> int:
        """Bytes in a block; only the last one of the film may be shorter."""
        return min(BLOCK_BYTES, self.piece_size(piece) - block * BLOCK_BYTES)

    def piece_of(self, offset: int) -> int:
        """The piece that holds a byte of the film."""
        return offset // self.piece_bytes

    def pieces_of(self, start: int, end: int) -> range:
        """The pieces that hold bytes [start, end) of the film; none if the range is empty."""
        if end <= start:
            return range(0)
        return range(start // self.piece_bytes, (end - 1) // self.piece_bytes + 1)
