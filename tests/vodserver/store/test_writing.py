"""Extents go onto the disks that take them."""

import dataclasses
import errno
import os
import time

import numpy as np
import pytest

from tests.vodserver.conftest import make_empty
from vodserver.allocation import ALLOCATIONS
from vodserver.errors import DiskError
from vodserver.store.catalog import Catalog, Extent
from vodserver.store.layout import extent_path, find_disks
from vodserver.store.sums import sums_of
from vodserver.store.writing import ExtentWriter

DATA = b"some film" * 10_000


@pytest.fixture
def catalog(tmp_path):
    with Catalog(make_empty(tmp_path) / "catalog.sqlite") as opened:
        opened.begin_ingest("f", "{}", 1.0)
        yield opened


@pytest.fixture
def notices():
    return []


@pytest.fixture
def writer(catalog, notices):
    paths = find_disks(catalog.disks(), catalog.store_id)
    policy = ALLOCATIONS.create("rda")
    with ExtentWriter(catalog, paths, policy, np.random.default_rng(1), notices.append) as made:
        yield made


def write(writer, disks, known=None):
    return writer.finish(writer.begin("f", 5, DATA, disks, known))


def holders(catalog):
    return {
        row.number
        for row in catalog.disks()
        if extent_path(row.path, "f", 5).exists()
        and extent_path(row.path, "f", 5).read_bytes() == DATA
    }


@pytest.fixture
def fail(catalog, monkeypatch):
    """Have every write to some disks fail."""
    original = os.open

    def install(*numbers, error=errno.EIO):
        roots = tuple(f"{catalog.disks()[number].path}/" for number in numbers)

        def failing(path, flags, *rest, **named):
            if flags & os.O_CREAT and str(path).startswith(roots):
                raise OSError(error, os.strerror(error))
            return original(path, flags, *rest, **named)

        monkeypatch.setattr(os, "open", failing)

    return install


def test_an_extent_goes_where_it_should(writer, catalog, notices):
    assert write(writer, (2, 0)) == Extent(5, len(DATA), (2, 0), sums_of(DATA))
    assert holders(catalog) == {0, 2}
    assert notices == catalog.garbage() == []


def test_another_stands_in_for_one_that_fails_in_its_place_of_the_order(
    writer, catalog, notices, fail
):
    fail(0)

    extent = write(writer, (2, 0))

    assert extent.disks[0] == 2
    assert extent.disks[1] in {1, 3}
    assert holders(catalog) == set(extent.disks)
    assert [(replica.number, replica.disk) for replica in catalog.garbage()] == [(5, 0)]
    assert len(notices) == 1


def test_two_that_fail_at_once_are_both_stood_in_for(writer, catalog, fail):
    fail(0, 2)

    assert set(write(writer, (2, 0)).disks) == holders(catalog) == {1, 3}


def test_when_too_few_are_left_the_failure_of_the_disk_is_told(writer, catalog, fail):
    fail(0, 1, 3, error=errno.ENOSPC)

    with pytest.raises(DiskError, match=r"disk\d is full"):
        write(writer, (2, 0))
    assert writer.room()[1].tolist().count(0) == 3


def test_who_is_told_of_a_failure_meets_no_write_that_goes_on(writer, catalog, monkeypatch):
    """Else the folder would be removed, and come to be again by the other replica."""
    real, ended = writer._put, []

    def put(writing, disk):
        if disk == 0:
            raise DiskError("the disk is broken")
        time.sleep(0.1)  # a disk that is slower than the one that fails
        real(writing, disk)
        ended.append(disk)

    monkeypatch.setattr(writer, "_put", put)
    for disk in (1, 3):
        catalog.set_disk(disk, state="draining")
    with pytest.raises(DiskError):
        write(writer, (0, 2))
    assert ended == [2]


def test_a_disk_that_is_not_active_is_stood_in_for(writer, catalog):
    catalog.set_disk(2, state="draining")

    extent = write(writer, (2, 0))

    assert 2 not in extent.disks
    assert [replica.disk for replica in catalog.garbage()] == [2]


def test_a_disk_that_is_wanted_again_is_garbage_no_more(writer, catalog):
    """Else whoever clears garbage meanwhile would take it away under our hands."""
    catalog.note_garbage("f", 5, 2)

    writing = writer.begin("f", 5, DATA, (2, 0), None)

    assert catalog.garbage() == []
    writer.finish(writing)


def test_a_replica_that_is_there_is_not_written_again(writer, catalog):
    extent = write(writer, (2, 0))
    paths = [extent_path(catalog.disks()[disk].path, "f", 5) for disk in extent.disks]
    before = [path.stat().st_ino for path in paths]
    paths[1].unlink()

    assert write(writer, (1, 3), known=extent) == extent

    assert paths[0].stat().st_ino == before[0]
    assert holders(catalog) == {0, 2}


def test_one_that_was_noted_with_other_bytes_is_written_where_it_should_go(writer, catalog):
    known = Extent(5, len(DATA), (2, 0), sums_of(b"other" + DATA[5:]))

    assert write(writer, (1, 3), known=known).disks == (1, 3)


def test_completing_makes_names_durable_or_names_the_disk(writer, tmp_path):
    extent = write(writer, (2, 0))
    writer.complete("f", [extent])

    with pytest.raises(DiskError, match="disk1 failed: No such file"):
        writer.complete("f", [dataclasses.replace(extent, disks=(1, 0))])


def test_completing_removes_what_is_no_replica(writer, catalog):
    """An `add` that was killed wrote to a disk that stood in for one that works again."""
    write(writer, (3, 1))
    extent = write(writer, (2, 0))

    writer.complete("f", [extent])

    assert holders(catalog) == {0, 2}
