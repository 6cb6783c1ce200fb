"""Block hashes are made of what is in the store, unasked, and again when they are bad."""

import asyncio

import pytest

from tests.vodserver.conftest import flip_byte
from vodserver.errors import ReadError, StoreError
from vodserver.store.blocks import blocks_path, draft_of
from vodserver.store.removal import remove_title
from vodserver.store.schema import BLOCKS_NOTE
from vodserver.store.upkeep import blocks as blocks_module
from vodserver.store.upkeep.blocks import BlocksKeeper, make_blocks
from vodserver.store.upkeep.workshop import workshop_of


@pytest.fixture
def path(home):
    return blocks_path(home.path, home.title.folder)


@pytest.fixture
def unhashed(home, path):
    """The store as an older version left it; yields it opened."""
    path.unlink()
    with home.open() as store:
        store.catalog._db.execute("UPDATE titles SET block_roots=x'', block_sums=x''")
    with home.open() as store:
        yield store


async def until(holds, seconds=10):
    async with asyncio.timeout(seconds):
        while not holds():  # noqa: ASYNC110 - files wake nobody
            await asyncio.sleep(0.005)


async def test_they_are_what_add_would_have_made(home, unhashed, pristine, path):
    assert await make_blocks(workshop_of(unhashed), "clock")

    wanted = blocks_path(pristine.path, pristine.title.folder).read_bytes()
    assert path.read_bytes() == wanted
    (title,) = unhashed.titles()
    assert (title.block_roots, title.block_sums) == (
        pristine.title.block_roots,
        pristine.title.block_sums,
    )
    assert unhashed.catalog.titles() == [title]
    assert unhashed.catalog.get_note(BLOCKS_NOTE) is None
    assert await unhashed.read_blocks(title, 0, 32) == wanted[:32]


async def test_good_ones_are_left_alone(home, path):
    with home.open() as store:
        before = path.stat().st_ino, path.stat().st_mtime_ns
        assert not await make_blocks(workshop_of(store), "clock")
        assert not await make_blocks(workshop_of(store), "none")
        assert (path.stat().st_ino, path.stat().st_mtime_ns) == before


async def test_a_film_that_cannot_be_read_leaves_nothing(home, unhashed, path):
    for copy in (0, 1):
        flip_byte(home.replica(3, copy), 9)

    with pytest.raises(ReadError):
        await make_blocks(workshop_of(unhashed), "clock")

    assert list(path.parent.iterdir()) == []
    assert unhashed.catalog.get_note(BLOCKS_NOTE) is None


async def test_one_that_is_stopped_leaves_nothing(unhashed, path):
    making = asyncio.ensure_future(make_blocks(workshop_of(unhashed), "clock", rate=1e5))
    await until(draft_of(path).exists)
    making.cancel()
    await asyncio.wait({making})

    assert list(path.parent.iterdir()) == []
    assert unhashed.catalog.get_note(BLOCKS_NOTE) is None


async def test_a_title_that_is_removed_meanwhile_leaves_nothing(unhashed, path):
    making = asyncio.ensure_future(make_blocks(workshop_of(unhashed), "clock", rate=1e6))
    await until(draft_of(path).exists)
    remove_title(unhashed.catalog, unhashed.disk_paths, "clock")
    unhashed.exclude("clock")

    assert not await making
    assert list(path.parent.iterdir()) == []


async def test_a_title_that_is_removed_at_the_last_moment_leaves_nothing(
    unhashed, path, monkeypatch
):
    real = blocks_module._hash

    async def remove_after(*arguments):
        hashes = await real(*arguments)
        remove_title(unhashed.catalog, unhashed.disk_paths, "clock")
        path.write_bytes(b"made just before, and named just after")
        return hashes

    monkeypatch.setattr(blocks_module, "_hash", remove_after)
    with pytest.raises(StoreError, match="no title in folder"):
        await make_blocks(workshop_of(unhashed), "clock")

    assert list(path.parent.iterdir()) == []


@pytest.fixture
async def keep():
    """Have a store's block hashes kept, as a server does."""
    ends = []

    def start(store):
        keeper = BlocksKeeper(workshop_of(store), 1e12)
        unsubscribe = keeper.start()
        ends.append((unsubscribe, asyncio.ensure_future(keeper.run())))

    yield start
    for unsubscribe, task in ends:
        unsubscribe()
        task.cancel()
        await asyncio.wait({task})


async def test_a_server_makes_those_that_are_missing(unhashed, keep, path):
    keep(unhashed)
    await until(lambda: unhashed.titles()[0].block_roots)
    assert path.exists()


async def test_a_server_makes_bad_ones_again_when_they_were_met(home, keep, path):
    hashes = path.read_bytes()
    flip_byte(path, 7)
    with home.open() as store:
        keep(store)
        (title,) = store.titles()
        with pytest.raises(ReadError):
            await store.read_blocks(title, 0, 32)
        await until(lambda: path.read_bytes() == hashes)
        assert await store.read_blocks(title, 0, 32) == hashes[:32]


async def test_what_cannot_be_made_yet_is_tried_again(home, unhashed, keep, path, monkeypatch):
    monkeypatch.setattr(blocks_module, "_RETRY_SECONDS", 0.05)
    for copy in (0, 1):
        flip_byte(home.replica(3, copy), 9)
    keep(unhashed)
    await asyncio.sleep(0.1)
    assert unhashed.titles()[0].block_roots == b""

    for copy in (0, 1):
        flip_byte(home.replica(3, copy), 9)
    await until(lambda: unhashed.titles()[0].block_roots)
    assert path.exists()
