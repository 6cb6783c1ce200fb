"""The operations on titles, as commands ask for them: add, remove, fsck."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from vodserver.control.registry import Progress, argument, operation
from vodserver.errors import ControlUsageError
from vodserver.store import Store, Title, add_film
from vodserver.store.blocks import fault_of
from vodserver.store.fsck import Finding, Survey, survey
from vodserver.store.fsck_repair import repair_findings
from vodserver.store.removal import clear_folder
from vodserver.store.upkeep.threads import LINGER_SECONDS, in_catalog, in_thread, to_the_end
from vodserver.store.upkeep.workshop import Workshop, workshop_of

__all__ = ["describe_title"]

_MOST_LISTED: Final = 1000
"""A lost disk of a large store is one fact, and not a line for every replica on it."""


def describe_title(title: Title) -> dict[str, Any]:
    """A title as programs are told of it."""
    return {
        **title.describe(),
        "extent_bytes": title.extent_bytes,
        "extents": len(title.extents),
    }


@operation("add")
async def _add(store: Store, arguments: dict[str, Any], told: Progress) -> dict[str, Any]:
    film = Path(argument(arguments, "film", str))
    if not film.is_absolute():
        raise ControlUsageError(f"the film's path '{film}' is not absolute")
    name = argument(arguments, "name", str, None)
    restart = argument(arguments, "restart", bool, default=False)
    loop = asyncio.get_running_loop()
    stopping = threading.Event()
    notices: list[str] = []

    def tell(fact: dict[str, Any]) -> None:
        _call(loop, lambda: told(fact))

    def notice(line: str) -> None:
        notices.append(line)
        tell({"notice": line})

    def work() -> Title:
        return add_film(
            store,
            film,
            name=name,
            restart=bool(restart),
            progress=lambda done, total: tell({"bytes_done": done, "bytes_total": total}),
            notice=notice,
            include=lambda title: _call(loop, lambda: store.include(title)),
            stop=stopping.is_set,
        )

    # Not a task that is cancelled: the thread has to be told to stop, and then be waited for.
    adding = asyncio.ensure_future(in_thread(work))
    try:
        title = await asyncio.shield(adding)
    except asyncio.CancelledError:
        stopping.set()
        await asyncio.wait({adding}, timeout=LINGER_SECONDS)
        if adding.done():
            adding.exception()  # that it was stopped is no news
        raise
    return {**describe_title(title), "notices": notices}


def _call(loop: asyncio.AbstractEventLoop, function: Callable[[], None]) -> None:
    if not loop.is_closed():  # it ends before a disk that hangs does
        loop.call_soon_threadsafe(function)


@operation("remove")
async def _remove(store: Store, arguments: dict[str, Any], _: Progress) -> dict[str, Any]:
    title_id = argument(arguments, "title", str)
    title: Title = await to_the_end(_take_out(store, title_id))
    paths = dict(store.disk_paths)
    # What is left undone here, the next opening of the store does.
    await in_catalog(store, lambda catalog: clear_folder(catalog, paths, title.folder))
    return describe_title(title)


async def _take_out(store: Store, title_id: str) -> Title:
    """From the catalog and from the store: these two belong together."""
    title = await in_catalog(store, lambda catalog: catalog.remove_title(title_id))
    store.exclude(title_id)
    return title


@operation("fsck")
async def _fsck(store: Store, arguments: dict[str, Any], told: Progress) -> dict[str, Any]:
    deep = argument(arguments, "deep", bool, default=False)
    repair = argument(arguments, "repair", bool, default=False)
    workshop = workshop_of(store)
    found = await _survey(workshop)
    if deep:
        found.findings = await _read_all(workshop, found, told)
    problems = list(found.findings)
    failed: list[tuple[Finding, str]] = []
    if repair and problems:
        if not workshop.conditions:
            await workshop.look(write=True)
        failed = await repair_findings(
            workshop,
            problems,
            np.random.default_rng(),
            lambda done, total: told({"repaired": done, "to_repair": total}),
        )
        found = await _survey(workshop)
        listed = set(found.findings)
        found.findings += [
            finding
            for finding, _ in failed
            if finding.kind in {"rotten", "unread", "blocks"} and finding not in listed
        ]
    left = found.problems()
    why = {finding: reason for finding, reason in failed if finding in set(left)}
    return {
        "clean": not left,
        "deep": deep,
        "titles": found.titles,
        "extents": found.extents,
        "replicas": found.replicas,
        "bytes": found.replica_bytes,
        "counts": found.counts(),
        "findings": [_tell(f, why.get(f)) for f in found.findings[:_MOST_LISTED]],
        "repaired": len(set(problems) - set(found.findings)) if repair else 0,
    }


async def _survey(workshop: Workshop) -> Survey:
    """What is wrong by names and sizes; what is only under way is right when looked at again."""
    paths = dict(workshop.store.disk_paths)
    copies = workshop.policy.copies
    found = await in_catalog(workshop.store, lambda catalog: survey(catalog, paths, copies))
    if found.problems():
        again = await in_catalog(workshop.store, lambda catalog: survey(catalog, paths, copies))
        twice = set(found.findings)
        again.findings = [finding for finding in again.findings if finding in twice]
        return again
    return found


async def _read_all(workshop: Workshop, found: Survey, told: Progress) -> list[Finding]:
    """Read every replica, through the disks' queues, behind those who want to watch."""
    store = workshop.store
    known = {
        (finding.folder, finding.extent, finding.disk): finding
        for finding in found.findings
        if finding.kind in {"missing", "size", "bad"}
    }
    findings = [finding for finding in found.findings if finding.kind != "bad"]
    done = 0
    for title in store.titles():
        for extent in title.extents:
            for disk in sorted({disk for disk in extent.disks if disk in store.disk_paths}):
                earlier = known.get((title.folder, extent.number, disk))
                if earlier is None or earlier.kind == "bad":
                    good = await store.check_replica(title, extent, disk, from_disk=True)
                    if good and earlier is not None:
                        await workshop.trust(title, extent, disk)
                    elif not good and _is_placed(store, title, extent.number, disk):
                        findings.append(await _judge(workshop, title, extent.number, disk))
                done += extent.size
                told({"bytes_done": done, "bytes_total": found.replica_bytes})
        findings += await _read_blocks(workshop, title, findings)
    return findings


def _is_placed(store: Store, title: Title, number: int, disk: int) -> bool:
    """Whether a replica is still where it was: it may have been moved, or removed, meanwhile."""
    current = store.title(title.id)
    return (
        current is not None
        and current.folder == title.folder
        and disk in current.extents[number].disks
    )


async def _read_blocks(
    workshop: Workshop, title: Title, findings: Sequence[Finding]
) -> list[Finding]:
    """Read a title's block hashes, unless it is known that they are not good."""
    store = workshop.store
    known = {finding.title for finding in findings if finding.kind == "blocks"}
    if not title.block_roots or title.id in known:
        return []
    fault = await in_thread(lambda: fault_of(store.path, title, deep=True))
    if fault is None or store.title(title.id) is not title:
        return []
    store.doubt_blocks(title.id)
    return [Finding("blocks", fault, title=title.id, folder=title.folder)]


async def _judge(workshop: Workshop, title: Title, number: int, disk: int) -> Finding:
    """What it means that a replica could not be read whole."""
    what = f"extent {number} of '{title.id}' on disk {disk}"
    about: dict[str, Any] = {
        "title": title.id,
        "folder": title.folder,
        "extent": number,
        "disk": disk,
    }
    replica = (title.folder, number, disk)
    if replica not in workshop.store.bad_replicas():
        return Finding("unread", f"{what} cannot be read now", **about)
    await workshop.note_bad([(*replica, "it does not hold what was written")])
    return Finding("rotten", f"{what} does not hold what was written", **about)


def _tell(finding: Finding, reason: str | None) -> dict[str, Any]:
    return {
        "kind": finding.kind,
        "problem": finding.is_problem,
        "message": finding.message,
        "title": finding.title or None,
        "extent": finding.extent,
        "disk": finding.disk,
        "path": None if finding.path is None else str(finding.path),
        "not_repaired": reason,
    }
