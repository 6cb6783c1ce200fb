"""Real sessions on loopback: who lied is banned, and who was only in bad company comes back."""

import asyncio

import numpy as np
import pytest

from tests.toast.swarm.world import PIECE, flipped, make_torrent, random_film
from toast.policy.view import Plan, SwarmView
from toast.swarm import parse_metainfo

FILM = random_film(12 * PIECE)
TORRENT = make_torrent(FILM)
METAINFO = parse_metainfo(TORRENT)
PIECES = METAINFO.geometry.pieces
NOTHING = np.array([], dtype=np.intp)


def want_all(swarm):
    view = SwarmView(
        slack=np.arange(PIECES, dtype=np.float64),
        missing=np.ones(PIECES, dtype=np.bool_),
        availability=np.ones(PIECES, dtype=np.int32),
        in_flight=np.zeros(PIECES, dtype=np.bool_),
        closed=np.zeros(PIECES, dtype=np.bool_),
        horizon=0.0,
        playhead_piece=0,
        seconds_per_piece=1.0,
    )
    swarm.steer(Plan(np.arange(PIECES), NOTHING), NOTHING, view)


def piece(number):
    return FILM[number * PIECE : (number + 1) * PIECE]


async def spoil_until_suspected(ours):
    """Put wrong blocks beside those of the peer, piece after piece, until it counts as a liar."""
    while not ours.swarm.suspected:
        for number, missing in ours.swarm.snapshot().missing.items():
            if 0 < np.count_nonzero(missing) < missing.size:
                ours.swarm.inject(number, bytes(byte ^ 0xFF for byte in piece(number)))
        await asyncio.sleep(0.02)


@pytest.mark.slow
async def test_an_honest_peer_in_bad_company_is_kept_out_for_a_while_and_never_banned(
    join, stock, tmp_path
):
    seed = stock(TORRENT, FILM, tmp_path / "seed", upload=150_000)
    ours = await join(METAINFO, tmp_path / "ours")
    want_all(ours.swarm)
    ours.swarm.settle(100.0)
    ours.swarm.start((seed.address,))
    async with asyncio.timeout(30):
        await spoil_until_suspected(ours)
    assert len(ours.told.of("failed")) >= 3
    assert ours.swarm.suspected == ours.swarm.banned == {seed.address}
    assert ours.swarm.banned_hosts == frozenset()

    # The server has the pieces in question; the peer is let in again and brings the others.
    bad = {number for (number,) in ours.told.of("failed")}
    for number in bad:
        ours.swarm.inject(number, piece(number))
    await ours.told.until(lambda told: bad <= {number for (number,) in told.of("verified")})
    ours.swarm.settle(100.5)
    assert ours.swarm.banned == {seed.address}
    ours.swarm.settle(101.5)
    assert ours.swarm.banned == frozenset()
    await ours.told.until(lambda told: len(told.of("verified")) >= PIECES)
    assert ours.swarm.banned_hosts == frozenset()


@pytest.mark.slow
async def test_a_peer_that_sent_all_of_a_wrong_piece_is_banned_at_once(join, stock, tmp_path):
    liar = stock(TORRENT, flipped(FILM, 70), tmp_path / "liar")
    ours = await join(METAINFO, tmp_path / "ours")
    want_all(ours.swarm)
    ours.swarm.start((liar.address,))
    await ours.told.until(lambda told: told.of("failed"))

    assert ours.swarm.banned_hosts == {liar.address[0]}
    assert ours.swarm.suspected == frozenset()


@pytest.mark.slow
async def test_a_peer_whose_block_was_not_that_of_the_right_piece_is_banned(join, stock, tmp_path):
    """The rest of the piece was ours: only the piece that passes tells who lied."""
    wrong = bytes(byte ^ 0xFF for byte in FILM)
    liar = stock(TORRENT, wrong, tmp_path / "liar", upload=60_000)
    ours = await join(METAINFO, tmp_path / "ours")
    want_all(ours.swarm)
    ours.swarm.start((liar.address,))
    block = await ours.told.until(lambda told: [b for (b,) in told.of("arrived")])
    number = block[0].piece
    ours.swarm.inject(number, piece(number))
    await ours.told.until(lambda told: (number,) in told.of("failed"))
    assert ours.swarm.banned_hosts == frozenset()

    async with asyncio.timeout(10):
        while not ours.swarm.banned_hosts:
            ours.swarm.inject(number, piece(number))
            await asyncio.sleep(0.1)
    assert ours.swarm.banned_hosts == {liar.address[0]}
