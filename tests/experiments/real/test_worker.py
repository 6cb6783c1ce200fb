"""A worker, with clients that watch nothing."""

import asyncio
import io
import json
import time

import pytest

from experiments.errors import LabError
from experiments.real import worker
from experiments.real.worker import Job, Worker
from experiments.swarms.result import ViewerRow
from experiments.swarms.scenario import Arrivals, Film, Scenario
from experiments.swarms.text import describe
from toast.viewer import ViewerError

SCENARIO = Scenario(viewers=4, arrivals=Arrivals(spacing_seconds=0.0))


class FakeClient:
    """Ends when it is told to."""

    position_seconds = 0.0
    received = (30, 40)

    def __init__(self, context):
        self.context = context
        self.has_played = False
        self._over = asyncio.Event()

    async def run(self):
        self.context.folder.mkdir()
        (self.context.folder / "film").write_bytes(b"x")
        await self._over.wait()
        if self.context.viewer.number == 3:
            raise ViewerError("the film cannot be stored")
        self.has_played = True

    def stop(self):
        self._over.set()

    def row(self):
        zeros = dict.fromkeys(ViewerRow.__dataclass_fields__, 0)
        known = {"origin_bytes_by_reason": {}, "number": self.context.viewer.number}
        return ViewerRow(**zeros | known)


class Clients(list):
    """Those who have come; `here` is set when all have who are expected."""

    expected = 2

    def __init__(self):
        super().__init__()
        self.here = asyncio.Event()


@pytest.fixture
def clients(monkeypatch):
    made = Clients()

    def create(context):
        made.append(FakeClient(context))
        if len(made) == made.expected:
            made.here.set()
        return made[-1]

    monkeypatch.setattr(worker, "create_client", create)
    return made


def make(tmp_path, viewers, scenario=SCENARIO):
    job = Job(
        scenario=describe(scenario),
        viewers=viewers,
        hosts=[f"127.0.0.{number + 1}" for number in viewers],
        source="http://127.0.0.1:1/titles/1",
        sha256="00",
        film="film.bin",
        folder=str(tmp_path),
        zero=time.monotonic(),
    )
    out = io.StringIO()
    return Worker(job, out), lambda: [json.loads(line) for line in out.getvalue().splitlines()]


async def test_viewers_come_watch_and_leave_a_row_and_no_file(tmp_path, clients):
    crew, heard = make(tmp_path, [0, 2])
    running = asyncio.create_task(crew.run())
    await clients.here.wait()
    crew.stop()
    await running

    rows = [event for event in heard() if event["event"] == "row"]
    assert sorted(event["number"] for event in rows) == [0, 2]
    last = [event for event in heard() if event["event"] == "progress"][-1]
    assert last == {
        "event": "progress",
        "arrived": 2,
        "watching": 0,
        "played": 2,
        "from_peers": 60,
        "received": 80,
        "late_seconds": 0.0,
    }
    assert list(tmp_path.iterdir()) == []
    hosts = {client.context.listen_host for client in clients}
    assert hosts == {"127.0.0.1", "127.0.0.3"}
    chance = [client.context.rng.random() for client in clients]
    assert chance[0] != chance[1]


async def test_who_is_to_leave_sooner_goes_by_itself(tmp_path, clients):
    scenario = SCENARIO.with_(leaving_share=1.0, film=Film(duration_seconds=0.5))
    crew, heard = make(tmp_path, [0, 1, 2], scenario)
    async with asyncio.timeout(20):
        await crew.run()
    assert heard()[-1]["played"] == len(clients) == 3


async def test_a_pause_of_the_machine_is_told(tmp_path, clients):
    crew, heard = make(tmp_path, [0, 2])
    running = asyncio.create_task(crew.run())
    await clients.here.wait()
    await asyncio.sleep(0)
    time.sleep(0.4)  # noqa: ASYNC251 - nothing runs meanwhile: that is the point
    await asyncio.sleep(0.1)  # until it has looked again
    crew.stop()
    await running
    longest = max(event["lasted_seconds"] for event in heard() if event["event"] == "pause")
    assert longest > 0.2


async def test_who_comes_after_the_stop_does_not_stay(tmp_path, clients):
    crew, heard = make(tmp_path, [1])
    crew.stop()
    await crew.run()
    assert len(clients) == 1
    assert heard()[-1]["played"] == 1


async def test_one_that_cannot_watch_ends_all_and_is_named(tmp_path, clients):
    crew, _ = make(tmp_path, [0, 3])
    running = asyncio.create_task(crew.run())
    await clients.here.wait()
    for client in clients:
        if client.context.viewer.number == 3:
            client.stop()
    with pytest.raises(LabError, match=r"^viewer 3: the film cannot be stored$"):
        await running
    assert list(tmp_path.iterdir()) == []


def test_a_job_is_what_was_told():
    told = {"do": "host", "scenario": {}, "viewers": [1], "hosts": ["h"], "source": "s"}
    job = Job.from_message({**told, "sha256": "00", "film": "p", "folder": "f", "zero": 1.5})
    assert (job.viewers, job.zero) == ([1], 1.5)
