import numpy as np
import pytest

from toast.swarm import Neighbour, Snapshot
from toast.viewer.uplinks import Lookout

PIECES = 3
ANN, BOB, GONE = ("127.0.0.1", 1), ("127.0.0.2", 2), ("127.0.0.3", 3)


def neighbour(address, *, received=0, queued=0, choking=False, has="***"):
    return Neighbour(
        address=address,
        operator=False,
        incoming=False,
        down_rate=0.0,
        up_rate=0.0,
        queued_bytes=queued,
        choking_us=choking,
        pieces=np.array([sign == "*" for sign in has]),
        received_bytes=received,
    )


def snapshot(*neighbours, asked=None):
    nothing = np.zeros(PIECES, np.int32)
    return Snapshot(neighbours, nothing, nothing.astype(np.bool_), asked or {})


def test_each_neighbour_has_its_column():
    uplinks = Lookout().look(
        0.0,
        snapshot(neighbour(ANN, queued=16_384, has="*  "), neighbour(BOB, choking=True, has=" **")),
    )

    assert uplinks.queued_bytes == [16_384, 0]
    assert uplinks.choking == [False, True]
    assert [row.tolist() for row in uplinks.has] == [[True, False, False], [False, True, True]]


def test_rates_are_measured_by_what_has_come_whatever_place_a_neighbour_is_told_at():
    lookout = Lookout()
    for tenth in range(1, 11):
        sent = neighbour(ANN, received=1000 * tenth, queued=16_384)
        idle = neighbour(BOB)
        pair = (sent, idle) if tenth % 2 else (idle, sent)
        uplinks = lookout.look(tenth / 10, snapshot(*pair))

    assert np.isnan(uplinks.rates[0])
    assert uplinks.rates[1] == pytest.approx(10_000.0)


def test_blocks_are_with_those_who_are_still_there():
    lookout = Lookout()
    lookout.look(0.0, snapshot(neighbour(ANN), neighbour(BOB), asked={1: (BOB, None, GONE, ANN)}))

    assert lookout.asked_of(1).tolist() == [1, -1, -1, 0]


def test_with_nobody_there_nothing_is_known():
    uplinks = Lookout().look(0.0, snapshot())

    assert uplinks.has == uplinks.rates == []
