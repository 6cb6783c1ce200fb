"""What came from whom, and how well requests followed the plan."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toast.common.geometry import BLOCK_BYTES, Geometry
from toast.policy.handover import Reason
from toast.swarm import Block
from toast.viewer.accounts import Accounts

GEOMETRY = Geometry(10 * 4 * BLOCK_BYTES - 1000, 4 * BLOCK_BYTES)
PEER = ("127.0.0.2", 6881)


def block(piece=0, number=0, address=PEER, *, operator=False):
    return Block(piece, number, address, operator)


def test_nothing_is_nothing():
    report = Accounts().report()
    assert report.pop("choice_share") is report.pop("offload") is None
    assert report.pop("origin_payload_by_reason") == {}
    assert set(report.values()) == {0}


def test_viewers_and_the_operator_s_seed_are_told_apart():
    accounts = Accounts()
    accounts.block_arrived(block(0, 0), GEOMETRY)
    accounts.block_arrived(block(0, 1, operator=True), GEOMETRY)
    accounts.block_arrived(block(0, 2, operator=True), GEOMETRY)
    report = accounts.report()
    assert report["bytes_from_peers"] == BLOCK_BYTES
    assert report["bytes_from_seed"] == 2 * BLOCK_BYTES


def test_the_film_s_last_block_is_shorter():
    accounts = Accounts()
    accounts.block_arrived(block(9, 3), GEOMETRY)
    assert accounts.from_peers == BLOCK_BYTES - 1000


def test_what_we_injected_ourselves_was_counted_when_it_was_fetched():
    accounts = Accounts()
    accounts.block_arrived(block(address=None), GEOMETRY)
    assert (accounts.from_peers, accounts.from_seed) == (0, 0)
    assert accounts.arrived_of(0) == frozenset()


def test_the_blocks_of_an_unfinished_piece_are_known_until_it_is_done():
    accounts = Accounts()
    accounts.block_arrived(block(3, 1), GEOMETRY)
    accounts.block_arrived(block(3, 2, operator=True), GEOMETRY)
    accounts.block_arrived(block(4, 0), GEOMETRY)
    assert accounts.arrived_of(3) == {1, 2}
    accounts.piece_done(3, GEOMETRY)
    assert (accounts.arrived_of(3), accounts.arrived_of(4)) == (frozenset(), {0})


def requests(accounts, *pieces):
    for piece in pieces:
        accounts.block_requested(block(piece))
    return accounts.requested, accounts.chosen


def test_what_is_asked_for_in_the_order_of_the_plan_was_chosen():
    accounts = Accounts()
    accounts.planned([3, 5, 7], top=1)
    assert requests(accounts, 3, 5, 7) == (3, 3)
    assert accounts.report()["choice_share"] == 1.0


def test_what_overtakes_more_than_the_plan_asks_for_at_once_was_not():
    accounts = Accounts()
    accounts.planned([3, 5, 7, 9], top=2)
    assert requests(accounts, 5) == (1, 1)
    assert requests(accounts, 9) == (2, 1)  # before 3 and 7
    assert requests(accounts, 7) == (3, 2)


def test_what_no_plan_wanted_was_not_chosen():
    accounts = Accounts()
    assert requests(accounts, 4) == (1, 0)
    accounts.planned([3], top=9)
    assert requests(accounts, 8, 3) == (3, 1)


def test_only_a_piece_s_first_request_counts():
    accounts = Accounts()
    accounts.planned([0, 1], top=2)
    for number in range(4):
        accounts.block_requested(block(0, number))
    assert (accounts.requested, accounts.chosen) == (1, 1)


def test_a_piece_that_was_thrown_away_is_chosen_again():
    accounts = Accounts()
    accounts.planned([0], top=1)
    requests(accounts, 0)
    accounts.piece_lost(0)
    assert requests(accounts, 0) == (2, 2)


def test_a_piece_that_is_done_is_overtaken_by_nothing():
    accounts = Accounts()
    accounts.planned([3, 5], top=1)
    requests(accounts, 3)
    accounts.piece_done(3, GEOMETRY)
    assert requests(accounts, 5) == (2, 2)


def test_a_piece_done_that_was_never_begun_is_fine():
    Accounts().piece_done(7, GEOMETRY)


@pytest.mark.parametrize("reason", list(Reason))
def test_every_reason_has_a_plain_name_in_the_report(reason):
    accounts = Accounts()
    accounts.origin_payload[reason] += 5
    assert accounts.report()["origin_payload_by_reason"] == {reason.value: 5}


_BLOCKS = st.tuples(st.integers(0, 9), st.integers(0, 3), st.sampled_from(["peer", "seed", "own"]))


@settings(deadline=None, derandomize=True)
@given(st.lists(_BLOCKS, max_size=60))
def test_every_byte_is_counted_once_for_whoever_sent_it(arrivals):
    accounts = Accounts()
    wanted = {"peer": 0, "seed": 0, "own": 0}
    for piece, number, sender in arrivals:
        address = None if sender == "own" else PEER
        accounts.block_arrived(block(piece, number, address, operator=sender == "seed"), GEOMETRY)
        wanted[sender] += GEOMETRY.block_size(piece, number)
    assert (accounts.from_peers, accounts.from_seed) == (wanted["peer"], wanted["seed"])
