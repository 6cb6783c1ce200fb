"""Disks come and go: taken in, emptied, replaced.

Whatever stops such a thing, it can be gone on with: how far it is is what the catalog says of the
replicas.
"""

import contextlib
import json
import os
import secrets
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from vodserver.errors import AllocationError, DiskError, StoreError, StoreUsageError
from vodserver.store.catalog import Catalog, DiskRow, DiskState
from vodserver.store.layout import EXTENTS_NAME, ID_NAME, capacity_of, flush_directory
from vodserver.store.upkeep.batch import Step, Tally, run_steps
from vodserver.store.upkeep.probe import id_of
from vodserver.store.upkeep.targets import choose_target
from vodserver.store.upkeep.threads import in_catalog, in_thread, to_the_end
from vodserver.store.upkeep.workshop import Workshop

__all__ = ["REPLACING_NOTE", "add_disk", "drain_disk", "replace_disk", "steps_on", "undrain_disk"]

REPLACING_NOTE: Final = "replacing"
"""Notes the number of the disk that is being filled in place of another."""

Progress = Callable[[dict[str, Any]], None]


async def add_disk(workshop: Workshop, path: Path) -> DiskRow:
    """Take an empty directory in as another disk.

    Raises:
        StoreUsageError: it is not empty, or a disk already.
        DiskError: it cannot be made or written.
    """
    store = workshop.store
    number = 1 + max((row.number for row in store.disk_rows), default=-1)
    store_id = store.catalog.store_id
    row = await in_thread(lambda: _prepare(path, number, store_id, known=store.disk_rows))

    async def commit() -> None:
        await in_catalog(store, lambda catalog: catalog.add_disk(row))
        store.attach_disk(row, row.path)

    await to_the_end(commit())
    return row


async def drain_disk(
    workshop: Workshop, number: int, rng: np.random.Generator, progress: Progress
) -> Tally:
    """Move every replica off a disk, and retire it.

    Raises:
        StoreUsageError: there is no such disk, or it is retired.
        AllocationError: the others are too few or too small. Nothing has happened.
        StoreError: some replicas could not be moved: the disk goes on draining.
    """
    store = workshop.store
    row = workshop.row(number)
    if row.state == "retired":
        raise StoreUsageError(f"disk {number} is retired already: nothing is on it")
    await workshop.count()
    _check_room(workshop, row)
    if row.state != "lost":
        await _set_state(workshop, row, "draining")

    async def move(step: Step) -> bool:
        target = choose_target(workshop, step.extent, rng, avoid=number)
        return await workshop.move(step.title.id, step.extent.number, number, target)

    tally = Tally(0, 0, 0, [])
    # A film may have been put there by someone who chose its disks before: hence again.
    while steps := await steps_on(workshop, number):
        found = await run_steps(steps, move, progress)
        tally.done += found.done
        tally.done_bytes += found.done_bytes
        tally.failed, tally.faults = found.failed, found.faults
        if found.failed:
            await workshop.sweep()
            raise StoreError(
                f"{found.failed} replicas could not be moved off disk {number} "
                f"({found.faults[0]}): when that is mended, run the command again"
            )
    await workshop.sweep()
    path = store.disk_paths.get(number)
    await _set_state(workshop, workshop.row(number), "retired")
    await workshop.sweep()  # nobody waits any more for what lay on it, if it was not there
    if path is not None:
        await in_thread(lambda: _let_go(path))
    return tally


async def undrain_disk(workshop: Workshop, number: int) -> None:
    """Let a disk that is being drained take replicas again.

    Raises:
        StoreUsageError: it is not being drained.
    """
    row = workshop.row(number)
    if row.state != "draining":
        raise StoreUsageError(f"disk {number} is not being drained")
    await _set_state(workshop, row, "active")


async def replace_disk(workshop: Workshop, number: int, path: Path, progress: Progress) -> Tally:
    """Have an empty directory take a disk's place, and make there again what that disk held.

    Raises:
        StoreUsageError: there is no such disk; the directory is not empty or a disk already; or
            some extents are good on the old disk alone.
        DiskError: the directory cannot be made or written, or is too small.
        StoreError: some replicas could not be remade: the command may be run again.
    """
    store = workshop.store
    old = workshop.row(number)
    if old.state == "retired":
        raise StoreUsageError(f"disk {number} is retired: 'vodserver disk add' takes in a new one")
    real = await in_thread(lambda: Path(os.path.realpath(path)))
    note = await in_catalog(store, lambda catalog: catalog.get_note(REPLACING_NOTE))
    wanted = await steps_on(workshop, number)
    if note == str(number):  # it was stopped on its way
        wanted += await _short_of_one(workshop, number)
    if note != str(number) or old.path != real:
        _check_sources(workshop, number, wanted)
        await _take_place(workshop, old, real, wanted)

    async def remake(step: Step) -> bool:
        held = store.title(step.title.id)
        if held is None:
            return False
        extent = held.extents[step.extent.number]
        if number not in extent.disks:
            return await workshop.add(held.id, extent.number, number)
        if await store.check_replica(held, extent, number):
            await workshop.trust(held, extent, number)
            return False
        return await workshop.remake(held.id, extent.number, number)

    tally = await run_steps(wanted, remake, progress)
    await workshop.sweep()
    if tally.failed:
        raise StoreError(
            f"{tally.failed} replicas could not be remade on disk {number} ({tally.faults[0]}): "
            "when that is mended, run the command again"
        )
    await in_catalog(store, lambda catalog: catalog.set_note(REPLACING_NOTE, None))
    return tally


async def steps_on(workshop: Workshop, number: int) -> list[Step]:
    """Every replica that is placed on a disk; found in a thread: a large store has millions."""
    titles = workshop.store.titles()
    return await in_thread(
        lambda: [
            Step(title, extent, number)
            for title in titles
            for extent in title.extents
            if number in extent.disks
        ]
    )


async def _short_of_one(workshop: Workshop, number: int) -> list[Step]:
    """Extents that could do with a replica on a disk."""
    titles, copies = workshop.store.titles(), workshop.policy.copies
    return await in_thread(
        lambda: [
            Step(title, extent, number)
            for title in titles
            for extent in title.extents
            if len(extent.disks) < copies and number not in extent.disks
        ]
    )


async def _set_state(workshop: Workshop, row: DiskRow, state: DiskState) -> None:
    store = workshop.store

    async def commit() -> None:
        await in_catalog(store, lambda catalog: catalog.set_disk(row.number, state=state))
        changed = replace(row, state=state)
        if state == "retired":
            store.detach_disk(row.number)
        store.disk_rows = [
            changed if each.number == row.number else each for each in store.disk_rows
        ]

    await to_the_end(commit())


def _check_room(workshop: Workshop, leaving: DiskRow) -> None:
    """See that the others are enough, and have room for what is on a disk.

    Raises:
        AllocationError: they are not, or have not.
    """
    others = [
        row
        for row in workshop.store.disk_rows
        if row.number != leaving.number and workshop.can_take(row)
    ]
    policy = workshop.policy
    if len(others) < policy.min_disks:
        raise AllocationError(
            f"placement '{policy.name}' needs {policy.min_disks} disks, and without disk "
            f"{leaving.number} there are {len(others)} that can take more: "
            "add one with 'vodserver disk add'"
        )
    needed = workshop.used().get(leaving.number, 0)
    conditions = [workshop.conditions.get(row.number) for row in others]
    if all(condition is not None and condition.total_bytes for condition in conditions):
        # Directories on one file system share its room.
        rooms = {c.device: c.free_bytes for c in conditions if c is not None}
        free = sum(rooms.values())
        if free < needed:
            raise AllocationError(
                f"disk {leaving.number} holds {needed} bytes and the others have room for {free}: "
                "add a disk with 'vodserver disk add'"
            )


def _check_sources(workshop: Workshop, number: int, steps: list[Step]) -> None:
    """See that nothing is given up that only the old disk has.

    Raises:
        StoreUsageError: something would be.
    """
    store = workshop.store
    if number not in store.disk_paths:
        return  # it is gone in any case: what can be remade shall be
    bad = store.bad_replicas()
    alone = sum(
        number in step.extent.disks
        and not any(
            disk in store.disk_paths and (step.title.folder, step.extent.number, disk) not in bad
            for disk in step.extent.disks
            if disk != number
        )
        for step in steps
    )
    if alone:
        raise StoreUsageError(
            f"{alone} extents are good on disk {number} alone, which would be given up: "
            "take the new directory in with 'vodserver disk add', then 'vodserver disk drain "
            f"{number}'"
        )


async def _take_place(workshop: Workshop, old: DiskRow, path: Path, steps: list[Step]) -> None:
    """Give a disk's number to a new directory; what the old one held is short of a replica."""
    store = workshop.store
    store_id = store.catalog.store_id
    row = await in_thread(lambda: _prepare(path, old.number, store_id, known=store.disk_rows))
    needed = sum(step.extent.size for step in steps)
    free = await in_thread(lambda: _free_bytes(row.path))
    if free < needed:
        raise DiskError(
            f"{row.path} has room for {free} bytes and disk {old.number} held {needed}: "
            "choose a larger one"
        )
    placed: dict[str, dict[int, list[int]]] = {}
    for step in steps:
        rest = [disk for disk in step.extent.disks if disk != old.number]
        if rest and old.number in step.extent.disks:
            placed.setdefault(step.title.id, {})[step.extent.number] = rest

    def note(catalog: Catalog) -> None:
        catalog.set_note(REPLACING_NOTE, str(row.number))
        catalog.set_disk(
            row.number, id=row.id, path=row.path, state="active", capacity_bytes=row.capacity_bytes
        )
        for title_id, disks in placed.items():
            with contextlib.suppress(StoreUsageError):  # it was removed meanwhile
                catalog.set_extents_disks(title_id, disks)

    async def commit() -> None:
        await in_catalog(store, note)
        store.detach_disk(row.number)
        for title_id, disks in placed.items():
            workshop.include(title_id, dict(disks))
        workshop.conditions.pop(row.number, None)
        store.attach_disk(row, row.path)

    await to_the_end(commit())


def _names_in(path: Path) -> set[str]:
    return {entry.name for entry in path.iterdir()}


def _let_go(path: Path) -> None:
    """Make a retired disk a directory like any other."""
    with contextlib.suppress(OSError):
        (path / ID_NAME).unlink()
        (path / EXTENTS_NAME).rmdir()


def _free_bytes(path: Path) -> int:
    try:
        room = os.statvfs(path)
    except OSError as error:
        raise DiskError(f"cannot look at {path}: {error.strerror}") from error
    return room.f_frsize * room.f_bavail


def _prepare(path: Path, number: int, store_id: str, *, known: list[DiskRow]) -> DiskRow:
    """Make a directory a disk of the store that the catalog does not know yet."""
    real = Path(os.path.realpath(path))
    if any(row.path == real and id_of(real) == (store_id, row.id) for row in known):
        raise StoreUsageError(f"{real} is a disk of this store already")
    try:
        real.mkdir(parents=True, exist_ok=True)
        draft = real / f".{ID_NAME}.new"
        there = _names_in(real) - {"lost+found", draft.name}
    except OSError as error:
        raise DiskError(f"cannot use the directory {real}: {error.strerror}") from error
    disk_id = secrets.token_hex(16)
    if there and there <= {ID_NAME, EXTENTS_NAME}:
        # Left by one of these that was killed before the catalog knew of it.
        if ID_NAME in there:
            found = id_of(real)
            if (found is None or found[0] != store_id) or any(found[1] == row.id for row in known):
                raise StoreUsageError(
                    f"{real} is a disk of a store already: choose another directory"
                )
            disk_id = found[1]
        there = _names_in(real / EXTENTS_NAME) if EXTENTS_NAME in there else set()
    if there:
        raise StoreUsageError(f"{real} is not empty: choose an empty directory")
    try:
        (real / EXTENTS_NAME).mkdir(exist_ok=True)
        with draft.open("w", encoding="utf-8") as file:
            json.dump({"store": store_id, "disk": disk_id}, file)
            file.flush()
            os.fsync(file.fileno())
        draft.rename(real / ID_NAME)
        flush_directory(real)
    except OSError as error:
        raise DiskError(f"cannot write to the disk {real}: {error.strerror}") from error
    return DiskRow(number, disk_id, real, "active", capacity_of(real))
