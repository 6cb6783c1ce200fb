"""The file of a title's block hashes: written in the pass that takes a film in, read verified."""

import hashlib
import os

import pytest

from tests.vodserver.conftest import flip_byte, unlock
from toast.common.blockhashes import HASH_BYTES, check, leaves, leaves_bytes, leaves_span
from toast.common.geometry import BLOCK_BYTES
from vodserver.errors import ReadError, StoreError
from vodserver.store import add_film
from vodserver.store.blocks import (
    BlocksWriter,
    blocks_path,
    draft_of,
    fault_of,
    geometry_of,
    read_blocks,
    remove_blocks,
)
from vodserver.store.removal import clear_debris, remove_title
from vodserver.store.schema import BLOCKS_NOTE
from vodserver.store.sums import SUM_SPAN

SPAN_BLOCKS = SUM_SPAN // HASH_BYTES


def hashes_of(home):
    return blocks_path(home.path, home.title.folder)


def test_what_add_writes_are_the_hashes_of_the_film_s_blocks(pristine):
    film = pristine.film.read_bytes()
    blocks = [film[at : at + BLOCK_BYTES] for at in range(0, len(film), BLOCK_BYTES)]

    written = hashes_of(pristine).read_bytes()

    assert written == b"".join(hashlib.sha256(block).digest() for block in blocks)
    assert len(written) == leaves_bytes(geometry_of(pristine.title))


def test_every_piece_has_its_root_in_the_catalog(pristine):
    title = pristine.title
    film, full = geometry_of(title), title.piece_bytes // BLOCK_BYTES
    written = hashes_of(pristine).read_bytes()

    assert len(title.block_roots) == HASH_BYTES * film.pieces
    for piece in range(film.pieces):
        start, end = leaves_span(film, piece)
        root = title.block_roots[piece * HASH_BYTES : (piece + 1) * HASH_BYTES]
        assert check(written[start:end], root, full)


def test_they_are_read_back_at_any_place(pristine):
    written = hashes_of(pristine).read_bytes()
    for start, end in ((0, 32), (64, 96), (5, 7), (len(written) - 3, len(written))):
        assert read_blocks(pristine.path, pristine.title, start, end) == written[start:end]
    assert fault_of(pristine.path, pristine.title, deep=True) is None


def test_rot_is_never_read(home):
    flip_byte(hashes_of(home), 40)

    with pytest.raises(ReadError, match="block hashes of 'clock' are not what was written"):
        read_blocks(home.path, home.title, 0, 32)
    assert fault_of(home.path, home.title, deep=False) is None
    assert "not what was written" in fault_of(home.path, home.title, deep=True)


def test_a_file_that_is_short_or_gone(home):
    unlock(hashes_of(home))
    os.truncate(hashes_of(home), 100)
    with pytest.raises(ReadError, match="are not all there"):
        read_blocks(home.path, home.title, 96, 128)
    assert "have 100 bytes and not" in fault_of(home.path, home.title, deep=False)

    hashes_of(home).unlink()
    with pytest.raises(ReadError, match="cannot be read: No such file"):
        read_blocks(home.path, home.title, 0, 1)
    assert "cannot be read" in fault_of(home.path, home.title, deep=False)


@pytest.mark.parametrize("blocks", [1, 3, 4, SPAN_BLOCKS - 1, SPAN_BLOCKS, SPAN_BLOCKS + 5])
@pytest.mark.parametrize("step", [1, 1000])
def test_the_writer_does_not_care_how_the_film_is_handed_to_it(tmp_path, blocks, step, pristine):
    """Three blocks to a piece; up to more hashes than one checksum is over."""
    film = os.urandom(64) * (BLOCK_BYTES // 64)
    with BlocksWriter(tmp_path, "f", 3 * BLOCK_BYTES) as writer:
        for at in range(0, blocks, step):
            writer.add(film * min(step, blocks - at))
        roots, sums = writer.finish()

    assert blocks_path(tmp_path, "f").read_bytes() == leaves(film) * blocks
    assert len(roots) == HASH_BYTES * -(-blocks // 3)
    assert len(sums) == 8 * -(-blocks // SPAN_BLOCKS)


def test_what_is_not_finished_leaves_nothing(tmp_path):
    with BlocksWriter(tmp_path, "f", BLOCK_BYTES) as writer:
        writer.add(b"film")
        assert draft_of(blocks_path(tmp_path, "f")).exists()

    assert list((tmp_path / "blocks").iterdir()) == []


def test_a_place_that_cannot_be_written(tmp_path):
    (tmp_path / "blocks").write_bytes(b"in the way")

    with pytest.raises(StoreError, match="cannot write hashes of blocks to"):
        BlocksWriter(tmp_path, "f", BLOCK_BYTES).open()


def test_an_add_that_cannot_write_them_leaves_nothing(empty, clock_film):
    (empty / "blocks").write_bytes(b"in the way")
    from vodserver.store import open_store  # noqa: PLC0415

    with open_store(empty) as store:
        with pytest.raises(StoreError, match="cannot write hashes of blocks to"):
            add_film(store, clock_film)
        assert store.titles() == []
        assert store.catalog.ingests() == []
    assert list(empty.parent.glob("disk*/extents/*")) == []


def test_they_go_with_their_title(home):
    with home.open() as store:
        remove_title(store.catalog, store.disk_paths, "clock")

        assert not hashes_of(home).exists()
        assert store.catalog.debris() == []


def test_a_removal_that_was_killed_is_ended_at_the_next_opening(home):
    with home.open() as store:
        store.catalog.remove_title("clock")
    assert hashes_of(home).exists()
    with home.open():
        assert not hashes_of(home).exists()


@pytest.mark.parametrize("named", [True, False])
def test_a_making_that_was_killed_is_cleared_away(home, named):
    """Killed after the file got its name, or before; not yet in the catalog."""
    path = hashes_of(home)
    if not named:
        path.rename(draft_of(path))
    with home.open() as store:
        store.catalog._db.execute("UPDATE titles SET block_roots=x''")
        store.catalog.set_note(BLOCKS_NOTE, home.title.folder)

        clear_debris(store.catalog, store.disk_paths)

        assert list(path.parent.iterdir()) == []
        assert store.catalog.get_note(BLOCKS_NOTE) is None


def test_those_that_a_title_has_stay_when_their_remaking_was_killed(home):
    path = hashes_of(home)
    draft_of(path).write_bytes(b"begun")
    with home.open() as store:
        store.catalog.set_note(BLOCKS_NOTE, home.title.folder)

        clear_debris(store.catalog, store.disk_paths)

    assert list(path.parent.iterdir()) == [path]


def test_removing_what_is_not_there_is_no_fault(tmp_path):
    assert remove_blocks(tmp_path, "f")
    blocks_path(tmp_path, "f").mkdir(parents=True)
    assert not remove_blocks(tmp_path, "f")
