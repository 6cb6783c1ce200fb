"""In which order extents are verified."""

import asyncio
from types import SimpleNamespace

import pytest

from vodserver.seed.verifier import Verifier


class Log:
    def __init__(self):
        self.lines = []
        self.verifier = Verifier(self.check, self.spare)
        self.on_line = None

    async def check(self, offer, number):
        self.note(f"{offer.name}{number}")

    async def spare(self, offer, number):
        self.note(f"spare {offer.name}{number}")

    def note(self, line):
        self.lines.append(line)
        if self.on_line is not None:
            self.on_line(line)

    async def run(self, turns=50):
        task = asyncio.create_task(self.verifier.work())
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()


def title(name, extents):
    return SimpleNamespace(name=name, chosen=[None] * extents)


@pytest.fixture
def log():
    return Log()


async def test_titles_are_verified_one_after_another_and_spares_last(log):
    a, b = title("a", 2), title("b", 1)
    log.verifier.add_spares(a)
    log.verifier.begin(a)
    log.verifier.begin(b)
    await log.run()

    assert log.lines == ["a0", "a1", "b0", "spare a0", "spare a1"]


async def test_what_peers_lack_goes_before_all(log):
    a = title("a", 3)
    log.verifier.begin(a)
    log.on_line = lambda line: log.verifier.hasten(a, 0) if line == "a1" else None
    await log.run()

    assert log.lines == ["a0", "a1", "a0", "a2"]


async def test_a_new_title_interrupts_the_spares_which_are_taken_up_again(log):
    a, b = title("a", 2), title("b", 1)
    log.verifier.add_spares(a)

    def begin_b(line):
        if line == "spare a0" and "b0" not in log.lines:
            log.verifier.begin(b)

    log.on_line = begin_b
    await log.run()

    assert log.lines == ["spare a0", "b0", "spare a0", "spare a1"]


async def test_an_extent_is_hastened_once(log):
    a = title("a", 1)
    for _ in range(3):
        log.verifier.hasten(a, 0)
    await log.run()

    assert log.lines == ["a0"]


async def test_a_whole_disk_s_extents_are_hastened_in_no_time(log):
    """So many that looking through all of them for each would take minutes."""
    a = title("a", 50_000)
    for _ in range(2):
        for number in range(50_000):
            log.verifier.hasten(a, number)

    assert len(log.verifier._urgent) == 50_000
    await log.run(turns=3)
    assert log.lines[:2] == ["a0", "a1"]


async def test_it_goes_on_when_something_comes_later(log):
    task = asyncio.create_task(log.verifier.work())
    await asyncio.sleep(0)
    log.verifier.begin(title("a", 1))
    for _ in range(10):
        await asyncio.sleep(0)
    task.cancel()

    assert log.lines == ["a0"]
