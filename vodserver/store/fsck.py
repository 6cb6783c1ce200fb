"""Compares the catalog with what is on the disks, and changes nothing.

Only names and sizes are looked at here; whether bytes are what was written is asked of the store,
which reads every replica through its disks' queues.
"""

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from vodserver.store.blocks import BLOCKS_NAME, fault_of
from vodserver.store.catalog import Catalog, DiskRow, Extent, Replica, Title
from vodserver.store.layout import EXTENTS_NAME, disk_owner
from vodserver.store.schema import BLOCKS_NOTE
from vodserver.store.sums import SUM_BYTES, SUM_SPAN

__all__ = ["KINDS", "NOTES", "Finding", "Kind", "Survey", "survey"]

Kind = Literal[
    "catalog",
    "disk",
    "missing",
    "size",
    "bad",
    "rotten",
    "unread",
    "few",
    "twice",
    "blocks",
    "unhashed",
    "orphan",
    "stale",
    "unknown",
    "unfinished",
    "waiting",
]

KINDS: Final[Mapping[Kind, str]] = {
    "catalog": "the catalog contradicts itself",
    "disk": "a disk is not there, or its directory belongs to another disk or store",
    "missing": "a replica's file is not there",
    "size": "a replica's file is longer or shorter than it was written",
    "bad": "a replica was found bad before and not made again since",
    "rotten": "a replica does not hold what was written (--deep)",
    "unread": "a replica could not be read now, for its disk does not answer (--deep)",
    "few": "an extent has fewer replicas than the store's placement makes",
    "twice": "an extent has two replicas on one disk, which count as one",
    "blocks": "a title's block hashes are not there or not what was written (all read by --deep)",
    "unhashed": "a title that has no block hashes yet: an older version took it in",
    "orphan": "a file or a folder of the store's own making that the catalog does not know",
    "stale": "files of removed titles or moved replicas that are still there",
    "unknown": "a file that is not the store's: never removed, move it away yourself",
    "unfinished": "a film that was stopped on its way in: 'add' goes on with it",
    "waiting": "files that go, or are looked for, when their disk is back",
}
"""What fsck finds."""

NOTES: Final = frozenset({"unfinished", "waiting", "unhashed"})
"""Findings that are no problem."""

_FOLDER: Final = re.compile(r"[0-9a-f]{16}")
_BLOCKS_DRAFT: Final = re.compile(r"\.([0-9a-f]{16})\.new")
_EXTENT: Final = re.compile(r"\d{6,}")
_DRAFT: Final = re.compile(r"\.(\d{6,})\.new")


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is not as the catalog says, or worth a note.

    Attributes:
        kind: see `KINDS`.
        message: for people.
        title: id of the title that it is about, if of one.
        folder: of the title or of the debris that it is about, if of one.
        extent: number of the extent that it is about, if of one.
        disk: number of the disk that it is about, if of one.
        path: of the file or directory that it is about, if of one.
    """

    kind: Kind
    message: str
    title: str = ""
    folder: str = ""
    extent: int | None = None
    disk: int | None = None
    path: Path | None = None

    @property
    def is_problem(self) -> bool:
        """Whether the store is not as it should be."""
        return self.kind not in NOTES


@dataclass(slots=True)
class Survey:
    """What was found, and in how much.

    Attributes:
        titles: how many there are.
        extents: how many those have.
        replicas: how many those should have on disks that are there.
        replica_bytes: bytes of those.
        findings: in the order of the disks and titles.
    """

    titles: int = 0
    extents: int = 0
    replicas: int = 0
    replica_bytes: int = 0
    findings: list[Finding] = field(default_factory=list)

    def problems(self) -> list[Finding]:
        """What is not as it should be."""
        return [finding for finding in self.findings if finding.is_problem]

    def counts(self) -> dict[str, int]:
        """Findings by kind."""
        return dict(Counter(finding.kind for finding in self.findings))


def survey(catalog: Catalog, disk_paths: Mapping[int, Path], copies: int) -> Survey:
    """Compare the catalog with the names and sizes of what is on the disks.

    Args:
        catalog: of the store that this process has locked.
        disk_paths: where each disk is that is there, by number.
        copies: replicas that the store's placement makes of an extent.

    Raises:
        StoreError: the catalog cannot be read at all.
    """
    return _Surveyor(catalog, disk_paths, copies).run()


class _Surveyor:
    def __init__(self, catalog: Catalog, disk_paths: Mapping[int, Path], copies: int) -> None:
        self._catalog = catalog
        self._paths = disk_paths
        self._copies = copies
        self._rows = {row.number: row for row in catalog.disks()}
        # Notes first, files after: what is noted meanwhile is not there yet when it is looked for.
        self._pending = set(catalog.pending())
        self._garbage = set(catalog.garbage())
        self._bad = {bad.replica: bad.fault for bad in catalog.bad()}
        self._debris = set(catalog.debris())
        self._ingests = catalog.unfinished()
        self._found = Survey()
        self._listed: dict[int, dict[str, dict[str, int]]] = {}

    def run(self) -> Survey:
        self._add(Finding("catalog", fault) for fault in self._catalog.faults())
        self._add(self._absent_disks())
        titles = self._catalog.titles()
        known = {title.folder for title in titles} | self._debris
        known |= {ingest.folder for ingest in self._ingests}
        for disk in self._paths:
            self._add(self._list(disk, known))
        for title in titles:
            self._found.titles += 1
            self._add(self._check_title(title))
            self._add(self._left_in(title))
        self._add(self._check_blocks(titles, known))
        self._add(self._stale({title.folder for title in titles}))
        self._add(
            Finding(
                "unfinished",
                f"a film waits to be gone on with by 'vodserver add' (folder {ingest.folder})",
                folder=ingest.folder,
            )
            for ingest in self._ingests
        )
        return self._found

    def _add(self, findings: Iterable[Finding]) -> None:
        self._found.findings.extend(findings)

    def _absent_disks(self) -> Iterator[Finding]:
        store = self._catalog.store_id
        for row in self._rows.values():
            if row.state not in {"active", "draining"} or row.number in self._paths:
                continue
            owner = disk_owner(row.path)
            if owner is None:
                why = "is not there"
            elif owner[0] != store:
                why = "belongs to another store"
            elif owner[1] != row.id:
                why = "is another disk of this store"
            else:
                why = "is not in use"
            yield Finding("disk", f"disk {row.number}: {row.path} {why}", disk=row.number)

    def _list(self, disk: int, known: set[str]) -> Iterator[Finding]:
        """Note the files in every known folder of a disk; tell of what else is there."""
        listed = self._listed[disk] = {}
        try:
            entries = sorted(os.scandir(self._paths[disk] / EXTENTS_NAME), key=lambda e: e.name)
        except OSError as error:
            yield Finding("disk", f"disk {disk}: {self._paths[disk]}: {error.strerror}", disk=disk)
            return
        for entry in entries:
            path = Path(entry.path)
            is_folder = entry.is_dir(follow_symlinks=False)
            if is_folder and entry.name in known:
                listed[entry.name] = _sizes(path)
            elif is_folder and _FOLDER.fullmatch(entry.name):
                yield Finding("orphan", f"{path} is of no title", disk=disk, path=path)
            else:
                yield Finding("unknown", f"{path} is not the store's", disk=disk, path=path)

    def _check_title(self, title: Title) -> Iterator[Finding]:
        whole = sum(extent.size for extent in title.extents)
        numbers = [extent.number for extent in title.extents]
        if whole != title.film_bytes or numbers != list(range(len(numbers))):
            yield Finding(
                "catalog", f"the extents of '{title.id}' are not its film", title=title.id
            )
        for extent in title.extents:
            self._found.extents += 1
            yield from self._check_extent(title, extent)

    def _check_blocks(self, titles: Iterable[Title], known: set[str]) -> Iterator[Finding]:
        """Compare what hashes of blocks there are with those that there should be."""
        for title in titles:
            about: dict[str, Any] = {"title": title.id, "folder": title.folder}
            if not title.block_roots:
                yield Finding("unhashed", f"'{title.id}' has no block hashes yet", **about)
            elif (fault := fault_of(self._catalog.path.parent, title, deep=False)) is not None:
                yield Finding("blocks", fault, **about)
        folder = self._catalog.path.parent / BLOCKS_NAME
        making = self._catalog.get_note(BLOCKS_NOTE)
        ingests = {ingest.folder for ingest in self._ingests} | {making}
        for name in sorted(_sizes(folder)):
            path = folder / name
            draft = _BLOCKS_DRAFT.fullmatch(name)
            if not (draft or _FOLDER.fullmatch(name)) or not path.is_file():
                yield Finding("unknown", f"{path} is not the store's", path=path)
            elif (draft and draft[1] not in ingests) or (not draft and name not in known):
                yield Finding("orphan", f"{path} is of no title", path=path)

    def _check_extent(self, title: Title, extent: Extent) -> Iterator[Finding]:
        what = f"extent {extent.number} of '{title.id}'"
        of: dict[str, Any] = {"title": title.id, "folder": title.folder, "extent": extent.number}
        if len(extent.sums) != -(-extent.size // SUM_SPAN) * SUM_BYTES:
            yield Finding("catalog", f"{what} has not as many checksums as it needs", **of)
        counted = {disk for disk in extent.disks if self._counts(self._rows.get(disk))}
        if len(set(extent.disks)) < len(extent.disks):
            yield Finding("twice", f"{what} is placed twice on one disk: {extent.disks}", **of)
        elif len(counted) < self._copies:
            yield Finding("few", f"{what} has {len(counted)} of {self._copies} replicas", **of)
        for disk in sorted(counted & set(self._paths)):
            self._found.replicas += 1
            self._found.replica_bytes += extent.size
            fault = self._fault(title, extent, disk)
            if fault is not None:
                kind, why = fault
                yield Finding(kind, f"{what} on disk {disk} {why}", disk=disk, **of)
        for disk in set(extent.disks) - counted:  # lost, and there all the same
            self._listed.get(disk, {}).get(title.folder, {}).pop(f"{extent.number:06d}", None)

    @staticmethod
    def _counts(row: DiskRow | None) -> bool:
        return row is not None and row.state in {"active", "draining"}

    def _fault(self, title: Title, extent: Extent, disk: int) -> tuple[Kind, str] | None:
        files = self._listed[disk].get(title.folder, {})
        size = files.pop(f"{extent.number:06d}", None)
        if size is None:
            return "missing", "is not there"
        if size != extent.size:
            return "size", f"has {size} bytes and not {extent.size}"
        fault = self._bad.get(Replica(title.folder, extent.number, disk))
        return None if fault is None else ("bad", f"is bad: {fault}")

    def _left_in(self, title: Title) -> Iterator[Finding]:
        """What is in a title's folders and was not placed there."""
        for disk, listed in self._listed.items():
            folder = self._paths[disk] / EXTENTS_NAME / title.folder
            for name in sorted(listed.get(title.folder, {})):
                path = folder / name
                draft = _DRAFT.fullmatch(name)
                number = draft[1] if draft else name
                about: dict[str, Any] = {
                    "title": title.id,
                    "folder": title.folder,
                    "disk": disk,
                    "path": path,
                }
                if not _EXTENT.fullmatch(number):
                    yield Finding("unknown", f"{path} is not the store's", **about)
                elif Replica(title.folder, int(number), disk) not in self._pending | self._garbage:
                    yield Finding("orphan", f"{path} is placed nowhere", **about)

    def _stale(self, folders: set[str]) -> Iterator[Finding]:
        away = {
            row.number
            for row in self._rows.values()
            if self._counts(row) and row.number not in self._paths
        }
        for folder in sorted(self._debris):
            there = any(folder in listed for listed in self._listed.values())
            kind: Kind = "waiting" if away and not there else "stale"
            yield Finding(kind, f"folder {folder} is of a title that is no more", folder=folder)
        # One that is being written or moved at this moment is of a title.
        gone = {replica for replica in self._pending if replica.folder not in folders}
        for replica in sorted(self._garbage | gone):
            kind = "waiting" if replica.disk in away else "stale"
            yield Finding(
                kind,
                f"extent {replica.number} in folder {replica.folder} on disk {replica.disk} "
                "is placed there no more",
                folder=replica.folder,
                extent=replica.number,
                disk=replica.disk,
            )


def _sizes(folder: Path) -> dict[str, int]:
    """Sizes of the files in a folder by name; -1 for what is no file."""
    sizes: dict[str, int] = {}
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                is_file = entry.is_file(follow_symlinks=False)
                sizes[entry.name] = entry.stat().st_size if is_file else -1
    except OSError:  # it fails here as it will when it is read: what is in it counts as missing
        return sizes
    return sizes
