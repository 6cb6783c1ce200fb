"""What the seed sees for itself: disks that fail at the question, hang, or go."""

import asyncio
import errno
import shutil
import threading
from pathlib import Path

import pytest

from vodserver.seed import watch as watch_module
from vodserver.seed.offers import Offers
from vodserver.store.layout import ID_NAME

pytestmark = pytest.mark.slow


async def until(condition, seconds=10.0):
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - the seed tells nobody
            await asyncio.sleep(0.01)


def ask_otherwise(monkeypatch, disk, answer):
    """Have one disk's id file answer in another way."""
    real = Path.is_file

    def is_file(path):
        return answer() if path == disk / ID_NAME else real(path)

    monkeypatch.setattr(Path, "is_file", is_file)


async def test_a_disk_that_fails_at_the_question_is_gone_and_the_watch_goes_on(
    home, seeding, monkeypatch
):
    def fail():
        raise OSError(errno.EIO, "Input/output error")

    with home.open() as store:
        seed = await seeding(store, watch_seconds=0.02)
        await seed.wait_offered()
        ask_otherwise(monkeypatch, home.disks[1], fail)
        await until(lambda: seed._watch._gone == {1})
        monkeypatch.undo()
        await until(lambda: seed._watch._gone == set())
        await seed.close()


async def test_a_disk_that_hangs_holds_up_no_other(home, seeding, monkeypatch):
    monkeypatch.setattr(watch_module, "_PATIENCE_SECONDS", 0.05)
    let_go = threading.Event()
    with home.open() as store:
        seed = await seeding(store, watch_seconds=0.02)
        await seed.wait_offered()
        ask_otherwise(monkeypatch, home.disks[1], lambda: let_go.wait(20))
        await until(lambda: 1 in seed._watch._asking and seed._watch._asking.keys() == {1})
        shutil.rmtree(home.disks[2])
        await until(lambda: 2 in seed._watch._gone)
        assert 1 not in seed._watch._gone
        let_go.set()
        await until(lambda: not seed._watch._asking)
        await seed.close()


async def test_an_error_of_ours_does_not_end_the_verification(home, seeding, monkeypatch, caplog):
    real, failed = Offers._find, []

    async def find(offers, offer, number):
        if number == 2 and not failed:
            failed.append(number)
            raise RuntimeError("an error of ours")
        await real(offers, offer, number)

    monkeypatch.setattr(Offers, "_find", find)
    with home.open() as store:
        seed = await seeding(store, watch_seconds=0.02, pass_seconds=0.05)
        await seed.wait_offered()
        offer = seed._offers.get("clock")
        await until(lambda: None not in offer.chosen)  # the next pass finds it
        await seed.close()
    assert failed
    assert "cannot be verified" in caplog.text


async def test_the_files_of_all_titles_are_looked_at_in_turn(home, seeding, monkeypatch):
    monkeypatch.setattr(watch_module, "_LOOKS", 3)
    looked = []
    with home.open() as store:
        seed = await seeding(store, watch_seconds=1000.0)
        await seed.wait_offered()
        monkeypatch.setattr(seed._watch, "look_at", lambda _, numbers: looked.extend(numbers))
        for _ in range(4):
            seed._watch._look_at_files()
        await seed.close()
    extents = len(home.title.extents)
    assert looked == [*range(extents), *range(3)]
