"""News between trackers: what is told is known, once, and nonsense is refused."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracker.errors import TrackerError
from tracker.messages import Event, SwarmCounts
from tracker.news import Journal, Report, encode_news, read_news, reports_of
from tracker.settings import TrackerSettings
from tracker.state import Swarms
from tracker.swarm import WIDTHS, key_of

FILM, OTHER = b"f" * 20, b"o" * 20
AUTHOR, HOST, ELSEWHERE = b"author--", b"host----", b"other---"
WALL = 1e9


def make(**limits):
    return Swarms(TrackerSettings(**limits), np.random.default_rng(1))


def viewer(number, *, port=6881, film=FILM):
    return film, 0, key_of(bytes([198, 51, 0, number]), port)


def note(journal, number, now=10.0, *, complete=False, event=Event.NONE, playhead=None, **place):
    member = viewer(number, **place)
    journal.note(member, b"%020d" % number, now, complete=complete, event=event, playhead=playhead)


def tell(reports, swarms, now=1000.0, *, later=0.0, host=HOST):
    """What was written at 11 s of one clock is read by another one, `later` seconds after that."""
    for message in encode_news(reports, 11.0, WALL, AUTHOR, host):
        read_news(message, now, WALL + later).tell(swarms, now, HOST)


@st.composite
def reports(draw):
    family = draw(st.integers(0, 3))
    playhead = st.none() | st.floats(-1e6, 1e6, width=32)
    return Report(
        (
            draw(st.binary(min_size=20, max_size=20)),
            family,
            draw(st.integers(0, (1 << 8 * WIDTHS[family]) - 1)),
        ),
        draw(st.binary(min_size=20, max_size=20)),
        11.0 - draw(st.floats(0, 1e6, width=32)),
        *(draw(st.booleans()) for _ in range(3)),
        draw(playhead),
    )


@given(st.lists(reports(), max_size=5))
def test_what_is_written_can_be_read(told):
    messages = list(encode_news(told, 11.0, WALL, AUTHOR, HOST))
    read = [report for message in messages for report in read_news(message, 11.0, WALL).reports]
    assert [report._replace(heard=0.0) for report in read] == [
        report._replace(heard=0.0) for report in told
    ]
    for found, report in zip(read, told, strict=True):
        assert found.heard == pytest.approx(report.heard, abs=0.1)


def test_much_is_cut_into_messages_of_bounded_size():
    told = [
        Report(viewer(n % 250, port=n + 1), b"p" * 20, 10.0, complete=False) for n in range(1001)
    ]
    messages = list(encode_news(told, 11.0, WALL, AUTHOR, HOST))
    assert len(messages) == 3
    assert max(map(len, messages)) < 32_000
    swarms = make(max_peers_per_address=10_000)
    tell(told, swarms)
    assert swarms.peers == 1001


def test_a_viewer_that_announced_elsewhere_is_known_with_its_playhead():
    journal, swarms = Journal(100), make()
    note(journal, 1, playhead=61.5)
    note(journal, 2, complete=True)
    tell(journal.take(), swarms)
    assert swarms.scrape([FILM], 1000.0) == {FILM: SwarmCounts(1, 1, 0)}
    told = {report.membership: report for report in reports_of(swarms, 1000.0)}
    assert told[viewer(1)].playhead == pytest.approx(61.5)
    assert told[viewer(2)].complete
    assert journal.take() == []


def test_of_each_viewer_the_last_announce_is_told_and_its_completion_is_not_lost():
    journal, swarms = Journal(100), make()
    note(journal, 1, 10.0)
    note(journal, 1, 10.1, complete=True, event=Event.COMPLETED)
    note(journal, 1, 10.2, complete=True)
    (report,) = journal.take()
    assert (report.heard, report.complete, report.completed) == (10.2, True, True)
    tell([report], swarms)
    tell([report], swarms)
    assert swarms.scrape([FILM], 1000.0) == {FILM: SwarmCounts(1, 0, 1)}, "counted once"


def test_who_left_elsewhere_has_left():
    journal, swarms = Journal(100), make()
    note(journal, 1)
    tell(journal.take(), swarms)
    note(journal, 1, event=Event.STOPPED)
    tell(journal.take(), swarms)
    assert swarms.peers == swarms.torrents == 0


def test_old_news_change_nothing_that_is_known_and_revive_nobody():
    swarms = make()
    recent = Report(viewer(1), b"p" * 20, 10.0, complete=True)
    tell([recent], swarms)
    tell([recent._replace(complete=False)], swarms, later=30.0)
    assert swarms.scrape([FILM], 1000.0) == {FILM: SwarmCounts(1, 0, 0)}
    tell([Report(viewer(2), b"q" * 20, 10.0, complete=False)], swarms, later=30.0)
    assert swarms.peers == 2, "it was silent for less than the expiry"
    tell([Report(viewer(3), b"r" * 20, 10.0, complete=False)], swarms, later=300.0)
    tell([Report(viewer(2), b"q" * 20, 10.0, False, stopped=True)], swarms, later=30.0)
    assert swarms.peers == 2, "it may have come back since"


def test_a_clock_that_is_ahead_makes_nobody_younger_than_now():
    swarms = make()
    tell([Report(viewer(1), b"p" * 20, 10.0, complete=False)], swarms, later=-3600.0)
    (report,) = reports_of(swarms, 1000.0)
    assert report.heard <= 1000.0


def test_loopback_is_believed_on_the_same_machine_alone():
    member = FILM, 2, key_of(bytes([127, 0, 0, 1]), 1234)
    for host, known in ((HOST, 1), (ELSEWHERE, 0)):
        swarms = make()
        tell([Report(member, b"p" * 20, 10.0, complete=False)], swarms, host=host)
        assert swarms.peers == known


def test_films_that_are_not_ours_and_more_swarms_than_there_is_room_for_are_left_out():
    swarms = make(max_torrents=1)
    swarms.permit(frozenset([FILM]))
    told = [
        Report(viewer(n, film=film), b"p" * 20, 10.0, complete=False)
        for n, film in enumerate((OTHER, FILM, b"x" * 20), 1)
    ]
    tell(told, swarms)
    assert swarms.torrents == swarms.peers == 1


def test_nobody_is_told_of_port_0_and_a_full_journal_drops():
    journal = Journal(2)
    note(journal, 1, port=0)
    assert journal.take() == []
    for number in (1, 2, 3, 2):
        note(journal, number)
    assert len(journal.take()) == 2
    assert journal.dropped == 1


@pytest.mark.parametrize("cut", [0, 1, 33, 34, 60, -1])
def test_half_a_message_is_none(cut):
    (message,) = encode_news(
        [Report(viewer(1), b"p" * 20, 10.0, complete=False)], 11.0, WALL, AUTHOR, HOST
    )
    if cut == 34:
        assert read_news(message[:34], 0.0, WALL).reports == ()
        return
    with pytest.raises(TrackerError):
        read_news(message[:cut], 0.0, WALL)


@settings(max_examples=200)
@given(st.binary(max_size=200), st.integers(0, 91), st.binary(min_size=1, max_size=8))
def test_nonsense_is_refused_or_harmless(nonsense, at, change):
    (good,) = encode_news(
        [Report(viewer(1), b"p" * 20, 10.0, complete=False)], 11.0, WALL, AUTHOR, HOST
    )
    for message in (nonsense, good[:at] + change + good[at + len(change) :]):
        swarms = make()
        try:
            news = read_news(message, 1000.0, WALL)
        except TrackerError:
            continue
        news.tell(swarms, 1000.0, HOST)
        assert swarms.peers <= 1
        for report in reports_of(swarms, 1000.0):
            assert report.playhead is None or math.isfinite(report.playhead)
            assert report.heard <= 1000.0
