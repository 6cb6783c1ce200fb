"""What an operator wants to know of a store: its disks, its replicas, its last scrub."""

from dataclasses import asdict
from typing import Any

from vodserver.store.catalog import BadReplica, Catalog, DiskRow
from vodserver.store.upkeep.health import shown_state
from vodserver.store.upkeep.scrub import last_scrub
from vodserver.store.upkeep.threads import in_catalog
from vodserver.store.upkeep.workshop import Workshop

__all__ = ["disk_list", "store_status"]


def disk_list(workshop: Workshop) -> list[dict[str, Any]]:
    """Each disk that the store ever had: where it is, what it is like, how full it is."""
    used = workshop.used()
    return [_disk(workshop, row, used.get(row.number, 0)) for row in workshop.store.disk_rows]


async def store_status(workshop: Workshop) -> dict[str, Any]:
    """The whole status, as JSON values; docs/store.md has what each field means."""
    store = workshop.store

    def read(catalog: Catalog) -> tuple[list[BadReplica], dict[str, Any] | None, int]:
        last = last_scrub(catalog.get_note)
        return catalog.bad(), None if last is None else asdict(last), len(catalog.ingests())

    noted, last, ingests = await in_catalog(store, read)
    extents = [extent for title in store.titles() for extent in title.extents]
    copies = workshop.policy.copies
    placed = {
        (title.folder, extent.number, disk)
        for title in store.titles()
        for extent in title.extents
        for disk in extent.disks
    }
    bad = {tuple(each.replica) for each in noted} | store.bad_replicas()
    bad &= placed
    gone = {replica for replica in placed if replica[2] not in store.disk_paths}
    good = placed - bad - gone
    count: dict[tuple[str, int], int] = {}
    for folder, number, _ in good:
        count[folder, number] = count.get((folder, number), 0) + 1
    keys = {(folder, number) for folder, number, _ in placed}
    disks = disk_list(workshop)
    for shown in disks:
        shown["bad_replicas"] = sum(replica[2] == shown["number"] for replica in bad)
    return {
        "store": str(store.path),
        "allocation": workshop.policy.name,
        "titles": len(store.titles()),
        "film_bytes": sum(title.film_bytes for title in store.titles()),
        "extents": len(extents),
        "replicas_wanted": copies * len(extents),
        "replicas_there": len(good),
        "bad_replicas": len(bad),
        "under_replicated_extents": sum(count.get(key, 0) < copies for key in keys),
        "unreadable_extents": sum(key not in count for key in keys),
        "unfinished_ingests": ingests,
        "remade_replicas": workshop.remade,
        "scrub": {"now": workshop.scrubbing, "last": last},
        "disks": disks,
    }


def _disk(workshop: Workshop, row: DiskRow, used: int) -> dict[str, Any]:
    condition = workshop.conditions.get(row.number)
    statistics = workshop.store.statistics().disks.get(row.number)
    told: dict[str, Any] = {
        "number": row.number,
        "path": str(row.path),
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
