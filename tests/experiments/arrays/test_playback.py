"""A client's account in the simulator, held to the server's own."""

from hypothesis import given
from hypothesis import strategies as st

from experiments.arrays.playback import Playback
from vodserver.http.pacing import Pace


def test_a_client_in_time_never_starves():
    client = Playback(5.0, 5.0)
    client.receive(0.3)
    for turn in range(10):
        assert client.due() <= 0.3 + 5.0 * turn + 1e-6
        assert not client.receive(0.3 + 5.0 * turn + 4.9)
    client.end(50.0)
    assert client.incidents == []


def test_a_late_read_is_a_starvation_of_so_many_seconds():
    client = Playback(5.0, 5.0)
    client.receive(0.0)
    assert client.receive(7.5)
    assert client.incidents == [2.5]
    # The timetable went on: the next reads are due at once, until the client is ahead again.
    assert client.due() <= 5.0 + 1e-6


def test_smaller_reads_are_asked_for_as_the_lead_shrinks():
    client = Playback(5.0, 1.0)
    for _ in range(5):
        assert client.due() is None
        client.receive(0.0)
    assert client.started == 0.0
    client.receive(0.1)
    assert 0.9 < client.due() < 1.1


def test_a_film_that_was_sent_whole_starves_nobody():
    client = Playback(5.0, 5.0, units=2)
    client.receive(0.0)
    client.receive(1.0)
    client.end(100.0)
    assert client.is_complete
    assert client.incidents == []


@given(st.lists(st.floats(0.0, 20.0), min_size=1, max_size=30), st.sampled_from([1.0, 2.5, 5.0]))
def test_it_agrees_with_the_servers_own_account(gaps, unit):
    """`Pace` counts bytes; a kilobyte stands for a second."""
    client, pace = Playback(5.0, unit), Pace(1000.0, 5.0)
    now = 0.0
    for gap in gaps:
        now += gap
        client.receive(now)
        pace.sent(round(1000 * unit), now)
    client.end(now)
    told = pace.starvation(now)
    assert abs(sum(client.incidents) - told.seconds) < 1e-3 * (1 + len(gaps))
    tiny = sum(length < 1e-3 for length in client.incidents)
    assert told.incidents - tiny <= len(client.incidents) <= told.incidents + tiny
