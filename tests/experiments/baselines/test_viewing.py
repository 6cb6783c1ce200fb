"""Every baseline alone with a server: what it plays, what it counts, and how it ends."""

import asyncio

import pytest

from experiments.bound import Behaviour
from experiments.errors import LabError
from experiments.swarms.scenario import Client
from tests.experiments.baselines.conftest import FILM, FILM_SECONDS, PIECE_BYTES
from toast.common.errors import ToastError

BASELINES = [client for client in Client if client is not Client.TOAST]
pytestmark = pytest.mark.slow
every = pytest.mark.parametrize("client", BASELINES)


def source(server):
    return f"{server.url}/titles/1"


@every
async def test_a_film_is_played_whole_without_a_halt_and_is_what_the_server_sent(
    client, server, make_viewer, tmp_path
):
    # By itself the naive client asks 0.3 s before a piece is due: too late on a busy machine.
    early = {"give_up_seconds": 9.0, "hand_over_seconds": 9.0} if client is Client.NAIVE else {}
    viewer = await make_viewer(client, source(server), client_options=early)
    await viewer.run()
    row = viewer.row()

    assert viewer.has_played
    assert row.is_right
    assert row.played_bytes == len(FILM)
    assert row.stalls == 0
    assert row.departed_at - row.arrived_at >= FILM_SECONDS
    if client is not Client.UNICAST:  # which keeps nothing
        assert (tmp_path / "viewer/film.bin").read_bytes() == FILM

    assert row.bytes_from_origin + row.bytes_wasted >= server.sent * 0.98
    assert row.bytes_from_origin >= len(FILM)
    assert row.bytes_from_peers == row.bytes_from_seed == 0
    assert viewer.received == (0, row.bytes_from_origin)


@every
async def test_a_server_slower_than_the_film_makes_it_stall(client, server, make_viewer):
    """A conceptual clock that runs on regardless could not show this."""
    server.rate = len(FILM) / (2.5 * FILM_SECONDS)
    viewer = await make_viewer(client, source(server))
    await viewer.run()
    row = viewer.row()

    assert viewer.has_played
    assert row.stalls >= 1
    waited = row.start_seconds + row.stall_seconds
    # The film took 2.5 times its length to come, at least, and 1 to play.
    assert waited >= 0.75 * 1.5 * FILM_SECONDS
    assert waited <= row.departed_at - row.arrived_at - FILM_SECONDS + 0.01


@every
async def test_who_is_stopped_leaves_with_what_it_played(client, server, make_viewer):
    viewer = await make_viewer(client, source(server))
    asyncio.get_running_loop().call_later(FILM_SECONDS / 2, viewer.stop)
    await viewer.run()

    assert not viewer.is_present
    assert not viewer.has_played
    assert 0 < viewer.row().played_bytes < len(FILM)


@every
async def test_who_downloads_only_leaves_when_all_is_there_and_plays_on(
    client, server, make_viewer
):
    viewer = await make_viewer(client, source(server), behaviour=Behaviour.DOWNLOAD_ONLY)
    await viewer.run()
    row = viewer.row()

    assert viewer.has_played
    if client is not Client.NAIVE:  # which waits for peers until a piece is nearly due
        assert row.departed_at - row.arrived_at < FILM_SECONDS


@every
async def test_who_seeds_stays_until_it_is_stopped(client, server, make_viewer):
    viewer = await make_viewer(client, source(server), behaviour=Behaviour.SEEDING)
    running = asyncio.create_task(viewer.run())
    await asyncio.wait({running}, timeout=FILM_SECONDS + 0.7)

    assert not running.done()
    assert viewer.has_played
    viewer.stop()
    await running


@every
async def test_a_server_that_is_not_there_is_told_in_a_line(client, make_viewer):
    viewer = await make_viewer(client, "http://127.0.0.1:9/titles/1")

    with pytest.raises(ToastError, match="cannot be reached"):
        await viewer.run()


async def test_a_plain_player_reads_on_where_a_connection_broke(server, make_viewer):
    server.breaks_after = len(FILM) // 2 + 100
    viewer = await make_viewer(Client.UNICAST, source(server))
    await viewer.run()

    assert viewer.row().is_right
    assert viewer.row().bytes_from_origin == len(FILM)
    assert len(server.asked) == 2


async def test_a_plain_player_notices_damage(server, make_viewer):
    server.film = FILM[:PIECE_BYTES] + b"wrong" + FILM[PIECE_BYTES + 5 :]
    viewer = await make_viewer(Client.UNICAST, source(server))

    with pytest.raises(LabError, match="piece 1 of the film came damaged"):
        await viewer.run()


async def test_a_plain_player_keeps_its_download_cap(server, make_viewer):
    cap = len(FILM) / FILM_SECONDS / 2
    viewer = await make_viewer(Client.UNICAST, source(server), download_bps=8 * cap)
    await viewer.run()
    row = viewer.row()

    assert row.departed_at - row.arrived_at >= 0.9 * len(FILM) / cap
    assert row.stalls


async def test_the_naive_client_takes_each_piece_from_the_server_once(server, make_viewer):
    viewer = await make_viewer(
        Client.NAIVE, source(server), client_options={"missing_blocks_only": False}
    )
    await viewer.run()

    assert len(server.asked) == len(set(server.asked)) == -(-len(FILM) // PIECE_BYTES)


@pytest.mark.parametrize(("mbps", "most"), [(None, 16 << 20), (4.0, 500_000), (0.01, 16 * 1024)])
async def test_a_web_seed_is_asked_for_no_more_than_a_second_of_a_narrow_line(
    mbps, most, make_viewer
):
    viewer = await make_viewer(
        Client.WEB_SEED_SEQUENTIAL, "", download_bps=None if mbps is None else mbps * 1e6
    )

    assert viewer._settings().get("urlseed_max_request_bytes", 16 << 20) == most
