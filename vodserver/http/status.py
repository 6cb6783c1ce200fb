"""What `/status` says of the store, the seed and HTTP: the same whoever puts it together."""

import dataclasses
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from vodserver.http.admission import AdmissionStatistics
from vodserver.http.connections import HttpStatistics
from vodserver.http.sender import FilmSource
from vodserver.store.rows import DiskRow, Title
from vodserver.store.store import StoreStatistics

__all__ = ["SeedStatus", "ServedStore", "http_status", "store_status"]

SeedStatus = Callable[[], Awaitable[dict[str, Any] | None]]


class ServedStore(FilmSource, Protocol):
    """What HTTP needs of a store."""

    disk_rows: list[DiskRow]
    """Every disk that it has."""

    def statistics(self) -> StoreStatistics:
        """What its disks did."""
        ...

    async def read_blocks(self, title: Title, start: int, end: int) -> bytes:
        """Bytes [start, end) of the hashes of a title's blocks; raises ReadError."""
        ...


async def store_status(store: ServedStore, seed_status: SeedStatus | None) -> dict[str, Any]:
    """What the store and the seed of this process do."""
    statistics = store.statistics()
    seed = None if seed_status is None else await seed_status()
    return {
        "titles": len(store.titles()),
        "seed_bytes_sent": seed["bytes_sent"] if seed else 0,
        "seed_payload_bytes_sent": seed["payload_bytes_sent"] if seed else 0,
        "seed": seed,
        "bad_replicas": statistics.bad_replicas,
        "disks": [
            {
                "number": row.number,
                "there": row.number in statistics.disks,
                **_fields(statistics.disks, row.number),
            }
            for row in store.disk_rows
        ],
    }


def http_status(
    seconds: float, http: HttpStatistics, streams: AdmissionStatistics
) -> dict[str, Any]:
    """What HTTP did.

    Args:
        seconds: since the server was started.
        http: of its connections.
        streams: of its streams.
    """
    return {
        "uptime_seconds": round(seconds, 3),
        "http_bytes_sent": http.bytes_sent,
        "http_connections": http.connections,
        "http_accepted": http.accepted,
        "http_refused": http.refused,
        "streams": streams.streams,
        "streams_rate": streams.rate,
        "streams_admitted": streams.admitted,
        "streams_refused": sum(streams.refused.values()),
    }


def _fields(disks: Mapping[int, Any], number: int) -> dict[str, Any]:
    return dataclasses.asdict(disks[number]) if number in disks else {}
