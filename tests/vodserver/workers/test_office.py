"""What the main process answers a worker."""

import asyncio

import pytest

from vodserver.errors import ChannelError
from vodserver.http.metrics import HttpCounts
from vodserver.workers.tally import Counts


def counts(**values):
    answers = HttpCounts()
    answers.answered("/titles", 200, 10)
    return (
        {"bytes_sent": 1000, "connections": 2, "accepted": 3, "refused": 1}
        | values
        | {"answers": answers.snapshot()}
    )


async def test_status_is_of_all_workers_and_of_the_store(home, staff):
    with home.open() as store:
        at = await staff(store)
        at.office.tally.note(2, Counts(bytes_sent=500, connections=1, accepted=1))

        result, _ = await at.theirs.ask("status", counts=counts())

    status = result["status"]
    assert status["http_bytes_sent"] == 1500
    assert (status["http_connections"], status["http_accepted"]) == (3, 4)
    assert status["http_refused"] == 1
    assert status["titles"] == 1
    assert [disk["there"] for disk in status["disks"]] == [True] * 4
    assert status["uptime_seconds"] >= 0


async def test_metrics_are_of_all_workers(home, staff):
    with home.open() as store:
        at = await staff(store, egress_rate=1e6)
        at.office.tally.note(2, Counts(waiting=3, answers=counts()["answers"]))

        result, _ = await at.theirs.ask("metrics", counts=counts(waiting=4, lag_seconds=0.5))

    lines = dict(
        line.rsplit(" ", 1) for line in result["text"].splitlines() if not line.startswith("#")
    )
    assert lines['vod_http_responses_total{route="/titles",status="200"}'] == "2"
    assert lines["vod_egress_waiting"] == "7"
    assert (lines["vod_workers"], lines["vod_workers_lost_total"]) == ("2", "0")
    assert lines["vod_egress_cap_bytes"] == "1000000.0"
    assert float(lines["vod_loop_lag_seconds"]) == 0.5
    assert lines["vod_http_sent_bytes_total"] == "1000"


async def test_what_a_worker_did_stays_when_it_is_gone(home, staff):
    with home.open() as store:
        at = await staff(store)
        at.theirs.tell("counts", counts=counts())
        await at.theirs.ask("status", counts=counts(bytes_sent=2000))
        at.desk.close()

        status = await at.office.status()
    assert (status["http_bytes_sent"], status["http_connections"]) == (2000, 0)


@pytest.mark.parametrize(
    "asked",
    [
        {"title": "none such", "at": 0, "end": 10},
        {"title": "clock", "at": -1, "end": 10},
        {"title": "clock", "at": 10, "end": 10},
        {"title": "clock", "at": 0, "end": 1 << 40},
    ],
)
@pytest.mark.parametrize("whole", [False, True])
async def test_bytes_that_are_not_there_are_refused(home, staff, asked, whole):
    with home.open() as store:
        at = await staff(store)
        with pytest.raises(ChannelError):
            await at.theirs.ask("fetch", **asked, turn=0, bytes=whole)


async def test_a_replica_in_doubt_is_looked_at(home, staff):
    with home.open() as store:
        at = await staff(store)
        where = {"folder": home.title.folder, "extent": 0}
        good, gone = home.title.extents[0].disks
        home.replica(0, 1).unlink()

        assert (await at.theirs.ask("doubt", **where, disk=good))[0] == {"good": True}
        assert (await at.theirs.ask("doubt", **where, disk=gone))[0] == {"good": False}
        assert store.bad_replicas() == {(home.title.folder, 0, gone)}
        nowhere = where | {"folder": "none such", "disk": 0}
        assert (await at.theirs.ask("doubt", **nowhere))[0] == {"good": False}


async def test_the_first_news_of_a_worker_is_passed_on(home, staff):
    with home.open() as store:
        at = await staff(store)
        at.theirs.tell("listening", url="http://x")
        at.theirs.tell("failed", message="why", usage=True)
        await at.theirs.ask("status", counts=counts())

    assert at.told == [{"url": "http://x"}, {"message": "why", "usage": True}]


async def test_what_there_is_not_is_refused(home, staff):
    with home.open() as store:
        at = await staff(store)
        with pytest.raises(ChannelError, match="'everything'"):
            await at.theirs.ask("everything")
        at.theirs.tell("nonsense")
        async with asyncio.timeout(5):
            await at.theirs.closed.wait()
