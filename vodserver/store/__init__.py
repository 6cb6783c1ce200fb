"""Films on disks: the catalog, the extents, and the ways in and out of them."""

from vodserver.store.catalog import Extent, Title
from vodserver.store.disks import Disk, RealDisk
from vodserver.store.ingest import add_film
from vodserver.store.layout import create_store
from vodserver.store.store import Ready, Store, list_titles, open_store

__all__ = [
    "Disk",
    "Extent",
    "Ready",
    "RealDisk",
    "Store",
    "Title",
    "add_film",
    "create_store",
    "list_titles",
    "open_store",
]
