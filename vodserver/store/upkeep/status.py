"""What an operator wants to know of a store: its disks, its replicas, its last scrub."""

from collections import Counter
from collections.abc import Container, Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from vodserver.store.catalog import Catalog, DiskRow, Title
from vodserver.store.upkeep.health import shown_state
from vodserver.store.upkeep.scrub import last_scrub
from vodserver.store.upkeep.threads import in_catalog, in_thread
from vodserver.store.upkeep.workshop import Workshop, count_used

__all__ = ["disk_list", "store_status"]


async def disk_list(workshop: Workshop) -> list[dict[str, Any]]:
    """Each disk that the store ever had: where it is, what it is like, how full it is."""
    rows, titles = list(workshop.store.disk_rows), workshop.store.titles()
    used = await in_thread(lambda: count_used(rows, titles))
    return [_disk(workshop, row, used[row.number]) for row in rows]


async def store_status(workshop: Workshop) -> dict[str, Any]:
    """The whole status, as JSON values; docs/store.md has what each field means."""
    store = workshop.store
    titles, known, there = store.titles(), store.bad_replicas(), set(store.disk_paths)
    copies = workshop.policy.copies

    def read(catalog: Catalog) -> tuple[_Counts, dict[str, Any] | None, int]:
        last = last_scrub(catalog.get_note)
        noted = {tuple(each.replica) for each in catalog.bad()}
        counts = _count(titles, noted | known, there, copies)
        return counts, None if last is None else asdict(last), len(catalog.ingests())

    # In its thread: a large store has millions of replicas, and the loop has viewers to serve.
    counts, last, ingests = await in_catalog(store, read)
    disks = await disk_list(workshop)
    for shown in disks:
        shown["bad_replicas"] = counts.bad_on[shown["number"]]
    return {
        "store": str(store.path),
        "allocation": workshop.policy.name,
        "titles": len(titles),
        "film_bytes": sum(title.film_bytes for title in titles),
        "extents": counts.extents,
        "replicas_wanted": copies * counts.extents,
        "replicas_there": counts.good,
        "bad_replicas": sum(counts.bad_on.values()),
        "under_replicated_extents": counts.short,
        "unreadable_extents": counts.unreadable,
        "unfinished_ingests": ingests,
        "remade_replicas": workshop.remade,
        "scrub": {"now": workshop.scrubbing, "last": last},
        "disks": disks,
    }


@dataclass(slots=True)
class _Counts:
    """What is there of the replicas."""

    extents: int = 0
    good: int = 0
    short: int = 0
    unreadable: int = 0
    bad_on: Counter[int] = field(default_factory=Counter)


def _count(
    titles: Iterable[Title], bad: Container[tuple[Any, ...]], there: Container[int], copies: int
) -> _Counts:
    counts = _Counts()
    for title in titles:
        counts.extents += len(title.extents)
        for extent in title.extents:
            good = 0
            for disk in extent.disks:
                if (title.folder, extent.number, disk) in bad:
                    counts.bad_on[disk] += 1
                elif disk in there:
                    good += 1
            counts.good += good
            counts.short += good < copies
            counts.unreadable += not good
    return counts


def _disk(workshop: Workshop, row: DiskRow, used: int) -> dict[str, Any]:
    condition = workshop.conditions.get(row.number)
    statistics = workshop.store.statistics().disks.get(row.number)
    told: dict[str, Any] = {
        "number": row.number,
        "path": str(workshop.where(row)),
        "state": shown_state(row, condition),
        "reason": "" if condition is None else condition.reason,
        "used_bytes": used,
        "capacity_bytes": row.capacity_bytes,
        "free_bytes": None if condition is None else condition.free_bytes,
        "queued_bytes": None,
        "mean_service_seconds": None,
        "hit_rate": None,
    }
    if statistics is not None:
        told["queued_bytes"] = statistics.queued_bytes
        if statistics.disk_reads:
            told["mean_service_seconds"] = statistics.service_seconds / statistics.disk_reads
        reads = statistics.resident_reads + statistics.disk_reads
        if reads:
            told["hit_rate"] = statistics.resident_reads / reads
    return told
