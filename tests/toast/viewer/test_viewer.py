"""Whole viewings of a tiny film: real sessions, a real server, a real tracker, real peers."""

import asyncio
import hashlib

import numpy as np
import pytest

from tests.toast.swarm.world import flipped, write_sparse
from tests.toast.viewer.conftest import FILM, SHA256, watch
from toast.common.errors import ToastError
from toast.policy.handover import HandOverSettings
from toast.policy.viewing import ViewingSettings
from toast.swarm import SwarmError
from toast.viewer import Behaviour, FilmReader, FilmUnavailable, ViewerError

PIECE = 32 * 1024
SIZE = len(FILM)
PIECES = -(-len(FILM) // PIECE)
UNHURRIED = 5.0
"""Seconds of a film that must not stall: a piece is due every 150 ms or so. In a film of one second
it would be due every 30 ms, and every pause of a busy machine would be a stall."""


async def read_all(viewer, start=0, end=SIZE):
    """What a player would be shown."""
    return b"".join([chunk async for chunk in FilmReader(viewer).read(start, end)])


async def until(condition, *, seconds=10.0):
    """Wait for something that no event tells of."""
    async with asyncio.timeout(seconds):
        while not condition():  # noqa: ASYNC110 - the condition is about a foreign program
            await asyncio.sleep(0.01)


@pytest.mark.slow
async def test_alone_with_the_server_the_film_is_seen_whole_without_a_stall(world):
    viewer = await world.viewer(seconds=UNHURRIED, tracker=False)
    shown = asyncio.create_task(read_all(viewer))

    report = await watch(viewer)

    assert await shown == FILM
    assert (report["complete"], report["sha256"]) == (True, SHA256)
    assert world.path.read_bytes() == FILM
    assert (report["stalls"], report["stall_seconds"]) == (0, 0.0)
    assert 0 < report["start_seconds"] < 1.0
    assert report["position_seconds"] == pytest.approx(UNHURRIED)
    assert (report["bytes_from_peers"], report["bytes_from_seed"]) == (0, 0)
    assert world.server.payload == len(FILM)
    assert sum(report["origin_payload_by_reason"].values()) == len(FILM)
    headers = report["bytes_from_origin"] - len(FILM)
    assert 0 < headers < 300 * len(world.server.ranges)
    assert report["presence_seconds"] == pytest.approx(
        report["departed_at"] - report["arrived_at"], abs=0.01
    )


@pytest.mark.slow
async def test_with_a_peer_that_has_it_all_most_comes_from_there(world):
    peer = await world.peer(upload=2_500_000)
    hasty = HandOverSettings(margin_seconds=0.1)  # the horizon must be short beside the film
    viewer = await world.viewer(seconds=UNHURRIED, viewing=ViewingSettings(hand_over=hasty))

    report = await watch(viewer)

    assert report["sha256"] == SHA256
    assert report["stalls"] == 0
    assert report["bytes_from_peers"] > 0.5 * len(FILM)
    assert report["bytes_from_seed"] == 0
    await until(lambda: peer.sent() >= report["bytes_from_peers"])  # it adds up now and then
    # every byte came from somewhere, and few of them twice
    came = report["bytes_from_peers"] + sum(report["origin_payload_by_reason"].values())
    assert len(FILM) - PIECE <= came <= 1.1 * len(FILM)
    assert 0 < report["choice_share"] <= 1.0


@pytest.mark.slow
async def test_the_operator_s_seed_is_accounted_as_the_operator_s(world):
    await world.peer(fingerprint="-TV0100-")
    viewer = await world.viewer(seconds=0.5, origin=False)
    report = await watch(viewer)
    assert report["sha256"] == SHA256
    assert report["bytes_from_peers"] == 0
    assert len(FILM) - PIECE <= report["bytes_from_seed"] <= len(FILM)


@pytest.mark.slow
async def test_a_peer_that_is_too_slow_is_made_up_for(world):
    """A tenth of the film's rate from the peer, the rest from the server: nothing stalls."""
    await world.peer(upload=int(len(FILM) / UNHURRIED / 10))
    viewer = await world.viewer(seconds=UNHURRIED)
    report = await watch(viewer)
    assert report["sha256"] == SHA256
    assert report["stalls"] == 0
    assert sum(report["origin_payload_by_reason"].values()) > 0.6 * len(FILM)


@pytest.mark.slow
async def test_a_server_that_dies_and_returns_costs_a_stall_and_no_byte(world):
    viewer = await world.viewer(seconds=1.5, tracker=False)
    watching = asyncio.create_task(watch(viewer))
    shown = asyncio.create_task(read_all(viewer))
    await until(lambda: viewer.have.sum() >= 5)
    world.server.gate.clear()
    await until(lambda: viewer.playhead.stalls == 1)
    await world.server.stop()
    await until(lambda: viewer.progress()["origin_error"])
    await until(lambda: viewer.progress()["state"] == "stalled")
    world.server.gate.set()
    await world.server.start()

    report = await watching

    assert await shown == FILM
    assert report["sha256"] == SHA256
    assert report["stalls"] >= 1
    assert report["stall_seconds"] > 0


@pytest.mark.slow
async def test_while_the_server_is_away_a_peer_carries_the_film(world):
    await world.server.stop()
    await world.peer()
    viewer = await world.viewer(seconds=0.5)
    report = await watch(viewer)
    assert report["sha256"] == SHA256
    assert report["bytes_from_origin"] == 0


@pytest.mark.slow
@pytest.mark.parametrize("offset", [5 * PIECE + 17, SIZE - 1])
async def test_one_flipped_byte_at_a_peer_is_never_shown(world, offset):
    await world.peer(flipped(FILM, offset))
    viewer = await world.viewer(seconds=0.7)
    shown = asyncio.create_task(read_all(viewer))
    report = await watch(viewer)
    assert await shown == FILM
    assert report["sha256"] == SHA256


@pytest.mark.slow
async def test_a_peer_that_lies_about_everything_only_costs_bytes(world):
    liar = await world.peer(bytes(byte ^ 0x55 for byte in FILM))
    viewer = await world.viewer(seconds=1.0)
    shown = asyncio.create_task(read_all(viewer))
    report = await watch(viewer)
    assert await shown == FILM
    assert report["sha256"] == SHA256
    assert liar.sent() > 0
    assert report["bytes_wasted"] > 0


@pytest.mark.slow
async def test_after_a_crash_what_is_intact_is_not_fetched_again(world):
    """A process died: some pieces are whole, one is torn, one is rotten, holes between."""
    world.folder.mkdir()
    held = {n * PIECE: FILM[n * PIECE : (n + 1) * PIECE] for n in range(0, PIECES, 2)}
    held[4 * PIECE] = held[4 * PIECE][:1000]
    held[6 * PIECE] = flipped(held[6 * PIECE], 9)
    write_sparse(world.path, len(FILM), held)
    viewer = await world.viewer(tracker=False)
    assert viewer.have.sum() == len(held) - 2
    shown = asyncio.create_task(read_all(viewer))

    report = await watch(viewer)

    assert await shown == FILM
    assert report["sha256"] == SHA256
    asked = {
        piece
        for start, end in world.server.ranges
        for piece in range(start // PIECE, -(-end // PIECE))
    }
    assert asked == {*range(1, PIECES, 2), 4, 6}


@pytest.mark.slow
async def test_a_film_that_is_whole_on_disk_is_seen_without_anybody(world):
    world.folder.mkdir()
    world.path.write_bytes(FILM)
    await world.server.stop()
    viewer = await world.viewer(seconds=0.3, tracker=False)
    shown = asyncio.create_task(read_all(viewer))
    report = await watch(viewer)
    assert await shown == FILM
    assert (report["complete"], report["stalls"], report["bytes_from_origin"]) == (True, 0, 0)
    assert report["start_seconds"] == pytest.approx(0.0, abs=0.05)


async def test_another_file_in_the_film_s_place_is_left_alone(world):
    world.folder.mkdir()
    world.path.write_bytes(FILM + b"more")
    with pytest.raises(SwarmError, match="another file of the same name"):
        await world.viewer()
    assert world.path.read_bytes() == FILM + b"more"


async def test_a_folder_that_cannot_be_made_is_one_line(world):
    world.folder.write_bytes(b"a file is in the way")
    with pytest.raises(ViewerError, match="films"):
        await world.viewer()


@pytest.mark.slow
@pytest.mark.parametrize("behaviour", list(Behaviour))
async def test_stop_ends_the_viewing_wherever_it_is(world, behaviour):
    viewer = await world.viewer(seconds=60.0, behaviour=behaviour)
    watching = asyncio.create_task(watch(viewer, seconds=5.0))
    await until(lambda: viewer.playhead.start_seconds is not None)

    viewer.stop()
    report = await watching

    assert (report["complete"], report["sha256"]) == (False, None)
    assert report["position_seconds"] < 30
    assert world.tracker.events()[-1] == "stopped"


@pytest.mark.slow
async def test_stop_works_before_anything_came(world):
    world.server.gate.clear()
    viewer = await world.viewer()
    waiting = asyncio.create_task(viewer.reading.piece(3))
    watching = asyncio.create_task(watch(viewer, seconds=5.0))
    await world.tracker.told.wait()
    viewer.stop()
    report = await watching
    assert report["start_seconds"] is None
    with pytest.raises(FilmUnavailable):
        await waiting
    with pytest.raises(FilmUnavailable):
        await viewer.reading.piece(4)
    world.server.gate.set()


@pytest.mark.slow
async def test_what_is_no_film_inside_ends_in_one_line(world):
    """A .torrent without a time map, and random bytes where a container should be."""
    viewer = await world.viewer(seconds=None, tracker=False)
    with pytest.raises(ToastError) as caught:
        await asyncio.wait_for(viewer.run(), 10)
    assert "\n" not in str(caught.value)


@pytest.mark.slow
async def test_stop_works_while_the_container_is_looked_into(world):
    """A thread waits for a piece that nobody sends: it must be let go."""
    world.server.gate.clear()
    viewer = await world.viewer(seconds=None, tracker=False)
    watching = asyncio.create_task(watch(viewer, seconds=5.0))
    await until(lambda: viewer.reading.urgent)
    viewer.stop()
    assert not (await watching)["complete"]
    world.server.gate.set()


@pytest.mark.slow
async def test_cancelling_leaves_no_task_and_no_torrent_behind(world):
    viewer = await world.viewer(seconds=60.0)
    before = asyncio.all_tasks()
    watching = asyncio.create_task(viewer.run())
    await until(viewer.have.any)
    watching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await watching
    await until(lambda: not [t for t in asyncio.all_tasks() - before if "viewer" in repr(t)])
    assert viewer._session.native.get_torrents() == []


@pytest.mark.slow
async def test_download_only_leaves_the_swarm_when_it_has_everything_and_plays_on(world):
    await world.peer()
    viewer = await world.viewer(seconds=1.5, behaviour=Behaviour.DOWNLOAD_ONLY)
    report = await watch(viewer)
    assert report["sha256"] == SHA256
    assert report["position_seconds"] == pytest.approx(1.5)
    assert report["presence_seconds"] < 1.4


@pytest.mark.slow
async def test_seeding_goes_on_after_the_end_until_it_is_told(world):
    viewer = await world.viewer(seconds=0.5, behaviour=Behaviour.SEEDING)
    watching = asyncio.create_task(watch(viewer))
    await until(lambda: viewer.progress()["state"] == "ended")
    world.tracker.add((viewer._session.settings.listen_host, viewer._session.port), complete=1)
    follower = await world.viewer(folder="elsewhere", origin=False)
    report = await watch(follower)
    assert report["bytes_from_peers"] > 0
    assert not watching.done()
    viewer.stop()
    assert (await watching)["bytes_uploaded"] >= report["bytes_from_peers"]


@pytest.mark.slow
async def test_from_the_middle_only_the_rest_is_needed_to_begin(world):
    """The first half is not waited for."""
    half = UNHURRIED / 2
    viewer = await world.viewer(seconds=UNHURRIED, start_seconds=half, tracker=False)
    watching = asyncio.create_task(watch(viewer))
    await until(lambda: viewer.playhead.start_seconds is not None)
    assert viewer.playhead.position >= half
    report = await watching
    assert report["stalls"] == 0
    assert report["start_seconds"] < 0.9
    assert report["position_seconds"] == pytest.approx(UNHURRIED)
    middle = len(FILM) // 2
    assert all(end > middle - PIECE for _, end in world.server.ranges)
    assert not report["complete"]


@pytest.mark.slow
async def test_announces_tell_the_playhead_and_what_is_left(world):
    viewer = await world.viewer(seconds=1.0)
    await watch(viewer)
    first, last = world.tracker.announces[0], world.tracker.announces[-1]
    assert (first["event"], last["event"]) == ("started", "stopped")
    assert (float(first["playhead"]), int(first["left"])) == (0.0, len(FILM))
    assert float(last["playhead"]) == pytest.approx(1.0, abs=0.01)
    assert int(last["left"]) == 0
    assert int(first["port"]) == viewer._session.port
    assert int(last["downloaded"]) == len(FILM)


@pytest.mark.slow
@pytest.mark.parametrize("trouble", ["refuses", "away"])
async def test_a_tracker_that_fails_does_not_keep_the_film_away(world, trouble):
    world.tracker.failure = b"unregistered"
    if trouble == "away":
        await world.tracker.stop()
    viewer = await world.viewer(seconds=UNHURRIED)
    report = await watch(viewer)
    assert report["sha256"] == SHA256
    assert report["stalls"] == 0
    assert viewer.progress()["tracker_error"]


@pytest.mark.slow
async def test_what_rots_on_disk_during_the_viewing_is_fetched_anew_and_never_shown(world):
    viewer = await world.viewer(seconds=0.5, behaviour=Behaviour.SEEDING, tracker=False)
    watching = asyncio.create_task(watch(viewer))
    await until(viewer.have.all)
    await until(lambda: hashlib.sha256(world.path.read_bytes()).hexdigest() == SHA256)
    with world.path.open("r+b") as file:
        file.seek(3 * PIECE)
        file.write(b"rotten")
    viewer._file._cache.clear()  # in memory it has not rotted

    assert await read_all(viewer) == FILM

    viewer.stop()
    await watching
    assert world.server.payload == len(FILM) + PIECE


@pytest.mark.slow
async def test_progress_makes_sense_at_every_moment(world):
    viewer = await world.viewer(seconds=1.0, tracker=False)
    watching = asyncio.create_task(watch(viewer))
    seen = [viewer.progress()]
    while not watching.done():
        await asyncio.sleep(0.05)
        seen.append(viewer.progress())
    await watching
    positions = [facts["position_seconds"] for facts in seen]
    assert positions == sorted(positions)
    assert [facts["pieces_have"] for facts in seen] == sorted(f["pieces_have"] for f in seen)
    assert seen[0]["state"] == "starting"
    assert seen[-1]["state"] == "ended"
    assert all(facts["pieces"] == PIECES for facts in seen)
    assert all(0 <= facts["buffer_seconds"] <= 1.0 for facts in seen)


@pytest.mark.slow
async def test_a_reader_that_opens_far_away_is_a_seek(world):
    viewer = await world.viewer(seconds=40.0, reader_jump_seconds=5.0)
    watching = asyncio.create_task(watch(viewer))
    await until(lambda: viewer.playhead.start_seconds is not None)
    offset = len(FILM) * 3 // 4
    data = await asyncio.wait_for(read_all(viewer, offset, offset + 100), 5)
    assert data == FILM[offset : offset + 100]
    assert viewer.playhead.position == pytest.approx(30.0, abs=2.0)
    viewer.stop()
    report = await watching
    assert len(report["seek_seconds"]) == 1


def test_pieces_are_as_many_as_these_tests_think():
    assert np.ceil(len(FILM) / PIECE) == PIECES == 31
