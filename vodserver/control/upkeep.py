"""The operations of upkeep, as commands ask for them."""

from pathlib import Path
from typing import Any

import numpy as np

from toast.common.errors import ToastError
from vodserver.control.registry import Progress, argument, operation
from vodserver.errors import ControlUsageError
from vodserver.store import Store
from vodserver.store.catalog import Extent, Title
from vodserver.store.upkeep import disks
from vodserver.store.upkeep.batch import Tally
from vodserver.store.upkeep.rebalance import DEFAULT_TOLERANCE, rebalance
from vodserver.store.upkeep.repair import mend
from vodserver.store.upkeep.scrub import Scrub
from vodserver.store.upkeep.status import disk_list, store_status
from vodserver.store.upkeep.workshop import Workshop, workshop_of

__all__: list[str] = []


async def _look(store: Store, *, write: bool = False) -> Workshop:
    """The store's workshop, which knows what the disks are like: from its keeper, or by asking."""
    workshop = workshop_of(store)
    if not workshop.conditions:
        await workshop.look(write=write)
    return workshop


def _told(tally: Tally) -> dict[str, Any]:
    return {"replicas": tally.done, "bytes": tally.done_bytes, "failed": tally.failed}


@operation("disk add")
async def _disk_add(store: Store, arguments: dict[str, Any], _: Progress) -> dict[str, Any]:
    path = _absolute(argument(arguments, "path", str))
    row = await disks.add_disk(workshop_of(store), path)
    return {"number": row.number, "id": row.id, "path": str(row.path)}


@operation("disk list", mutates=False)
async def _disk_list(store: Store, _: dict[str, Any], __: Progress) -> dict[str, Any]:
    return {"disks": await disk_list(await _look(store))}


@operation("disk drain")
async def _disk_drain(store: Store, arguments: dict[str, Any], told: Progress) -> dict[str, Any]:
    number = argument(arguments, "number", int)
    workshop = await _look(store, write=True)
    if argument(arguments, "cancel", bool, default=False):
        await disks.undrain_disk(workshop, number)
        return {"number": number, "state": "active"}
    tally = await disks.drain_disk(workshop, number, np.random.default_rng(), told)
    return {"number": number, "state": "retired", **_told(tally)}


@operation("disk replace")
async def _disk_replace(store: Store, arguments: dict[str, Any], told: Progress) -> dict[str, Any]:
    number = argument(arguments, "number", int)
    path = _absolute(argument(arguments, "path", str))
    tally = await disks.replace_disk(workshop_of(store), number, path, told)
    return {"number": number, "path": str(path), **_told(tally)}


@operation("rebalance")
async def _rebalance(store: Store, arguments: dict[str, Any], told: Progress) -> dict[str, Any]:
    tolerance = argument(arguments, "tolerance", float, DEFAULT_TOLERANCE)
    if tolerance is None or not 0.0 <= tolerance <= 1.0:
        raise ControlUsageError("the tolerance is a part of a disk: between 0 and 1")
    workshop = await _look(store, write=True)
    return _told(await rebalance(workshop, np.random.default_rng(), told, tolerance=tolerance))


@operation("scrub", mutates=False)
async def _scrub(store: Store, arguments: dict[str, Any], told: Progress) -> dict[str, Any]:
    rate = argument(arguments, "rate", float, None)
    if rate is not None and not rate > 0:
        raise ControlUsageError("the rate of a scrub is more than 0")
    anew = argument(arguments, "restart", bool, default=False)
    workshop = await _look(store, write=True)
    rng = np.random.default_rng()

    async def repair(title: Title, extent: Extent, disk: int) -> bool:
        try:
            return await mend(workshop, title, extent, disk, rng=rng, grace=0.0, check=False) <= 0
        except (ToastError, OSError):
            return False  # the result counts it, and the bad replica stays noted

    scrub = Scrub(workshop, kind="asked", rate=rate, repair=repair)
    state = await scrub.run(told, anew=bool(anew))
    return {
        "checked": state.checked,
        "checked_bytes": state.checked_bytes,
        "bad": state.bad,
        "repaired": state.repaired,
        "unreachable": state.unreachable,
        "seconds": state.seconds,
    }


@operation("status", mutates=False)
async def _status(store: Store, _: dict[str, Any], __: Progress) -> dict[str, Any]:
    return await store_status(await _look(store))


def _absolute(text: str) -> Path:
    """A directory as a command names it: it must say all of it, since it runs elsewhere."""
    path = Path(text)
    if not path.is_absolute() or "\0" in text:
        raise ControlUsageError(f"'{text[:100]}' is not the whole path of a directory")
    return path
