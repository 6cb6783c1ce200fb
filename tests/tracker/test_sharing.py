"""Several trackers with one memory, in one process."""

import asyncio
import contextlib

import pytest

from tests.tracker.asking import announce, until
from tracker.server import serve_tracker
from tracker.settings import TrackerSettings
from tracker.siblings import SiblingPlace

SETTINGS = TrackerSettings(port=0, share_seconds=0.01)


@pytest.fixture
async def pair(tmp_path):
    """Two of two."""
    async with contextlib.AsyncExitStack() as stack:
        places = [SiblingPlace(tmp_path, number, 2, b"s" * 32) for number in range(2)]
        servers = [
            await stack.enter_async_context(serve_tracker(SETTINGS, 1, place=place))
            for place in places
        ]
        await until(lambda: all(each.statistics()["siblings"] == 1 for each in servers))
        yield servers
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_what_one_hears_the_other_knows(pair):
    one, other = pair
    await announce(one, "a", "&playhead=30")
    await until(lambda: other.service.swarms.peers == 1)
    answer = await announce(other, "b", "&compact=0", port=7002)
    assert [peer[b"peer id"][-1:] for peer in answer[b"peers"]] == [b"a"]
    assert 29_000 < answer[b"peers"][0][b"playhead"] < 60_000


async def test_counters_are_of_both_together_and_what_both_know_is_told_once(pair):
    one, other = pair
    await announce(one, "a")
    await announce(other, "b", port=7002)
    await until(
        lambda: all(
            (told := each.statistics())["announces"] == 2 and told["peers"] == 2 for each in pair
        )
    )


async def test_news_that_mean_nothing_are_told_and_left(pair, caplog):
    one, _ = pair
    one.sharing.heard(b"nonsense")
    assert "news are not used" in caplog.text
    assert one.service.swarms.peers == 0
