"""What tests of upkeep share: damage, whole checks, and real file systems that are small."""

import hashlib
import subprocess
from collections import Counter

import pytest

from vodserver.store.catalog import CATALOG_NAME, Catalog
from vodserver.store.layout import extent_path
from vodserver.store.sums import sums_of


def assert_whole(home, *, copies=2):
    """Every extent of the catalog lies, as written, on as many disks as it should, and not else."""
    with Catalog(home.path / CATALOG_NAME) as catalog:
        rows = {row.number: row.path for row in catalog.disks()}
        (title,) = catalog.titles()
        assert catalog.pending() == []
        assert catalog.garbage() == []
        assert catalog.bad() == []
    placed = set()
    for extent in title.extents:
        assert len(set(extent.disks)) == copies
        for disk in extent.disks:
            path = extent_path(rows[disk], title.folder, extent.number)
            assert sums_of(path.read_bytes()) == extent.sums
            placed.add(path)
    found = {
        path
        for disk in rows.values()
        if (disk / "extents").exists()
        for path in (disk / "extents").rglob("*")
        if path.is_file()
    }
    assert found == placed
    return title


def count_on(title):
    """Replicas by disk."""
    return Counter(disk for extent in title.extents for disk in extent.disks)


async def film_digest(store):
    """SHA-256 of the whole film as the store gives it."""
    (title,) = store.titles()
    digest = hashlib.sha256()
    for at in range(0, title.film_bytes, 2**20):
        digest.update(await store.read(title, at, min(at + 2**20, title.film_bytes)))
    return digest.hexdigest()


@pytest.fixture
def mount(tmp_path):
    """Mounts a file system of its own in a new directory: `mount("name", "4m")`."""
    mounted = []

    def run(*words):
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"nothing can be mounted here (root is needed): {done.stderr.strip()}")

    def make(name, size):
        path = tmp_path / name
        path.mkdir()
        run("mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(path))
        mounted.append(path)
        return path

    make.read_only = lambda path: run("mount", "-o", "remount,ro", str(path))
    make.writable = lambda path: run("mount", "-o", "remount,rw", str(path))
    make.away = lambda path: run("umount", "-l", str(path))
    yield make
    for path in mounted:
        subprocess.run(["umount", "-l", str(path)], capture_output=True, check=False)
