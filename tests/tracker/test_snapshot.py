import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracker.errors import RequestError, TrackerError
from tracker.messages import Announce, Event, SwarmCounts, pack_address
from tracker.settings import TrackerSettings
from tracker.snapshot import dump_swarms, restore_swarms
from tracker.state import Swarms

FILM, OTHER = b"f" * 20, b"o" * 20


def make(**limits):
    return Swarms(TrackerSettings(**limits), np.random.default_rng(1))


def announce(swarms, number, now, *, film=FILM, address=None, **more):
    values = {"left": 100, "port": 6881, **more}
    wish = Announce(info_hash=film, peer_id=b"%020d" % number, compact=False, **values)
    return swarms.announce(wish, address or bytes([198, 51, 0, number]), now)


def filled():
    swarms = make()
    announce(swarms, 1, 10.0, playhead=5.0)
    announce(swarms, 2, 20.0, left=0, event=Event.COMPLETED)
    announce(swarms, 3, 30.0, address=pack_address("2001:db8::1"))
    announce(swarms, 4, 30.0, address=pack_address("127.0.0.1"))
    announce(swarms, 5, 30.0, film=OTHER, left=0, event=Event.COMPLETED)
    announce(swarms, 5, 30.0, film=OTHER, event=Event.STOPPED)
    return swarms


def members(swarms, now):
    return {
        (film, kind, key): (
            roster.id_at(place),
            round(now - roster.heard[place], 3),
            roster.counted[place],
            None if math.isnan(then := roster.began_at(place)) else round(now - then, 3),
        )
        for film, swarm in swarms.each(now)
        for kind, roster in swarm.living()
        for key, place in roster.places.items()
    }


def test_a_restart_forgets_nobody_and_nothing():
    before, after = filled(), make()
    data = dump_swarms(before, 40.0, 1e9)
    assert restore_swarms(after, data, 1000.0, 1e9) == 4
    assert members(after, 1000.0) == members(before, 40.0)
    assert after.scrape([FILM, OTHER], 1000.0) == {
        FILM: SwarmCounts(1, 3, 1),
        OTHER: SwarmCounts(0, 0, 1),
    }
    assert announce(after, 2, 1001.0, left=0, event=Event.COMPLETED).counts.downloaded == 1


def test_the_time_between_counts_as_silence():
    data = dump_swarms(filled(), 40.0, 1e9)
    late = make()
    assert restore_swarms(late, data, 1000.0, 1e9 + 60.0) == 2  # silent for 90, 80 and 70, 70 s
    assert late.expire(1004.9) == 0
    assert late.expire(1006.0) == 2
    back = make()  # the wall clock may be set back
    assert restore_swarms(back, data, 1000.0, 1e9 - 60.0) == 4


def test_what_is_known_already_stays():
    data = dump_swarms(filled(), 40.0, 1e9)
    swarms = make()
    announce(swarms, 1, 1000.0, playhead=50.0)
    assert restore_swarms(swarms, data, 1000.0, 1e9) == 3
    assert (b"%020d" % 1, 0.0, 0, 50.0) in members(swarms, 1000.0).values()


def test_limits_and_the_list_of_films_bind_here_too():
    data = dump_swarms(filled(), 40.0, 1e9)
    small = make(max_peers_per_torrent=2)
    restore_swarms(small, data, 1000.0, 1e9)
    assert small.peers == 2
    single = make(max_torrents=1)
    restore_swarms(single, data, 1000.0, 1e9)
    assert single.torrents == 1
    listed = make()
    listed.permit(frozenset([OTHER]))
    assert restore_swarms(listed, data, 1000.0, 1e9) == 0
    assert listed.torrents == 1


@given(place=st.integers(0, 10_000), flip=st.integers(1, 255))
def test_a_damaged_snapshot_is_none(place, flip):
    data = bytearray(dump_swarms(filled(), 40.0, 1e9))
    data[place % len(data)] ^= flip
    swarms = make()
    with pytest.raises(TrackerError, match="no whole snapshot"):
        restore_swarms(swarms, bytes(data), 1000.0, 1e9)
    assert swarms.torrents == 0


def test_half_a_snapshot_is_none():
    data = dump_swarms(filled(), 40.0, 1e9)
    for size in range(len(data)):
        with pytest.raises(TrackerError):
            restore_swarms(make(), data[:size], 1000.0, 1e9)


def test_only_listed_films_are_served():
    swarms = filled()
    swarms.permit(frozenset([OTHER]))
    assert (swarms.peers, swarms.torrents) == (0, 1)
    with pytest.raises(RequestError, match="does not serve this film") as refusal:
        announce(swarms, 1, 40.0)
    assert refusal.value.retry == 5
    announce(swarms, 1, 40.0, film=OTHER)
    swarms.permit(None)
    announce(swarms, 1, 40.0)
    assert swarms.peers == 2
