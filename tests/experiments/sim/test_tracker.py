"""The tracker in virtual time answers as the real one."""

import numpy as np

from experiments.sim.tracker import Member, SimTracker


def somebody(number, position, *, heard_at=0.0, complete=False):
    return Member(number, position, heard_at, complete)


def test_a_viewer_hears_of_those_just_ahead_of_it_and_of_some_at_random():
    tracker = SimTracker(50, np.random.default_rng(1))
    for number in range(400):
        tracker.announce(somebody(number, number * 2.0))
    told = tracker.announce(somebody(999, 101.0, heard_at=10.0))

    assert len({m.number for m in told}) == 50
    assert [m.number for m in told[:25]] == list(range(46, 71))  # by now 10 s further
    assert max(m.number for m in told) - min(m.number for m in told) > 200


def test_who_does_not_say_where_it_is_has_a_sample():
    tracker = SimTracker(5, np.random.default_rng(1))
    for number in range(50):
        tracker.announce(somebody(number, float(number)))
    assert len(tracker.announce(somebody(999, None))) == 5


def test_a_small_swarm_is_told_whole_and_who_has_left_is_not():
    tracker = SimTracker(5, np.random.default_rng(1))
    for number in range(3):
        tracker.announce(somebody(number, 1.0))
    tracker.stopped(1)
    assert sorted(m.number for m in tracker.announce(somebody(9, 0.0))) == [0, 2]
