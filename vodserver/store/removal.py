"""How titles, and what crashes left, go: first from the catalog, then from the disks."""

import contextlib
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from vodserver.store.blocks import blocks_path, draft_of, remove_blocks
from vodserver.store.catalog import Catalog, Replica, Title
from vodserver.store.layout import draft_path, extent_path, remove_folder
from vodserver.store.schema import BLOCKS_NOTE

__all__ = [
    "INGEST_AGE_SECONDS",
    "clear_blocks",
    "clear_debris",
    "clear_folder",
    "clear_garbage",
    "clear_pending",
    "remove_title",
]

INGEST_AGE_SECONDS: Final = 7 * 24 * 3600.0
"""A film that was stopped on its way in and not resumed for a week is given up."""


def remove_title(catalog: Catalog, disk_paths: Mapping[int, Path], title_id: str) -> Title:
    """Remove a title: it vanishes at once and for good, then its files go.

    A kill in between, or a disk that is not there, leaves files that the next `clear_debris`
    removes.

    Args:
        catalog: of the store that this process has locked.
        disk_paths: where each disk is that is there, by number.
        title_id: which one.

    Returns:
        What it was.

    Raises:
        StoreUsageError: there is no such title.
    """
    title = catalog.remove_title(title_id)
    clear_folder(catalog, disk_paths, title.folder)
    return title


def clear_debris(
    catalog: Catalog, disk_paths: Mapping[int, Path], *, now: float | None = None
) -> None:
    """Remove what the catalog says is of no title, and nothing else.

    That is: folders of removed titles and of ingests that were given up, cannot be resumed or are
    older than `INGEST_AGE_SECONDS`, and replicas written or moved away by what was then killed.
    What lies on a disk that is not there stays noted until it is.

    Args:
        catalog: of the store that this process has locked, with nothing under way in it.
        disk_paths: where each disk is that is there, by number.
        now: unix seconds; the clock's if not given.
    """
    now = time.time() if now is None else now
    for ingest in catalog.unfinished():
        if not ingest.plan or now - ingest.begun > INGEST_AGE_SECONDS:
            catalog.abandon_ingest(ingest.folder)
    for replica in catalog.pending():
        clear_pending(catalog, disk_paths, replica)
    for folder in catalog.debris():
        clear_folder(catalog, disk_paths, folder)
    clear_blocks(catalog)
    clear_garbage(catalog, disk_paths)


def clear_blocks(catalog: Catalog) -> None:
    """Remove the block hashes whose making was killed, unless a title has them.

    Args:
        catalog: as this thread has it; nobody may be making block hashes.
    """
    folder = catalog.get_note(BLOCKS_NOTE)
    if folder is None:
        return
    store = catalog.path.parent
    if folder in catalog.hashed():
        draft_of(blocks_path(store, folder)).unlink(missing_ok=True)
    elif not remove_blocks(store, folder):
        return
    catalog.set_note(BLOCKS_NOTE, None)


def clear_pending(catalog: Catalog, disk_paths: Mapping[int, Path], replica: Replica) -> None:
    """Remove the file of a replica that was begun and never placed.

    Args:
        catalog: as this thread has it; nobody may be writing this replica.
        disk_paths: where each disk is that is there, by number.
        replica: which one.
    """
    if _clear_replica(catalog, disk_paths, replica):
        catalog.finish_write(*replica)


def clear_garbage(
    catalog: Catalog, disk_paths: Mapping[int, Path], *, folder: str | None = None
) -> None:
    """Remove the files of replicas that were moved away.

    Args:
        catalog: as this thread has it; no other may place replicas of these titles meanwhile.
        disk_paths: where each disk is that is there, by number.
        folder: of the title to do it for; all of them if not given.
    """
    for replica in catalog.garbage():
        if folder is not None and replica.folder != folder:
            continue
        # Looked at again: someone may be about to write it anew, and has struck it.
        if catalog.is_garbage(replica) and _clear_replica(catalog, disk_paths, replica):
            catalog.forget_garbage(*replica)


def clear_folder(catalog: Catalog, disk_paths: Mapping[int, Path], folder: str) -> None:
    """Remove a folder that is debris, and strike it when it is gone from every disk for good."""
    gone = remove_folder(folder, disk_paths.values())
    gone &= remove_blocks(catalog.path.parent, folder)
    # Someone who was writing a replica into it when its title vanished may make it once more.
    written = any(replica.folder == folder for replica in catalog.pending())
    if gone and not written and _awaited(catalog) <= set(disk_paths):
        catalog.forget_debris(folder)


def _clear_replica(catalog: Catalog, disk_paths: Mapping[int, Path], replica: Replica) -> bool:
    """Remove a replica's file unless a title has it; whether there is no more to be done."""
    disk = disk_paths.get(replica.disk)
    if disk is None:
        return replica.disk not in _awaited(catalog)
    path = extent_path(disk, replica.folder, replica.number)
    try:
        draft_path(disk, replica.folder, replica.number).unlink(missing_ok=True)
        if not catalog.places(replica):
            path.unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # others of its title are there
                path.parent.rmdir()
    except OSError:
        return False
    return True


def _awaited(catalog: Catalog) -> set[int]:
    """The disks that may come back with what is on them."""
    return {row.number for row in catalog.disks() if row.state not in {"lost", "retired"}}
