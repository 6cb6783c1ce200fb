import gc

import numpy as np
import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    rule,
    run_state_machine_as_test,
)

from tracker.errors import RequestError
from tracker.messages import Announce, Event, SwarmCounts, pack_address
from tracker.settings import TrackerSettings
from tracker.state import Swarms
from tracker.swarm import group_of

FILM = b"f" * 20
OTHER = b"o" * 20
LOOPBACK = pack_address("127.0.0.1")


def host(number):
    """A public IPv4 address, a different one for each number."""
    return bytes([198, 51, number // 256, number % 256])


def wish(name, *, film=FILM, port=6881, left=100, compact=False, **more):
    return Announce(
        info_hash=film,
        peer_id=str(name).encode().ljust(20, b"-"),
        port=port,
        left=left,
        compact=compact,
        **more,
    )


def tracker(**limits):
    return Swarms(TrackerSettings(**limits), np.random.default_rng(1))


def fill(swarms, count, *, left=100, now=0.0):
    for number in range(count):
        swarms.announce(wish(number, left=left), host(number), now)


def names(answer):
    return sorted(peer.peer_id.rstrip(b"-").decode() for peer in answer.peers)


def test_viewers_find_each_other():
    swarms = tracker()
    assert swarms.announce(wish("a"), host(1), 0.0).peers == ()
    assert names(swarms.announce(wish("b"), host(2), 0.0)) == ["a"]
    assert names(swarms.announce(wish("a"), host(1), 1.0)) == ["b"]


def test_swarms_do_not_mix():
    swarms = tracker()
    swarms.announce(wish("a"), host(1), 0.0)
    assert swarms.announce(wish("b", film=OTHER), host(2), 0.0).peers == ()


def test_the_asker_is_not_told_of_its_other_address():
    """BEP 7: a client announces over IPv4 and over IPv6 under one peer id."""
    swarms = tracker()
    swarms.announce(wish("a"), host(1), 0.0)
    swarms.announce(wish("b"), host(2), 0.0)
    assert names(swarms.announce(wish("a"), pack_address("2001:db8::1"), 0.0)) == ["b"]


def test_a_peer_id_cannot_displace_another_endpoint():
    swarms = tracker()
    swarms.announce(wish("a"), host(1), 0.0)
    swarms.announce(wish("a"), host(66), 0.0)
    found = swarms.announce(wish("b"), host(2), 0.0).peers
    assert {peer.address for peer in found} == {host(1), host(66)}


def test_a_silent_peer_is_gone_after_two_and_a_half_intervals():
    swarms = tracker()
    swarms.announce(wish("a"), host(1), 0.0)
    assert names(swarms.announce(wish("b"), host(2), 74.9)) == ["a"]
    assert names(swarms.announce(wish("b"), host(2), 75.0)) == []
    assert (swarms.peers, swarms.torrents) == (1, 1)


def test_announcing_again_keeps_a_peer():
    swarms = tracker()
    for now in (0.0, 70.0, 140.0):
        swarms.announce(wish("a"), host(1), now)
    assert names(swarms.announce(wish("b"), host(2), 200.0)) == ["a"]


def test_stopped_leaves_at_once_and_is_answered_without_peers():
    swarms = tracker()
    swarms.announce(wish("a"), host(1), 0.0)
    swarms.announce(wish("b"), host(2), 0.0)
    answer = swarms.announce(wish("a", event=Event.STOPPED), host(1), 1.0)
    assert answer.peers == ()
    assert answer.counts == SwarmCounts(0, 1, 0)
    assert swarms.announce(wish("b"), host(2), 2.0).peers == ()


def test_stopping_in_an_unknown_swarm_leaves_nothing_behind():
    swarms = tracker()
    assert swarms.announce(wish("a", event=Event.STOPPED), host(1), 0.0).counts == SwarmCounts()
    assert swarms.torrents == 0


def test_only_the_own_endpoint_can_be_stopped():
    swarms = tracker()
    swarms.announce(wish("a"), host(1), 0.0)
    swarms.announce(wish("a", event=Event.STOPPED), host(66), 0.0)
    assert swarms.peers == 1


def test_a_completion_is_counted_once():
    swarms = tracker()
    swarms.announce(wish("a", event=Event.STARTED), host(1), 0.0)
    for now in (1.0, 2.0):
        answer = swarms.announce(wish("a", left=0, event=Event.COMPLETED), host(1), now)
    assert answer.counts == SwarmCounts(complete=1, incomplete=0, downloaded=1)


def test_a_seed_that_comes_with_the_whole_film_is_no_download():
    answer = tracker().announce(wish("seed", left=0, event=Event.STARTED), host(1), 0.0)
    assert answer.counts == SwarmCounts(complete=1, incomplete=0, downloaded=0)


def test_completed_with_bytes_left_is_not_believed():
    answer = tracker().announce(wish("a", left=5, event=Event.COMPLETED), host(1), 0.0)
    assert answer.counts == SwarmCounts(complete=0, incomplete=1, downloaded=0)


def test_a_new_client_at_an_old_endpoint_may_complete_again():
    swarms = tracker()
    swarms.announce(wish("a", left=0, event=Event.COMPLETED), host(1), 0.0)
    answer = swarms.announce(wish("b", left=0, event=Event.COMPLETED), host(1), 1.0)
    assert answer.counts == SwarmCounts(complete=1, incomplete=0, downloaded=2)


def test_holders_of_the_whole_film_are_given_only_those_who_miss_something():
    swarms = tracker()
    swarms.announce(wish("seed", left=0), host(1), 0.0)
    swarms.announce(wish("viewer"), host(2), 0.0)
    assert names(swarms.announce(wish("done", left=0), host(3), 0.0)) == ["viewer"]
    assert names(swarms.announce(wish("viewer"), host(2), 0.0)) == ["done", "seed"]


def test_loopback_peers_are_for_loopback_askers():
    """127.0.0.1 in another machine's peer list is that machine itself."""
    swarms = tracker()
    swarms.announce(wish("here"), LOOPBACK, 0.0)
    assert names(swarms.announce(wish("there"), host(1), 0.0)) == []
    assert names(swarms.announce(wish("beside", port=6882), LOOPBACK, 0.0)) == ["here", "there"]


def test_a_client_nobody_can_connect_to_is_answered_but_not_handed_out():
    swarms = tracker()
    swarms.announce(wish("a"), host(1), 0.0)
    assert names(swarms.announce(wish("shy", port=0), host(2), 0.0)) == ["a"]
    assert swarms.peers == 1
    assert swarms.announce(wish("shy", port=0, film=OTHER), host(2), 0.0).peers == ()
    assert swarms.torrents == 1


def test_the_playhead_is_advanced_by_the_time_since_its_announce():
    swarms = tracker()
    swarms.announce(wish("a", playhead=10.0), host(1), 5.0)
    swarms.announce(wish("b"), host(2), 5.0)
    (peer,) = (
        peer for peer in swarms.announce(wish("c"), host(3), 9.5).peers if peer.playhead is not None
    )
    assert peer.playhead == pytest.approx(14.5)


@pytest.mark.parametrize(
    ("numwant", "given"), [(None, 50), (0, 0), (1, 1), (70, 70), (200, 119), (10**9, 119)]
)
def test_numwant_is_honoured_up_to_what_there_is(numwant, given):
    swarms = tracker()
    fill(swarms, 120)
    answer = swarms.announce(wish(0, numwant=numwant), host(0), 1.0)
    assert len(answer.peers) == len(set(answer.peers)) == given


def test_numwant_is_capped():
    swarms = tracker(max_numwant=60)
    fill(swarms, 120)
    assert len(swarms.announce(wish("x", numwant=10**9), host(500), 1.0).peers) == 60


def test_samples_are_uniform():
    """2000 draws of 5 out of 20: each peer is expected 500 times, standard deviation 19."""
    swarms = tracker()
    fill(swarms, 10)
    for number in range(10, 20):
        swarms.announce(wish(number, left=0), host(number), 0.0)
    seen = dict.fromkeys(map(str, range(20)), 0)
    for _ in range(2000):
        for name in names(swarms.announce(wish("x", numwant=5, port=0), host(500), 1.0)):
            seen[name] += 1
    assert sum(seen.values()) == 10_000
    assert all(400 < count < 600 for count in seen.values())


def play(swarms, count, *, spacing, now=1000.0):
    """So many viewers, each further in the film than the one before."""
    for number in range(count):
        swarms.announce(wish(number, playhead=number * spacing), host(number), now)


def test_a_viewer_hears_of_those_just_ahead_of_it_however_many_there_are():
    swarms = tracker()
    play(swarms, 400, spacing=2.0)
    for own in (0.0, 100.0, 101.0, 700.0):
        asker = wish("asker", playhead=own, numwant=50)
        answer = swarms.announce(asker, host(999), 1000.0)
        assert len(answer.peers) == 50
        assert len(set(names(answer))) == 50
        nearest = [peer.playhead - own for peer in answer.peers[:25]]
        assert nearest == sorted(nearest)
        assert 0 < nearest[0] <= 2.0
        assert nearest[-1] == nearest[0] + 48.0
        leads = [peer.playhead - own for peer in answer.peers[25:]]
        assert max(leads) - min(leads) > 300.0  # the rest are at random


def test_who_plays_on_is_found_where_it_is_by_now():
    swarms = tracker()
    swarms.announce(wish("early", playhead=10.0), host(1), 1000.0)
    swarms.announce(wish("late", playhead=10.0), host(2), 1030.0)  # "early" is at 40 s
    asker = wish("asker", playhead=20.0, numwant=1)
    (peer,) = swarms.announce(asker, host(3), 1030.0).peers
    assert (names(swarms.announce(asker, host(3), 1030.0)), peer.playhead) == (["early"], 40.0)


def test_who_has_left_or_moved_stands_in_nobodys_way():
    swarms = tracker()
    play(swarms, 3, spacing=10.0)
    swarms.announce(wish(1, event=Event.STOPPED), host(1), 1000.0)
    swarms.announce(wish(2, playhead=5.0), host(2), 1001.0)  # it sought back
    asker = wish("asker", playhead=4.0, numwant=1)
    assert names(swarms.announce(asker, host(9), 1001.0)) == ["2"]


def test_who_has_everything_or_does_not_say_where_it_is_has_a_sample():
    first, again = tracker(), tracker()
    for swarms in (first, again):
        play(swarms, 100, spacing=1.0)
    complete = wish("done", left=0, playhead=0.0, numwant=10)
    silent = wish("done", left=0, numwant=10)
    told = names(first.announce(complete, host(999), 1000.0))
    assert len(told) == 10
    assert told == names(again.announce(silent, host(999), 1000.0))


def test_samples_repeat_with_the_generator():
    def draw():
        swarms = tracker()
        fill(swarms, 30)
        return swarms.announce(wish("x", numwant=5), host(99), 1.0).peers

    assert draw() == draw()


def test_an_address_over_its_share_loses_its_own_oldest():
    swarms = tracker(max_peers_per_address=2)
    swarms.announce(wish("bystander"), host(9), 0.0)
    for port in (1, 2, 3):
        swarms.announce(wish(f"crowd{port}", port=port), host(1), float(port))
    assert names(swarms.announce(wish("x"), host(2), 4.0)) == ["bystander", "crowd2", "crowd3"]


def test_the_share_of_an_address_spans_all_swarms():
    swarms = tracker(max_peers_per_address=2)
    for number in range(5):
        swarms.announce(wish("a", film=bytes([number]) * 20), host(1), 0.0)
    assert (swarms.peers, swarms.torrents) == (2, 2)


def test_an_ipv6_household_is_one_address():
    swarms = tracker(max_peers_per_address=2)
    for number in range(1, 6):
        swarms.announce(wish(number), pack_address(f"2001:db8::{number}"), 0.0)
    assert swarms.peers == 2


def test_loopback_has_no_share():
    swarms = tracker(max_peers_per_address=2)
    for port in range(1, 11):
        swarms.announce(wish(port, port=port), LOOPBACK, 0.0)
    assert swarms.peers == 10


def test_a_full_swarm_loses_its_longest_silent():
    swarms = tracker(max_peers_per_torrent=2)
    swarms.announce(wish("a"), host(1), 0.0)
    swarms.announce(wish("b"), host(2), 1.0)
    swarms.announce(wish("a"), host(1), 2.0)
    assert names(swarms.announce(wish("c"), host(3), 3.0)) == ["a"]


def test_the_last_of_a_swarm_may_be_replaced_within_it():
    for limit in ("max_peers", "max_peers_per_torrent", "max_peers_per_address"):
        swarms = tracker(**{limit: 1})
        swarms.announce(wish("a", port=1, left=0, event=Event.COMPLETED), host(1), 0.0)
        answer = swarms.announce(wish("b", port=2), host(1), 1.0)
        assert answer.counts == SwarmCounts(0, 1, 1)
        swarms.announce(wish("c", port=3, film=OTHER), host(1), 2.0)
        swarms.announce(wish("d", port=4, film=OTHER), host(1), 2.0)
        assert swarms.scrape([OTHER], 2.0) == {OTHER: SwarmCounts(0, 1, 0)}


def test_a_full_tracker_loses_the_longest_silent_of_all():
    swarms = tracker(max_peers=2)
    swarms.announce(wish("a"), host(1), 0.0)
    swarms.announce(wish("b", film=OTHER), host(2), 1.0)
    assert names(swarms.announce(wish("c", film=OTHER), host(3), 2.0)) == ["b"]
    assert (swarms.peers, swarms.torrents) == (2, 1)


def test_a_full_tracker_refuses_one_more_swarm_but_serves_the_old_ones():
    swarms = tracker(max_torrents=1)
    swarms.announce(wish("a"), host(1), 0.0)
    with pytest.raises(RequestError, match="full"):
        swarms.announce(wish("b", film=OTHER), host(2), 0.0)
    assert names(swarms.announce(wish("b"), host(2), 0.0)) == ["a"]


def test_a_swarm_kept_for_its_count_makes_room_first():
    swarms = tracker(max_torrents=1)
    swarms.announce(wish("a", left=0, event=Event.COMPLETED), host(1), 0.0)
    assert swarms.expire(100.0) == 1
    assert swarms.scrape([FILM], 100.0) == {FILM: SwarmCounts(0, 0, 1)}
    swarms.announce(wish("b", film=OTHER), host(2), 100.0)
    assert swarms.scrape([FILM, OTHER], 100.0) == {OTHER: SwarmCounts(0, 1, 0)}


def test_a_returning_viewer_finds_its_swarms_count_again():
    swarms = tracker()
    swarms.announce(wish("a", left=0, event=Event.COMPLETED), host(1), 0.0)
    answer = swarms.announce(wish("b"), host(2), 1000.0)
    assert answer.counts == SwarmCounts(0, 1, 1)


def test_scrape_leaves_unknown_swarms_out():
    swarms = tracker()
    swarms.announce(wish("a"), host(1), 0.0)
    assert swarms.scrape([OTHER, FILM], 0.0) == {FILM: SwarmCounts(0, 1, 0)}


def test_scrape_does_not_count_the_silent():
    swarms = tracker()
    swarms.announce(wish("a"), host(1), 0.0)
    assert swarms.scrape([FILM], 75.0) == {}


class SwarmsUnderStrangers(RuleBasedStateMachine):
    """Announces of all kinds in any order against a plain model and tight bounds."""

    LIMITS = TrackerSettings(
        max_peers=6, max_peers_per_torrent=4, max_peers_per_address=2, max_torrents=3
    )
    ADDRESSES = (*(host(number) for number in range(3)), LOOPBACK, pack_address("2001:db8::7"))

    def __init__(self):
        super().__init__()
        self.swarms = Swarms(self.LIMITS, np.random.default_rng(0))
        self.now = 0.0
        self.heard = {}

    @rule(seconds=st.sampled_from([0.0, 1.0, 30.0, 75.0]))
    def wait(self, seconds):
        self.now += seconds

    @rule(
        film=st.sampled_from([bytes([number]) * 20 for number in range(4)]),
        name=st.integers(0, 5),
        address=st.sampled_from(ADDRESSES),
        port=st.integers(0, 3),
        left=st.sampled_from([None, 0, 7]),
        event=st.sampled_from(Event),
        playhead=st.none() | st.floats(0, 1000),
    )
    def announce(self, film, name, address, port, **more):
        request = wish(name, film=film, port=port, **more)
        try:
            answer = self.swarms.announce(request, address, self.now)
        except RequestError:
            self.heard.pop((film, address, port), None)
            assert self.swarms.torrents == self.LIMITS.max_torrents
            return
        if request.event is Event.STOPPED or not port:
            self.heard.pop((film, address, port), None)
        else:
            self.heard[film, address, port] = (self.now, request)
        for peer in answer.peers:
            assert (peer.address, peer.port) != (address, port)
            assert peer.peer_id != request.peer_id
            heard, last = self.heard[film, peer.address, peer.port]
            assert self.now - heard < self.LIMITS.expiry_seconds
            assert peer.peer_id == last.peer_id
            assert peer.complete is (last.left == 0)
            if last.playhead is None:
                assert peer.playhead is None
            else:
                assert peer.playhead == pytest.approx(last.playhead + self.now - heard)

    @rule()
    def scrape(self):
        films = [bytes([number]) * 20 for number in range(4)]
        counts = self.swarms.scrape(films, self.now)
        assert sum(c.complete + c.incomplete for c in counts.values()) == self.swarms.peers

    @invariant()
    def every_bound_holds(self):
        swarms = self.swarms
        assert swarms.peers <= self.LIMITS.max_peers
        assert swarms.torrents <= self.LIMITS.max_torrents
        members, groups = [], {}
        for film, swarm in swarms._swarms.items():
            own = [(kind, roster, key) for kind, roster in swarm.living() for key in roster.places]
            members += own
            assert len(swarm) == len(own) <= self.LIMITS.max_peers_per_torrent
            assert swarm.complete == sum(kind % 2 for kind, _, _ in own)
            assert own or swarm.downloaded
            assert (film in swarms._empty) is not bool(own)
            assert ((swarm.due, film) in swarms._due) is bool(own)
            for kind, roster, key in own:
                if kind < 4:
                    group = group_of(kind // 2, key)
                    groups[group] = groups.get(group, 0) + 1
                assert swarm.due <= roster.heard[roster.places[key]] + 0.75
        assert swarms.peers == len(members)
        assert swarms._shares.counts == groups
        assert all(count <= self.LIMITS.max_peers_per_address for count in groups.values())


@pytest.mark.slow
def test_swarms_under_strangers():
    """Hypothesis reads this class's source through `ast`, and Python 3.11.2 (Debian 12) raises a
    SystemError there if the garbage collector runs at that moment."""
    gc.collect()
    gc.disable()
    try:
        run_state_machine_as_test(
            SwarmsUnderStrangers,
            settings=hypothesis_settings(max_examples=60, stateful_step_count=40, deadline=None),
        )
    finally:
        gc.enable()
