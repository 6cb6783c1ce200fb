"""Workers, with processes that are none."""

import asyncio
from dataclasses import asdict

import pytest

from experiments.errors import LabError
from experiments.real.crew import Crew
from experiments.real.emulated import worker_command
from experiments.swarms.result import ViewerRow
from experiments.swarms.scenario import Scenario


class FakeChild:
    """A process that ends when it is told so."""

    def __init__(self, name, on_event, pid):
        self.name = name
        self.say = on_event
        self.pid = pid
        self.told = []
        self.returncode = None
        self.last_words = "killed"
        self._ended = asyncio.Event()

    async def wait_event(self, kind, *, timeout_seconds):
        return {"event": kind, "within": timeout_seconds}

    async def wait_end(self):
        await self._ended.wait()
        return self.returncode

    def tell(self, message):
        self.told.append(message)

    def end(self, code):
        self.returncode = code
        self._ended.set()


class FakeProcesses:
    """Starts them."""

    def __init__(self):
        self.children = []

    async def start(self, name, command, *, on_event, listens):
        assert command[1:] == ["-m", "experiments.real.worker"]
        assert listens
        self.children.append(FakeChild(name, on_event, 100 + len(self.children)))
        return self.children[-1]


def row(number):
    zeros = dict.fromkeys(ViewerRow.__dataclass_fields__, 0)
    known = {"start_seconds": 0.1, "origin_bytes_by_reason": {}, "is_right": True}
    return {"event": "row"} | asdict(ViewerRow(**zeros | known | {"number": number}))


def progress(**counts):
    zeros = dict.fromkeys(
        ("arrived", "watching", "played", "from_peers", "received", "late_seconds"), 0
    )
    return {"event": "progress"} | zeros | counts


async def make(viewers, workers):
    processes = FakeProcesses()
    crew = Crew(Scenario(viewers=viewers), [worker_command()] * workers)
    await crew.start(processes)
    return crew, processes.children


async def test_viewers_are_dealt_round():
    crew, (first, second) = await make(5, 2)
    crew.begin(["a", "b", "c", "d", "e"], {"source": "s"})

    assert first.told == [
        {"do": "host", "source": "s", "viewers": [0, 2, 4], "hosts": ["a", "c", "e"]}
    ]
    assert second.told == [{"do": "host", "source": "s", "viewers": [1, 3], "hosts": ["b", "d"]}]
    assert crew.pids == [100, 101]
    crew.stop()
    assert second.told[-1] == {"do": "stop"}


async def test_there_are_no_more_workers_than_viewers():
    _, children = await make(1, 4)
    assert len(children) == 1


async def test_counts_add_up_over_the_workers():
    crew, (first, second) = await make(4, 2)
    assert crew.offload is None
    first.say(progress(arrived=2, watching=1, played=1, from_peers=30, received=100))
    second.say(progress(arrived=1, watching=1, from_peers=20, received=100))
    assert (crew.count("arrived"), crew.count("watching")) == (3, 2)
    assert crew.offload == 0.25
    assert not crew.everyone_played.is_set()

    first.say(progress(played=2))
    second.say(progress(played=2))
    assert crew.everyone_played.is_set()


async def test_the_worst_worker_says_how_busy_the_machine_is():
    crew, (first, second) = await make(2, 2)
    assert crew.late_seconds == 0.0
    first.say(progress(late_seconds=0.02))
    second.say(progress(late_seconds=0.3))
    assert crew.late_seconds == 0.3


async def test_all_have_left_when_every_row_has_come():
    crew, (first, second) = await make(3, 2)
    first.say(row(0))
    second.say(row(1))
    assert crew.late() == [2]
    assert not crew.everyone_left.is_set()
    first.say(row(2))
    assert crew.everyone_left.is_set()
    assert isinstance(crew.rows[2], ViewerRow)


async def test_a_worker_that_dies_is_an_error_with_its_last_words():
    crew, (first, second) = await make(2, 2)
    first.say(row(0))
    first.end(0)  # it had nothing more to do
    second.end(-9)
    with pytest.raises(LabError, match=r"^worker-2 ended during the run \(exit code -9\): killed$"):
        await crew.guard()


async def test_workers_that_are_done_may_end():
    crew, children = await make(2, 2)
    for nth, child in enumerate(children):
        child.say(row(nth))
        child.end(0)
    await crew.guard()
