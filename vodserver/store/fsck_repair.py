"""Sets right what fsck found, as far as that can be done without a person."""

import math
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from toast.common.errors import ToastError
from vodserver.store.catalog import Catalog, Replica, Title
from vodserver.store.fsck import Finding
from vodserver.store.removal import clear_folder, clear_pending
from vodserver.store.schema import BLOCKS_NOTE
from vodserver.store.upkeep.blocks import make_blocks
from vodserver.store.upkeep.repair import mend
from vodserver.store.upkeep.targets import choose_target
from vodserver.store.upkeep.threads import in_catalog
from vodserver.store.upkeep.workshop import Workshop

__all__ = ["repair_findings"]

_IN_PLACE: Final = frozenset({"missing", "size", "bad", "rotten"})


async def repair_findings(
    workshop: Workshop,
    findings: Sequence[Finding],
    rng: np.random.Generator,
    told: Callable[[int, int], None],
) -> list[tuple[Finding, str]]:
    """Repair what can be: replicas from good ones, files that are of nothing removed.

    A replica is made again where it is, or elsewhere if its disk takes nothing; one on a disk
    that is not there is left, for the disk may come back.

    Args:
        workshop: of the store, which knows what the disks are like.
        findings: what `survey` and a deep check found.
        rng: chance for the choice of disks.
        told: told of the findings that are dealt with, and of how many there are.

    Returns:
        What could not be repaired, and why.
    """
    failed: list[tuple[Finding, str]] = []
    for done, finding in enumerate(findings):
        try:
            await _repair(workshop, finding, rng)
        except (ToastError, OSError) as error:
            failed.append((finding, str(error)))
        told(done + 1, len(findings))
    await workshop.sweep()  # what was moved to be repaired
    return failed


async def _repair(workshop: Workshop, finding: Finding, rng: np.random.Generator) -> None:
    store = workshop.store
    if finding.kind in _IN_PLACE:
        title = _title_of(workshop, finding)
        if title is not None and finding.extent is not None and finding.disk is not None:
            extent = title.extents[finding.extent]
            await mend(workshop, title, extent, finding.disk, rng=rng, grace=math.inf, check=False)
    elif finding.kind in {"few", "twice"}:
        await _fill(workshop, finding, rng)
    elif finding.kind in {"stale", "unfinished"}:
        paths = dict(store.disk_paths)
        await in_catalog(store, lambda catalog: _clear(catalog, finding, paths))
    elif finding.kind in {"blocks", "unhashed"}:
        await make_blocks(workshop, finding.title)
    elif finding.kind == "orphan":
        await in_catalog(store, lambda catalog: _remove_orphan(catalog, finding))


def _title_of(workshop: Workshop, finding: Finding) -> Title | None:
    """The title that a finding is about; not another that has come by its id since."""
    title = workshop.store.title(finding.title)
    return title if title is not None and title.folder == finding.folder else None


async def _fill(workshop: Workshop, finding: Finding, rng: np.random.Generator) -> None:
    """Give an extent as many replicas as the placement makes, on as many disks."""
    store, number = workshop.store, finding.extent
    title = _title_of(workshop, finding)
    if title is None or number is None:
        return
    disks = tuple(dict.fromkeys(title.extents[number].disks))
    if disks != title.extents[number].disks:
        await in_catalog(
            store, lambda catalog: catalog.set_extent_disks(finding.title, number, disks)
        )
        workshop.include(finding.title, {number: disks})
    for disk in disks:
        title = _title_of(workshop, finding)
        if title is not None and workshop.row(disk).state in {"lost", "retired"}:
            await mend(
                workshop, title, title.extents[number], disk, rng=rng, grace=math.inf, check=False
            )
    while (title := _title_of(workshop, finding)) is not None:
        extent = title.extents[number]
        if len(extent.disks) >= workshop.policy.copies:
            return
        await workshop.add(title.id, number, choose_target(workshop, extent, rng))


def _clear(catalog: Catalog, finding: Finding, paths: dict[int, Path]) -> None:
    if finding.kind == "unfinished":
        catalog.abandon_ingest(finding.folder)
    if finding.extent is None:
        clear_folder(catalog, paths, finding.folder)
    elif finding.disk is not None:
        clear_pending(catalog, paths, Replica(finding.folder, finding.extent, finding.disk))


def _remove_orphan(catalog: Catalog, finding: Finding) -> None:
    """Remove a file or folder that the catalog does not know, if it still does not."""
    assert finding.path is not None, "an orphan is a file or a folder"
    if not finding.folder:
        known = {title.folder for title in catalog.titles()} | set(catalog.ingests())
        if finding.disk is not None and finding.path.name not in known:
            shutil.rmtree(finding.path)
        elif finding.disk is None:
            _remove_blocks(catalog, finding.path, known)
        return
    assert finding.disk is not None, "on a disk"
    number = int(finding.path.name.strip(".").removesuffix(".new"))
    replica = Replica(finding.folder, number, finding.disk)
    is_draft = finding.path.name.startswith(".")
    if replica not in catalog.pending() and (is_draft or not catalog.places(replica)):
        finding.path.unlink(missing_ok=True)


def _remove_blocks(catalog: Catalog, path: Path, known: set[str]) -> None:
    """Remove hashes of blocks that are of no title, and of none that is on its way in."""
    folder = path.name.removeprefix(".").removesuffix(".new")
    used = set(catalog.ingests()) | {catalog.get_note(BLOCKS_NOTE) or ""}
    if folder not in (used if path.name.startswith(".") else known | used):
        path.unlink(missing_ok=True)
