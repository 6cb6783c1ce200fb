"""What a tracker does beside answering: it reads its list of films, and writes its memory down."""

import asyncio
import logging
import os
import time
from pathlib import Path
from typing import Final

from tracker.errors import TrackerError
from tracker.passkeys import Passkeys
from tracker.permitted import read_permitted, stamp
from tracker.service import Service
from tracker.snapshot import dump_swarms, restore_swarms
from tracker.state import Swarms

__all__ = [
    "keep_permitted",
    "keep_snapshot",
    "read_secret",
    "read_snapshot",
    "write_snapshot",
]

_LOG: Final = logging.getLogger("tracker")
_LOOK_SECONDS: Final = 2.0


async def keep_permitted(service: Service, films: Path) -> None:
    """Read the list of films again whenever it has changed; a broken one changes nothing."""
    known = stamp(films)
    while True:
        await asyncio.sleep(_LOOK_SECONDS)
        now = stamp(films)
        if now is None or now == known:
            continue
        known = now
        try:
            service.permit(read_permitted(films))
        except TrackerError as error:
            _LOG.warning("the films stay what they were: %s", error)


def read_secret(file: Path) -> Passkeys:
    """The passkeys of a secret that lies in a file.

    Raises:
        TrackerError: it cannot be read, or is too short.
    """
    try:
        return Passkeys(file.read_bytes())
    except OSError as error:
        raise TrackerError(f"the secret {file} cannot be read: {error.strerror}") from error


async def keep_snapshot(swarms: Swarms, file: Path, every_seconds: float) -> None:
    """Write the memory down again and again."""
    clock = asyncio.get_running_loop().time
    while True:
        await asyncio.sleep(every_seconds)
        data = dump_swarms(swarms, clock(), time.time())
        await asyncio.to_thread(_replace, file, data)


def write_snapshot(swarms: Swarms, file: Path) -> None:
    """Write the memory down once."""
    _replace(file, dump_swarms(swarms, asyncio.get_running_loop().time(), time.time()))


def read_snapshot(swarms: Swarms, file: Path) -> int:
    """Remember what was written down; returns how many peers. Without a whole file: nothing."""
    try:
        data = file.read_bytes()
        return restore_swarms(swarms, data, asyncio.get_running_loop().time(), time.time())
    except FileNotFoundError:
        return 0
    except (OSError, TrackerError) as error:
        _LOG.warning("%s is not used: %s", file, error)
        return 0


def _replace(file: Path, data: bytes) -> None:
    """Put a new file in the place of the old one at once: a crash leaves one of them whole."""
    beside = file.with_name(f"{file.name}.new")
    try:
        with beside.open("wb") as written:
            written.write(data)
            written.flush()
            os.fsync(written.fileno())
        beside.replace(file)
    except OSError as error:
        _LOG.warning("the snapshot %s cannot be written: %s", file, error)
