"""The films that servers are compared with: the same noise as plain files, and in a store."""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from experiments.arrays.mounted import film_name
from experiments.arrays.scenario import ArrayScenario
from experiments.errors import LabError
from toast.common.errors import ToastError
from toast.common.timemap import TimeMap
from toast.media.probe import MediaInfo
from vodserver.store import add_film, create_store, open_store

__all__ = ["Library", "make_library"]


@dataclass(frozen=True, slots=True)
class Library:
    """Films in a folder, and in a store.

    Attributes:
        films: folder of film-0.bin and so on.
        store: folder of the store, which has them as film-0 and so on.
        extents: of every film.
    """

    films: Path
    store: Path
    extents: int


def make_library(
    folder: Path,
    scenario: ArrayScenario,
    numbers: Sequence[int],
    seed: int,
    *,
    unwanted: Callable[[], bool] = lambda: False,
) -> Library:
    """Make the films of these numbers, unless they are all there.

    Args:
        folder: of its own.
        scenario: disks, extents, and how long a run lasts: films outlast it.
        numbers: of films.
        seed: of films and placement.
        unwanted: whether nobody waits for them any more; asked before each.

    Raises:
        LabError: they cannot be made.
    """
    seconds = scenario.load.window_seconds + scenario.hold_seconds + scenario.lead_seconds
    extents = int(seconds / scenario.extent_seconds) + 2
    library = Library(folder / "films", folder / "store", extents)
    wanted = f"{sorted(numbers)} {extents} {scenario.unit_bytes}"
    ready = folder / "ready"
    if ready.exists() and ready.read_text("utf-8") == wanted:
        return library
    piece = scenario.unit_bytes  # a piece is an extent, and so exactly as long as it should be
    size, duration = extents * piece, extents * scenario.extent_seconds
    media = MediaInfo("raw", duration, "noise", None, 0, 0, None, TimeMap.constant(size, duration))
    rng = np.random.default_rng([seed, 8])
    try:
        shutil.rmtree(folder, ignore_errors=True)
        library.films.mkdir(parents=True)
        disks = [folder / f"disk{n}" for n in range(len(scenario.disks))]
        create_store(library.store, disks, allocation=scenario.allocation)
        with open_store(library.store) as store:
            for number in sorted(numbers):
                if unwanted():
                    raise LabError("they are not wanted any more")
                film = library.films / film_name(number)
                film.write_bytes(rng.bytes(size))
                name = f"film-{number}"
                title = add_film(store, film, name=name, media=media, piece_bytes=piece, rng=rng)
                if title.extent_bytes != piece:
                    raise LabError(f"extents are of {title.extent_bytes} bytes, not {piece}")
        ready.write_text(wanted, encoding="utf-8")
    except (OSError, ToastError) as error:
        raise LabError(f"the films cannot be made in {folder}: {error}") from error
    return library
