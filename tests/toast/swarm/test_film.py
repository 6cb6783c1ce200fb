"""One film in real sessions on loopback: what arrives, from whom, in which order, and what lies."""

import asyncio
import hashlib

import numpy as np
import pytest

from tests.toast.swarm.world import PIECE, flipped, make_torrent, random_film, write_sparse
from toast.common.geometry import BLOCK_BYTES
from toast.policy.view import Plan, SwarmView
from toast.swarm import SwarmError, parse_metainfo

FILM = random_film(8 * PIECE - 5000)
TORRENT = make_torrent(FILM)
METAINFO = parse_metainfo(TORRENT)
GEOMETRY = METAINFO.geometry
PIECES = GEOMETRY.pieces
OPERATOR = "-TV0100-"


def numbers(*pieces):
    return np.array(pieces, dtype=np.intp)


NOTHING = numbers()


def view(missing=None):
    absent = np.ones(PIECES, dtype=np.bool_) if missing is None else missing
    return SwarmView(
        slack=np.arange(PIECES, dtype=np.float64),
        missing=absent,
        availability=np.ones(PIECES, dtype=np.int32),
        in_flight=np.zeros(PIECES, dtype=np.bool_),
        closed=np.zeros(PIECES, dtype=np.bool_),
        horizon=0.0,
        playhead_piece=0,
        seconds_per_piece=1.0,
    )


def piece(number, film=FILM):
    return film[number * PIECE : (number + 1) * PIECE]


def have(*pieces):
    held = np.zeros(PIECES, dtype=np.bool_)
    held[list(pieces)] = True
    return held


def verified(told):
    return [number for (number,) in told.of("verified")]


def all_verified(count=PIECES):
    return lambda told: len(told.of("verified")) >= count


def only(joined, *pieces, missing=None):
    """Ask for these pieces and for no other."""
    joined.swarm.steer(Plan(numbers(*pieces), NOTHING), NOTHING, view(missing))


@pytest.mark.slow
async def test_a_film_arrives_from_a_stock_peer_verified_and_in_the_order_of_the_plan(
    join, stock, tmp_path
):
    seed = stock(TORRENT, FILM, tmp_path / "seed")
    ours = await join(METAINFO, tmp_path / "ours")
    only(ours, *range(PIECES))
    ours.swarm.start((seed.address,))

    await ours.told.until(all_verified())

    assert sorted(verified(ours.told)) == list(range(PIECES))
    asked = [block.piece for (block,) in ours.told.of("requested")]
    assert asked == sorted(asked)
    counters = ours.swarm.counters()
    assert counters.received_payload == len(FILM) < counters.received < 1.05 * len(FILM) + 5000
    assert (counters.redundant, counters.failed) == (0, 0)


# Not the whole film: of blocks whose write ends after it became complete libtorrent says nothing.
SOME = range(PIECES - 1)
BLOCKS = sum(GEOMETRY.blocks_in(number) for number in SOME)


def all_arrived(told):
    """A piece may be verified in memory a moment before its last block is told as written."""
    return len(told.of("verified")) == len(SOME) and len(told.of("arrived")) >= BLOCKS


@pytest.mark.slow
async def test_each_block_is_asked_for_and_then_arrives_once_from_whom_it_was_asked(
    join, stock, tmp_path
):
    seed = stock(TORRENT, FILM, tmp_path / "seed")
    ours = await join(METAINFO, tmp_path / "ours")
    only(ours, *SOME)
    ours.swarm.start((seed.address,))

    await ours.told.until(all_arrived)

    asked = set()
    arrived = []
    for kind, *facts in ours.told.events:
        if kind == "requested":
            asked.add((facts[0].piece, facts[0].block))
        elif kind == "arrived":
            block = facts[0]
            assert (block.piece, block.block) in asked
            assert (block.address, block.operator) == (seed.address, False)
            arrived.append((block.piece, block.block))
    assert sorted(arrived) == [
        (number, block) for number in SOME for block in range(GEOMETRY.blocks_in(number))
    ]


@pytest.mark.slow
async def test_two_of_ours_share_a_film(join, stock, tmp_path):
    giver_folder = tmp_path / "giver"
    giver_folder.mkdir()
    (giver_folder / "film.mp4").write_bytes(FILM)
    giver = await join(METAINFO, giver_folder, have=have(*range(PIECES)))
    giver.swarm.start()
    taker = await join(METAINFO, tmp_path / "taker")
    only(taker, *range(PIECES))
    taker.swarm.start()
    taker.swarm.connect(giver.address)

    await taker.told.until(all_verified())

    assert giver.swarm.counters().sent_payload == len(FILM)
    assert giver.told.of("arrived") == []
    await taker.close()
    assert (tmp_path / "taker" / "film.mp4").read_bytes() == FILM


@pytest.mark.slow
async def test_what_the_operator_s_seed_sends_is_marked_as_such(join, stock, tmp_path):
    seed = stock(TORRENT, FILM, tmp_path / "seed", fingerprint=OPERATOR)
    ours = await join(METAINFO, tmp_path / "ours")
    only(ours, *SOME)
    ours.swarm.start((seed.address,))

    await ours.told.until(all_arrived)

    blocks = [block for (block,) in ours.told.of("arrived")]
    assert all(block.operator for block in blocks)
    assert (
        sum(GEOMETRY.block_size(block.piece, block.block) for block in blocks) == len(SOME) * PIECE
    )


@pytest.mark.slow
async def test_a_seed_that_the_tracker_gave_away_counts_without_its_mark(join, stock, tmp_path):
    seed = stock(TORRENT, FILM, tmp_path / "seed")
    ours = await join(METAINFO, tmp_path / "ours")
    ours.swarm.note_operator(seed.address)
    only(ours, 0)
    ours.swarm.start((seed.address,))
    blocks = await ours.told.until(lambda told: told.of("arrived"))
    assert all(block.operator for (block,) in blocks)


@pytest.mark.slow
async def test_only_what_is_asked_for_comes(join, stock, tmp_path):
    """The plan wants two pieces out of order; then one more: nothing else ever arrives."""
    seed = stock(TORRENT, FILM, tmp_path / "seed")
    ours = await join(METAINFO, tmp_path / "ours")
    only(ours, 6, 2)
    ours.swarm.start((seed.address,))
    await ours.told.until(all_verified(2))
    absent = ~have(6, 2)
    only(ours, 4, missing=absent)
    await ours.told.until(all_verified(3))

    assert {block.piece for (block,) in ours.told.of("requested")} == {2, 4, 6}
    assert verified(ours.told)[-1] == 4


@pytest.mark.slow
async def test_a_piece_that_nobody_has_is_asked_for_when_it_appears(join, stock, tmp_path):
    """`coming`: no new plan is needed between a neighbour's HAVE and our request."""
    folder = tmp_path / "giver"
    folder.mkdir()
    write_sparse(folder / "film.mp4", len(FILM), {0: piece(0)})
    giver = await join(METAINFO, folder, have=have(0))
    only(giver, 7)
    giver.swarm.start()
    taker = await join(METAINFO, tmp_path / "taker")
    taker.swarm.steer(Plan(numbers(0), NOTHING), numbers(3), view())
    taker.swarm.start((giver.address,))
    await taker.told.until(all_verified(1))

    giver.swarm.inject(3, piece(3))
    await taker.told.until(lambda told: ("verified", 3) in told.events)

    assert verified(taker.told) == [0, 3]


@pytest.mark.slow
async def test_the_upload_cap_holds_on_loopback(join, tmp_path):
    """libtorrent spares local addresses unless it is told not to."""
    cap = 200_000
    folder = tmp_path / "giver"
    folder.mkdir()
    (folder / "film.mp4").write_bytes(FILM)
    giver = await join(METAINFO, folder, have=have(*range(PIECES)), upload_rate=cap)
    giver.swarm.start()
    taker = await join(METAINFO, tmp_path / "taker")
    only(taker, *range(PIECES))
    loop = asyncio.get_running_loop()
    began = loop.time()
    taker.swarm.start((giver.address,))

    await taker.told.until(all_verified())

    took = loop.time() - began
    sent = giver.swarm.counters().sent
    assert sent >= len(FILM)
    # the bucket is full in the beginning: up to a third of a second's worth is free
    assert sent <= cap * (took + 0.35)


@pytest.mark.slow
async def test_the_download_cap_holds_on_loopback(join, stock, tmp_path):
    cap = 400_000
    seed = stock(TORRENT, FILM, tmp_path / "seed")
    ours = await join(METAINFO, tmp_path / "ours", download_rate=cap)
    only(ours, *range(PIECES))
    loop = asyncio.get_running_loop()
    began = loop.time()
    ours.swarm.start((seed.address,))
    await ours.told.until(all_verified())
    assert len(FILM) <= cap * (loop.time() - began + 0.35)


@pytest.mark.slow
async def test_resumed_with_what_is_here_only_the_rest_is_fetched(join, stock, tmp_path):
    seed = stock(TORRENT, FILM, tmp_path / "seed")
    folder = tmp_path / "ours"
    folder.mkdir()
    held = (0, 1, 2, 5)
    write_sparse(folder / "film.mp4", len(FILM), {n * PIECE: piece(n) for n in held})
    ours = await join(METAINFO, folder, have=have(*held))
    only(ours, 3, 4, 6, 7, missing=~have(*held))
    ours.swarm.start((seed.address,))

    await ours.told.until(all_verified(4))

    assert sorted(verified(ours.told)) == [3, 4, 6, 7]  # those that were found are no news
    assert {block.piece for (block,) in ours.told.of("requested")} == {3, 4, 6, 7}
    missing = sum(GEOMETRY.piece_size(number) for number in (3, 4, 6, 7))
    assert ours.swarm.counters().received_payload == missing
    await ours.close()
    assert (folder / "film.mp4").read_bytes() == FILM


async def test_an_injected_piece_is_verified_and_counts_as_nobody_s(join, tmp_path):
    ours = await join(METAINFO, tmp_path / "ours")
    ours.swarm.start()
    ours.swarm.inject(PIECES - 1, piece(PIECES - 1))

    await ours.told.until(all_verified(1))

    assert verified(ours.told) == [PIECES - 1]
    last = GEOMETRY.blocks_in(PIECES - 1)
    await ours.told.until(lambda told: len(told.of("arrived")) >= last)
    blocks = [block for (block,) in ours.told.of("arrived")]
    assert len(blocks) == last
    assert {(block.piece, block.address, block.operator) for block in blocks} == {
        (PIECES - 1, None, False)
    }
    assert ours.swarm.counters().received_payload == 0


async def test_wrong_bytes_injected_end_in_piece_failed(join, tmp_path):
    ours = await join(METAINFO, tmp_path / "ours")
    ours.swarm.start()
    ours.swarm.inject(1, flipped(piece(1), 70))
    await ours.told.until(lambda told: told.of("failed"))
    assert ours.told.of("failed") == [(1,)]
    assert verified(ours.told) == []


async def test_a_piece_that_is_not_flushed_yet_can_be_read(join, tmp_path):
    ours = await join(METAINFO, tmp_path / "ours")
    ours.swarm.start()
    ours.swarm.inject(2, piece(2))
    await ours.told.until(all_verified(1))
    ours.swarm.read_piece(2)
    ((number, data),) = await ours.told.until(lambda told: told.of("read"))
    assert (number, data) == (2, piece(2))


async def test_reading_a_piece_that_is_not_here_fails_with_nothing(join, tmp_path):
    ours = await join(METAINFO, tmp_path / "ours")
    ours.swarm.start()
    ours.swarm.read_piece(2)
    ((number, data),) = await ours.told.until(lambda told: told.of("read"))
    assert (number, data) == (2, b"")


def begun(joined, number, least=1):
    """The blocks of a piece that have come, as soon as there are so many and not all."""
    state = joined.swarm.snapshot().missing.get(number)
    if state is None or not least <= np.count_nonzero(~state) < state.size:
        return None
    return state


LARGE = random_film(1024 * 1024, seed=3)
LARGE_TORRENT = make_torrent(LARGE, piece_bytes=512 * 1024)
LARGE_METAINFO = parse_metainfo(LARGE_TORRENT)


async def half_of_a_large_piece(join, stock, tmp_path, content):
    """A slow peer has sent some of piece 0's 32 blocks: (joined, missing blocks)."""
    seed = stock(LARGE_TORRENT, content, tmp_path / "seed", upload=150_000)
    ours = await join(LARGE_METAINFO, tmp_path / "ours")
    want_first = SwarmView(
        slack=np.arange(2.0),
        missing=np.ones(2, dtype=np.bool_),
        availability=np.ones(2, dtype=np.int32),
        in_flight=np.zeros(2, dtype=np.bool_),
        closed=np.zeros(2, dtype=np.bool_),
        horizon=0.0,
        playhead_piece=0,
        seconds_per_piece=1.0,
    )
    ours.swarm.steer(Plan(numbers(0), NOTHING), NOTHING, want_first)
    ours.swarm.start((seed.address,))
    await ours.told.until(lambda told: begun(ours, 0, least=3) is not None)
    return ours, begun(ours, 0)


@pytest.mark.slow
async def test_only_the_missing_blocks_need_real_bytes(join, stock, tmp_path):
    """What a hand-over rests on: filler where peers have delivered, and the piece is right."""
    ours, missing = await half_of_a_large_piece(join, stock, tmp_path, LARGE)
    data = bytearray(512 * 1024)
    for block in np.flatnonzero(missing).tolist():
        start = block * BLOCK_BYTES
        data[start : start + BLOCK_BYTES] = LARGE[start : start + BLOCK_BYTES]
    assert bytes(data) != LARGE[: len(data)]

    ours.swarm.inject(0, bytes(data))
    await ours.told.until(lambda told: ("verified", 0) in told.events)

    assert ours.told.of("failed") == []
    ours.swarm.read_piece(0)
    ((_, found),) = await ours.told.until(lambda told: told.of("read"))
    assert hashlib.sha1(found).digest() == LARGE_METAINFO.piece_hashes[0]


@pytest.mark.slow
async def test_a_peer_s_lie_makes_the_completed_piece_fail(join, stock, tmp_path):
    """The origin's blocks are right, the peer's are not: the whole is thrown away."""
    poisoned = bytes(byte ^ 0xFF for byte in LARGE)
    ours, _ = await half_of_a_large_piece(join, stock, tmp_path, poisoned)

    ours.swarm.inject(0, LARGE[: 512 * 1024])
    await ours.told.until(lambda told: told.of("failed"))

    assert verified(ours.told) == []


@pytest.mark.slow
async def test_a_snapshot_shows_who_is_there_and_what_is_under_way(join, stock, tmp_path):
    ours, _ = await half_of_a_large_piece(join, stock, tmp_path, LARGE)

    snapshot = ours.swarm.snapshot()

    (neighbour,) = snapshot.neighbours
    assert neighbour.queued_bytes > 0
    assert neighbour.pieces.all()
    assert (neighbour.operator, neighbour.incoming, neighbour.choking_us) == (False, False, False)
    assert snapshot.availability.tolist() == [1, 1]
    assert snapshot.in_flight.tolist() == [True, False]
    missing = snapshot.missing[0]
    assert neighbour.received_bytes > 0
    assert {address for address in snapshot.asked[0] if address is not None} == {neighbour.address}
    # What was received is asked of nobody, and it is the missing blocks that are asked for.
    assert all(missing[n] for n, address in enumerate(snapshot.asked[0]) if address is not None)


async def test_alone_nobody_is_there_and_nothing_under_way(join, tmp_path):
    ours = await join(METAINFO, tmp_path / "ours")
    ours.swarm.start()
    snapshot = ours.swarm.snapshot()
    assert snapshot.neighbours == ()
    assert not snapshot.availability.any()
    assert not snapshot.in_flight.any()
    assert snapshot.missing == {}


@pytest.mark.slow
async def test_a_neighbour_that_comes_and_goes_is_told(join, stock, tmp_path):
    seed = stock(TORRENT, FILM, tmp_path / "seed", upload=50_000)
    ours = await join(METAINFO, tmp_path / "ours")
    only(ours, *range(PIECES))
    ours.swarm.start((seed.address,))
    await ours.told.until(lambda told: ours.swarm.snapshot().neighbours)
    seed.handle.pause()
    await ours.told.until(lambda told: len(told.of("neighbours")) >= 2)
    assert ours.swarm.snapshot().neighbours == ()


async def test_a_film_twice_in_one_session_is_refused_by_libtorrent(join, tmp_path):
    """Two viewings of one film would write into each other's file."""
    from toast.swarm import FilmSwarm  # noqa: PLC0415 - only here

    ours = await join(METAINFO, tmp_path / "ours")
    with pytest.raises(SwarmError, match="cannot be joined"):
        FilmSwarm(ours.session, METAINFO, folder=tmp_path, have=have(), events=ours.told)


@pytest.mark.parametrize("nth", range(5))
async def test_what_is_injected_at_once_after_the_start_is_not_lost(join, tmp_path, nth):
    """libtorrent drops what it is given before it has looked at its files."""
    ours = await join(METAINFO, tmp_path / f"ours{nth}", checked=False)
    ours.swarm.start()
    ours.swarm.inject(0, piece(0))
    await ours.told.until(all_verified(1), seconds=1)


async def test_a_disk_that_refuses_is_told(join, tmp_path):
    """A folder lies where the film's file must go."""
    (tmp_path / "ours" / "film.mp4").mkdir(parents=True)
    ours = await join(METAINFO, tmp_path / "ours")
    ours.swarm.start()
    ours.swarm.inject(0, piece(0))
    ((reason,), *_) = await ours.told.until(lambda told: told.of("storage"))
    assert reason


async def test_nothing_is_told_after_closing(join, stock, tmp_path):
    ours = await join(METAINFO, tmp_path / "ours")
    ours.swarm.start()
    ours.swarm.inject(0, piece(0))
    ours.swarm.close()
    before = len(ours.told.events)
    ours.closed = True
    await ours.session.close()
    assert len(ours.told.events) == before
