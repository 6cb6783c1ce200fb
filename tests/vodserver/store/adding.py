"""What tests of films on their way in share."""

from pathlib import Path

import pytest

from vodserver.errors import IngestStopped
from vodserver.store import add_film
from vodserver.store.layout import extent_path


def leftovers(store: Path) -> list[str]:
    """Everything on the store's disks but what an empty store has."""
    return sorted(
        str(path.relative_to(store.parent))
        for disk in store.parent.glob("disk*")
        for path in (disk / "extents").iterdir()
    )


def stopper(extents):
    """Says stop when so many extents are done."""
    left = [extents + 1]

    def stop():
        left[0] -= 1
        return left[0] == 0

    return stop


def stopped(store, film, extents, **options):
    """An add that is stopped after so many extents; the folder that it wrote into."""
    with pytest.raises(IngestStopped):
        add_film(store, film, stop=stopper(extents), **options)
    (folder,) = store.catalog.ingests()
    return folder


def inodes(store: Path) -> dict[str, int]:
    return {
        str(path.relative_to(store.parent)): path.stat().st_ino
        for path in store.parent.glob("disk*/extents/*/*")
    }


def content(store, title):
    """The film as each copy of it is on the disks: there must be as many as placed."""
    return {
        b"".join(
            extent_path(store.disk_paths[e.disks[copy]], title.folder, e.number).read_bytes()
            for e in title.extents
        )
        for copy in range(len(title.extents[0].disks))
    }
