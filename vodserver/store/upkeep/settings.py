"""How a running server keeps its store whole."""

from dataclasses import dataclass

__all__ = ["UpkeepSettings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class UpkeepSettings:
    """How a running server watches its disks, scrubs and repairs."""

    probe_interval_seconds: float = 5.0
    """Each disk is asked so often whether it is there, and how full it is."""

    probe_timeout_seconds: float = 10.0
    """A disk that does not answer such a question for so long is failing."""

    write_probe_interval_seconds: float = 300.0
    """So often a few bytes are written to each disk, to learn whether it takes them."""

    absent_grace_seconds: float = 600.0
    """A disk may be gone for so long before what it held is made again on the others."""

    full_below_bytes: int = 128 * 1024 * 1024
    """A disk with less free space than this is full: two of the largest extents."""

    slow_ratio: int = 4
    """A disk is slow when its reads take so many times those of the middle disk."""

    recovery_seconds: float = 60.0
    """A disk that failed is failing until it has done nothing wrong for so long."""

    repair_workers: int = 2
    """Replicas remade at a time; each takes the memory of one extent."""

    scrub: bool = True
    """Whether to read every replica again and again, to find rot before a viewer does."""

    scrub_rate: float = 8_000_000.0
    """What a scrub in the background reads, bytes per second; the same for hashing old titles."""

    scrub_interval_seconds: float = 7 * 24 * 3600.0
    """From the start of one scrub in the background to the start of the next."""
