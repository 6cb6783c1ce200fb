"""What fails in the middle of a film: servers and viewers die, and the film goes on."""

import signal
import time

import pytest

pytestmark = [pytest.mark.lab, pytest.mark.slow, pytest.mark.timeout(60)]

HEAD_BYTES = 1000
"""More than the headers of one answer of the VoD server."""
PIECE_BYTES = 64 * 1024
"""Of this film."""


def received(report):
    return sum(report[f"bytes_from_{source}"] for source in ("peers", "seed", "origin"))


async def kill(child):
    """SIGKILL: it cannot say goodbye to anyone."""
    child.signal(signal.SIGKILL)
    assert await child.wait_end() == -signal.SIGKILL


async def test_viewers_go_on_from_peers_while_the_server_is_dead_and_use_it_when_it_is_back(house):
    """They may take the film at 1.3 times its pace, so that they need somebody to the end.

    The holder of the film dies before the server is back: then only the server has the rest.
    """
    await house.open()
    holder = await house.watch_complete("holder")
    options = ("--neighbours", "everyone", "--download", f"{1.3 * house.rate:.0f}B/s")
    viewers = [await house.watch("viewer-1", *options)]
    await viewers[0].wait_position(0.5)
    viewers.append(await house.watch("viewer-2", *options))
    before = [await viewer.wait_position(1.5) for viewer in viewers]
    await kill(house.server)
    killed_at = time.monotonic()
    during = [await viewer.wait_position(3.5) for viewer in viewers]
    # They play on, and do not stand waiting for a server that is not there.
    assert time.monotonic() - killed_at < 6.0
    for was, now in zip(before, during, strict=True):
        assert now["bytes_from_peers"] > was["bytes_from_peers"]
        assert now["pieces_have"] < now["pieces"]
    await kill(holder.child)
    await house.start_server()
    reports = [await viewer.report() for viewer in viewers]
    for viewer, report in zip(viewers, reports, strict=True):
        house.assert_whole(viewer, report)
    again = sum(report["bytes_from_origin"] for report in reports)
    assert again > sum(then["bytes_from_origin"] for then in during)
    assert again <= 2 * house.film_bytes


async def test_a_film_that_only_the_server_has_waits_for_it_to_come_back(house):
    await house.open()
    viewer = await house.watch("viewer")
    await viewer.wait_position(2.0)
    await kill(house.server)
    stalled = await viewer.wait_until(lambda p: p["state"] == "stalled", "it stalls")
    assert "cannot be reached" in stalled["origin_error"]
    await house.start_server()
    report = await viewer.report()
    house.assert_whole(viewer, report)
    assert report["stalls"] >= 1
    assert report["bytes_from_origin"] >= house.film_bytes


async def test_a_killed_viewer_resumes_from_what_it_had_verified(house):
    await house.open(seed=True)
    first = await house.watch("viewer", "--download", f"{1.3 * house.rate:.0f}B/s")
    half = await first.wait_position(5.0)
    await kill(first.child)
    had = house.intact_bytes(first.folder)
    assert 0.3 * house.film_bytes < had < house.film_bytes
    assert had >= (half["pieces_have"] - 1) * PIECE_BYTES

    second = await house.watch("viewer-again", folder=first.folder)
    at_once = await second.wait_until(lambda p: True, "it tells how it stands")
    checked = second.child.event("checked")
    assert checked is not None
    assert checked["pieces"] >= half["pieces_have"]
    assert at_once["pieces_have"] >= half["pieces_have"]
    report = await second.report()
    house.assert_whole(second, report)
    assert report["stalls"] == 0
    heads = half["pieces"] * HEAD_BYTES
    assert received(report) <= house.film_bytes - had + heads
    assert received(report) >= house.film_bytes - had


async def test_alone_everything_comes_from_the_server_and_nothing_stalls(house):
    await house.open()
    viewer = await house.watch("viewer")
    report = await viewer.report()
    house.assert_whole(viewer, report)
    assert (report["stalls"], report["stall_seconds"]) == (0, 0.0)
    assert report["start_seconds"] <= 1.0
    assert (report["bytes_from_peers"], report["bytes_from_seed"]) == (0, 0)
    assert house.film_bytes <= report["bytes_from_origin"] <= 1.05 * house.film_bytes


async def test_a_film_whose_server_is_gone_comes_from_a_viewer_that_has_it(house):
    await house.open()
    await kill(house.server)
    await house.watch_complete("holder")
    viewer = await house.watch("viewer")
    report = await viewer.report()
    house.assert_whole(viewer, report)
    assert report["stalls"] == 0
    assert report["bytes_from_origin"] == 0
    assert report["bytes_from_peers"] == house.film_bytes
