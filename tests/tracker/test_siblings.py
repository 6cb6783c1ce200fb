"""Siblings: whoever comes is told everything, and from then on what is new."""

import asyncio

import pytest

from tracker.siblings import SiblingPlace, Siblings


class Fakes:
    """The events of one process."""

    def __init__(self, *known):
        self.known = list(known)
        self.told = []
        self.announces = 0

    def everything(self):
        return iter(self.known)

    def counts(self):
        return {"announces": self.announces}

    def heard(self, news):
        self.told.append(news)


@pytest.fixture(params=["f", "f" * 120], ids=["short path", "long path"])
def folder(request, tmp_path):
    place = tmp_path / request.param
    place.mkdir()
    return place


@pytest.fixture
async def family(folder):
    """Starts processes that are none, by number; all end at the end."""
    running = {}

    async def start(number, events, count=2):
        siblings = Siblings(SiblingPlace(folder, number, count, b"s" * 32), events)
        await siblings.start()
        running[number] = siblings
        return siblings

    async def stop(number):
        await running.pop(number).close()

    start.stop = stop
    yield start
    for number in list(running):
        await stop(number)


async def until(condition):
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110  (what is waited for comes over a socket)
            await asyncio.sleep(0.005)


async def test_who_comes_is_told_everything_and_then_what_is_new(family):
    old, young = Fakes(b"one", b"two"), Fakes()
    elder = await family(0, old)
    younger = await family(1, young)
    await until(lambda: young.told == [b"one", b"two"])
    elder.send([b"three"])
    younger.send([b"four"])
    await until(lambda: young.told[2:] == [b"three"] and old.told == [b"four"])


async def test_counts_of_all_are_known_to_each(family):
    first, second = Fakes(), Fakes()
    one = await family(0, first)
    other = await family(1, second)
    await until(lambda: one.connected == other.connected == 1)
    first.announces = 7
    one.send([])
    await until(lambda: other.counts_of_others() == [{"announces": 7.0}])


async def test_one_that_is_started_anew_is_told_everything_again_and_its_counts_are_gone(family):
    old, young = Fakes(b"all"), Fakes()
    elder = await family(0, old)
    await family(1, young)
    await until(lambda: young.told == [b"all"] and elder.counts_of_others())
    await family.stop(1)
    await until(lambda: not elder.counts_of_others())
    again = Fakes()
    await family(1, again)
    await until(lambda: again.told == [b"all"])


async def test_who_does_not_keep_up_is_told_everything_anew(family):
    old, young = Fakes(b"all"), Fakes()
    elder = await family(0, old)
    await family(1, young)
    await until(lambda: young.told == [b"all"])
    elder.send([b"news"] * 2000)  # more than is kept for anyone
    elder.send([b"more"])
    await until(lambda: young.told.count(b"all") == 2)


@pytest.mark.parametrize(
    "nonsense",
    [b"\0\0\0\0", b"\xff\xff\xff\xff", b"\0\0\0\3c{}", b"\0\0\0\5c[1]", b"\0\0\0\2?x", b"\0"],
)
async def test_nonsense_ends_the_connection_alone(family, folder, nonsense, monkeypatch):
    events = Fakes()
    await family(0, events)
    monkeypatch.chdir(folder)
    reader, writer = await asyncio.open_unix_connection("0.sock")
    writer.write(nonsense)
    writer.write_eof()
    async with asyncio.timeout(10):
        assert await reader.read() == b""
    writer.close()
    late = Fakes(b"all")
    await family(1, late)
    await until(lambda: events.told == [b"all"])
