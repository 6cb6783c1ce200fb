"""What the demonstration decides without starting anything."""

import asyncio

import pytest

from experiments.demo import Demo, DemoSettings, ViewerState, _all_or_first_failure
from experiments.errors import LabError, ScenarioError
from toast.media import MediaError


def demo(film, **settings):
    return Demo(film, DemoSettings(**settings), lambda _: None)


def test_the_upload_cap_is_the_films_bit_rate_unless_given(small_film):
    expected = small_film.stat().st_size / 6.0
    assert demo(small_film).upload_rate == pytest.approx(expected)
    assert demo(small_film, upload_rate=1000.0).upload_rate == 1000.0


@pytest.mark.parametrize(("viewers", "watched"), [(1, 0), (2, 0), (3, 1), (8, 6)])
def test_the_last_viewer_but_one_is_watched_by_a_decoder(small_film, viewers, watched):
    """It has peers before it, and the film is still being watched by another when it leaves."""
    states = demo(small_film, viewers=viewers, spacing_seconds=2.0).viewers
    assert [state.gateway for state in states].index(True) == watched
    assert sum(state.gateway for state in states) == 1
    assert [state.arrives_seconds for state in states] == [2.0 * n for n in range(viewers)]


def test_every_viewer_has_an_address_of_its_own(small_film):
    some = demo(small_film)
    addresses = [some._address(number) for number in range(201)]
    assert len(set(addresses)) == 201
    assert all(address.startswith("127.") for address in addresses)
    assert all(0 < int(address.split(".")[3]) < 255 for address in addresses)


@pytest.mark.parametrize("wrong", [{"viewers": 0}, {"viewers": 201}, {"spacing_seconds": -1.0}])
def test_a_run_that_cannot_be_is_refused(wrong):
    with pytest.raises(ScenarioError):
        DemoSettings(**wrong)


def test_a_file_that_is_no_film_is_refused_before_anything_starts(tmp_path):
    path = tmp_path / "notes.mp4"
    path.write_text("not a film")
    with pytest.raises(MediaError, match=r"notes.mp4"):
        demo(path)


def test_a_playhead_is_at_zero_until_it_is_known():
    viewer = ViewerState("viewer-1", 0.0)
    assert viewer.position_seconds == 0.0
    viewer.progress = {"position_seconds": 2.5}
    assert viewer.position_seconds == 2.5


async def nothing():
    pass


async def failure():
    raise LabError("the server died")


async def test_all_tasks_may_end_while_a_guard_watches_on():
    cancelled = []

    async def guard():
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    await _all_or_first_failure([nothing(), nothing()], [guard()])
    assert cancelled == [True]


@pytest.mark.parametrize("guarded", [False, True])
async def test_the_first_failure_ends_the_rest(guarded):
    endless = asyncio.Event().wait()
    tasks, guards = ([endless], [failure()]) if guarded else ([endless, failure()], [])
    with pytest.raises(LabError, match="the server died"):
        await asyncio.wait_for(_all_or_first_failure(tasks, guards), 5)


async def test_an_interruption_ends_all_tasks():
    cancelled = []

    async def task():
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.append(True)

    running = asyncio.create_task(_all_or_first_failure([task(), task()], [task()]))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert len(cancelled) == 3
