"""Pieces deleted to make room, in real sessions: who learns of it, and how they come back."""

import asyncio
import os
from pathlib import Path

import numpy as np
import pytest

from tests.toast.swarm.world import PIECE, make_torrent, random_film
from toast.policy.view import Plan, SwarmView
from toast.swarm import FilmFile, Layout, parse_metainfo
from toast.swarm.acquaintances import Acquaintances
from toast.swarm.truth import Truth

FILM = random_film(12 * PIECE - 5000, seed=3)
TORRENT = make_torrent(FILM)
METAINFO = parse_metainfo(TORRENT)
PIECES = METAINFO.geometry.pieces
PEER = ("127.0.0.1", 6881)
NOTHING = np.empty(0, dtype=np.intp)


def numbers(*pieces):
    return np.array(pieces, dtype=np.intp)


def piece(number):
    return FILM[number * PIECE : (number + 1) * PIECE]


def chunks(folder, *held):
    """A folder in which these pieces lie."""
    layout = Layout.chunks(folder, METAINFO.name, METAINFO.geometry)
    (folder / "film.mp4.pieces").mkdir(parents=True)
    for number in held:
        layout.path(layout.segments[number]).write_bytes(piece(number))
    return layout


def have(*held):
    found = np.zeros(PIECES, dtype=np.bool_)
    found[list(held)] = True
    return found


def want(joined, *pieces):
    view = SwarmView(
        slack=np.arange(PIECES, dtype=np.float64),
        missing=~joined.swarm._held,
        availability=np.ones(PIECES, dtype=np.int32),
        in_flight=np.zeros(PIECES, dtype=np.bool_),
        closed=np.zeros(PIECES, dtype=np.bool_),
        horizon=0.0,
        playhead_piece=0,
        seconds_per_piece=1.0,
    )
    joined.swarm.steer(Plan(numbers(*pieces), NOTHING), NOTHING, view)


def stored(layout):
    return sorted(int(path.name) for path in (layout.folder / "film.mp4.pieces").iterdir())


def verified(told):
    return {number for (number,) in told.of("verified")}


def deleted_files_in_use():
    links = (path for path in Path("/proc/self/fd").iterdir() if path.is_symlink())
    return [link for link in map(os.readlink, links) if "film.mp4.pieces" in link]


async def test_ejected_pieces_are_gone_from_the_disk_and_from_our_hands(join, tmp_path):
    layout = chunks(tmp_path / "ours", *range(PIECES))
    ours = await join(METAINFO, tmp_path / "ours", have=have(*range(PIECES)), layout=layout)

    ours.swarm.eject(numbers(1, 4))

    assert stored(layout) == [0, 2, 3, *range(5, PIECES)]
    assert np.flatnonzero(ours.swarm.ejected).tolist() == [1, 4]
    assert not deleted_files_in_use()
    ours.swarm.read_piece(4)
    assert ours.told.of("read") == [(4, b"")]


@pytest.mark.slow
async def test_a_neighbour_is_refused_what_was_ejected_and_gets_the_rest(join, stock, tmp_path):
    """It is told the truth when it has been misled; nobody is banned, nobody fails."""
    layout = chunks(tmp_path / "ours", *range(PIECES))
    ours = await join(METAINFO, tmp_path / "ours", have=have(*range(PIECES)), layout=layout)
    ours.swarm.eject(numbers(0, 1, 2, 3))
    ours.swarm.start()
    theirs = await join(METAINFO, tmp_path / "theirs")
    want(theirs, *range(PIECES))
    theirs.swarm.start((ours.address,))

    await theirs.told.until(lambda told: verified(told) == set(range(4, PIECES)))
    assert ours.swarm._truth.misled > 0
    ours.swarm.settle(now=100.0)
    assert ours.swarm.rejoins == 1
    theirs.swarm.connect(ours.address)
    async with asyncio.timeout(10):
        while [n.pieces[:4].any() for n in theirs.swarm.snapshot().neighbours] != [False]:  # noqa: ASYNC110 - libtorrent's state
            await asyncio.sleep(0.02)  # its bitfield is no event
    assert not ours.told.of("storage")
    assert not theirs.swarm.banned


@pytest.mark.slow
async def test_an_ejected_piece_comes_back_from_a_neighbour(join, stock, tmp_path):
    layout = chunks(tmp_path / "ours", *range(PIECES))
    ours = await join(METAINFO, tmp_path / "ours", have=have(*range(PIECES)), layout=layout)
    seed = stock(TORRENT, FILM, tmp_path / "seed")
    ours.swarm.start((seed.address,))
    ours.swarm.eject(numbers(2, 3))

    want(ours, 2, 3)
    ours.swarm.settle(now=1.0)

    await ours.told.until(lambda told: verified(told) == {2, 3})
    await ours.close()
    assert stored(layout) == list(range(PIECES))
    assert FilmFile(layout, METAINFO.geometry, METAINFO.piece_hashes).scan().all()


async def test_an_ejected_piece_comes_back_from_the_server(join, tmp_path):
    layout = chunks(tmp_path / "ours", *range(PIECES))
    ours = await join(METAINFO, tmp_path / "ours", have=have(*range(PIECES)), layout=layout)
    ours.swarm.start()
    ours.swarm.eject(numbers(5))

    ours.swarm.inject(5, piece(5))
    ours.swarm.settle(now=1.0)

    await ours.told.until(lambda told: verified(told) == {5})
    await ours.close()
    assert layout.path(layout.segments[5]).read_bytes() == piece(5)


@pytest.mark.slow
async def test_joining_anew_keeps_the_blocks_of_unfinished_pieces_and_the_counts(
    join, stock, tmp_path
):
    """What was received before counts, and is not fetched twice."""
    layout = chunks(tmp_path / "ours", 0)
    ours = await join(METAINFO, tmp_path / "ours", have=have(0), layout=layout)
    seed = stock(TORRENT, FILM, tmp_path / "seed", upload=100_000)
    want(ours, *range(1, PIECES))
    ours.swarm.start((seed.address,))
    await ours.told.until(lambda told: len(told.of("arrived")) >= 6)

    ours.swarm.eject(numbers(0))
    ours.swarm._truth.must_be_told = True
    before = ours.swarm.counters()
    ours.swarm.settle(now=1.0)
    seed.handle.set_upload_limit(0)
    want(ours, *range(PIECES))

    assert ours.swarm.counters().received_payload >= before.received_payload >= 6 * 16384
    await ours.told.until(lambda told: verified(told) >= set(range(PIECES)))
    counters = ours.swarm.counters()
    assert counters.failed == 0
    assert counters.received_payload <= len(FILM) + 10 * 16384


@pytest.mark.slow
async def test_blocks_of_a_begun_piece_that_was_ejected_are_forgotten(join, stock, tmp_path):
    """Else it would be completed with a hole in it, and who sent the rest would be blamed."""
    layout = chunks(tmp_path / "ours")
    ours = await join(METAINFO, tmp_path / "ours", layout=layout)
    seed = stock(TORRENT, FILM, tmp_path / "seed", upload=60_000)
    want(ours, 3)
    ours.swarm.start((seed.address,))
    await ours.told.until(lambda told: told.of("arrived"))

    ours.swarm.eject(numbers(3))
    ours.swarm.settle(now=1.0)
    assert stored(layout) == []
    assert ours.swarm.rejoins == 1
    seed.handle.set_upload_limit(0)
    want(ours, 3)

    await ours.told.until(lambda told: verified(told) == {3})
    assert not ours.told.of("failed")
    assert (await FilmFile(layout, METAINFO.geometry, METAINFO.piece_hashes).read_piece(3)) == (
        piece(3)
    )


async def test_a_file_made_anew_by_a_late_block_is_deleted_again(join, tmp_path):
    layout = chunks(tmp_path / "ours", *range(PIECES))
    ours = await join(METAINFO, tmp_path / "ours", have=have(*range(PIECES)), layout=layout)
    ours.swarm._truth.told(0.0)
    ours.swarm.eject(numbers(7))
    layout.path(layout.segments[7]).write_bytes(b"late")

    ours.swarm.settle(now=1.0)

    assert 7 not in stored(layout)
    assert ours.swarm.rejoins == 0


async def test_where_nobody_is_there_the_truth_is_told_at_once(join, tmp_path):
    """It costs nobody a reconnect; whoever comes then is not misled."""
    layout = chunks(tmp_path / "ours", *range(PIECES))
    ours = await join(METAINFO, tmp_path / "ours", have=have(*range(PIECES)), layout=layout)
    ours.swarm.eject(numbers(7))
    ours.swarm.settle(now=1.0)
    assert not ours.swarm.ejected.any()
    ours.swarm.eject(numbers(8))
    ours.swarm.settle(now=5.9)
    assert ours.swarm.ejected.any()
    ours.swarm.settle(now=6.0)
    assert ours.swarm.rejoins == 2


def test_who_hangs_up_is_called_back_but_not_again_and_again():
    peers = Acquaintances()
    peers.asked[PEER] = None
    peers.connected(PEER)
    assert peers.left(PEER, hung_up=True)
    peers.connected(PEER)
    peers.now = 1.9
    assert not peers.left(PEER, hung_up=True)
    assert peers.departed() == {PEER}
    assert peers.departed() == frozenset()


@pytest.mark.parametrize(("asked", "here", "hung_up"), [(0, 1, 1), (1, 0, 1), (1, 1, 0)])
def test_only_a_neighbour_of_our_choice_that_hangs_up_is_called_back(asked, here, hung_up):
    peers = Acquaintances()
    if asked:
        peers.asked[PEER] = None
    if here:
        peers.connected(PEER)
    assert not peers.left(PEER, hung_up=bool(hung_up))
    assert not peers.asked


def test_nobody_is_told_anew_without_a_reason():
    assert not Truth().is_due(1e9)


def test_few_refusals_wait_and_many_do_not():
    truth = Truth()
    truth.told(0.0)
    truth.misled = 1
    assert not truth.is_due(14.9)
    assert truth.is_due(15.0)
    truth.misled = 64
    assert not truth.is_due(1.9)
    assert truth.is_due(2.0)


def test_our_own_need_does_not_wait_but_does_not_spin_either():
    truth = Truth(must_be_told=True)
    assert truth.is_due(0.0)
    truth.told(0.0)
    truth.must_be_told = True
    assert not truth.is_due(0.4)
    assert truth.is_due(0.5)


def test_a_layout_maps_a_range_onto_the_files_that_hold_it(tmp_path):
    layout = Layout.chunks(tmp_path, "film.mp4", METAINFO.geometry)
    parts = layout.parts(PIECE - 10, 2 * PIECE + 5)
    assert [(part.path.name, part.offset, part.size) for part in parts] == [
        ("000000", PIECE - 10, 10),
        ("000001", 0, PIECE),
        ("000002", 0, 5),
    ]


def test_after_a_crash_what_is_intact_is_found_and_the_rest_deleted(tmp_path):
    layout = chunks(tmp_path, 0, 3)
    (tmp_path / "film.mp4.pieces/000005").write_bytes(bytes(PIECE))
    film = FilmFile(layout, METAINFO.geometry, METAINFO.piece_hashes)
    assert np.flatnonzero(film.scan()).tolist() == [0, 3]
    assert stored(layout) == [0, 3]


async def test_a_deleted_piece_is_not_read_from_memory(tmp_path):
    layout = chunks(tmp_path, 0)
    film = FilmFile(layout, METAINFO.geometry, METAINFO.piece_hashes)
    assert await film.read_piece(0) == piece(0)
    layout.delete(0)
    film.forget(0)
    assert await film.read_piece(0) is None
