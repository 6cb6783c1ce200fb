"""The relay between browsers: whom an offer and an answer reach, and what is refused."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracker.errors import RequestError
from tracker.relay import Relay
from tracker.settings import TrackerSettings

FILM, OTHER = "f" * 19 + "\xff", "o" * 20


def session(kind="offer", sdp="v=0"):
    return {"type": kind, "sdp": sdp}


def offers(count):
    return [{"offer": session(sdp=f"{n}"), "offer_id": f"{n:020}"} for n in range(count)]


def name(number):
    return f"-WW0000-{number:012}"


WHOLE = {"action": "announce", "info_hash": FILM, "peer_id": name(1)}


class Room:
    """A relay, and browsers by number."""

    def __init__(self, **limits):
        self.relay = Relay(TrackerSettings(**limits), np.random.default_rng(1))

    def say(self, number, **message):
        return list(self.relay.hear(number, json.dumps(message)))

    def announce(self, number, *, film=FILM, peer_id=None, **more):
        told = {"info_hash": film, "peer_id": peer_id or name(number), "left": 9, **more}
        return self.say(number, action="announce", **told)

    def answer(self, number, to, **more):
        told = {"info_hash": FILM, "peer_id": name(number), "to_peer_id": name(to)}
        told |= {"offer_id": f"{3:020}", "answer": session("answer"), **more}
        return self.say(number, action="announce", **told)


@pytest.fixture
def room():
    return Room()


def test_the_first_is_told_that_it_is_alone(room):
    assert room.announce(1, offers=offers(5)) == [
        (
            1,
            {
                "action": "announce",
                "info_hash": FILM,
                "interval": 30,
                "complete": 0,
                "incomplete": 1,
            },
        )
    ]


def test_each_offer_goes_to_another_member_and_never_back(room):
    for number in range(1, 5):
        room.announce(number)
    (own, told), *rest = room.announce(9, offers=offers(3))
    assert (own, told["incomplete"]) == (9, 5)
    assert len({to for to, _ in rest}) == 3
    assert 9 not in {to for to, _ in rest}
    assert [message["offer"]["sdp"] for _, message in rest] == ["0", "1", "2"]
    assert {message["peer_id"] for _, message in rest} == {name(9)}
    assert room.relay.offers == 3


def test_an_answer_goes_to_whom_it_names_without_anything_else(room):
    room.announce(1)
    room.announce(2)
    ((to, message),) = room.answer(2, to=1, secret="not passed on")
    assert to == 1
    assert message == {
        "action": "announce",
        "info_hash": FILM,
        "peer_id": name(2),
        "offer_id": f"{3:020}",
        "answer": session("answer"),
    }
    assert room.answer(2, to=7) == [], "it has left meanwhile"


def test_who_is_no_member_cannot_answer_in_anothers_name(room):
    room.announce(1)
    room.announce(2)
    with pytest.raises(RequestError, match="only members"):
        room.answer(3, to=1)
    with pytest.raises(RequestError, match="only members"):
        room.answer(3, to=1, peer_id=name(2))


def test_nobody_takes_anothers_peer_id(room):
    room.announce(1)
    with pytest.raises(RequestError, match="another connection's"):
        room.announce(2, peer_id=name(1))
    room.announce(2, peer_id=name(1), event="stopped")
    ((_, told),) = room.announce(3)
    assert told["incomplete"] == 2


def test_holders_of_the_whole_film_are_not_introduced_to_each_other(room):
    room.announce(1, left=0)
    assert len(room.announce(2, left=0, offers=offers(3))) == 1
    assert len(room.announce(3, offers=offers(3))) == 3


def test_who_leaves_is_gone_from_all_its_swarms(room):
    room.announce(1)
    room.announce(1, film=OTHER)
    room.announce(2)
    room.relay.leave(1)
    assert room.relay.peers == 1
    room.announce(2, event="stopped")
    room.relay.leave(3)
    assert room.relay.peers == 0
    assert room.say(4, action="scrape", info_hash=FILM) == [(4, {"action": "scrape", "files": {}})]


def test_another_name_of_one_browser_replaces_the_first(room):
    room.announce(1)
    ((_, told),) = room.announce(1, peer_id=name(77))
    assert told["incomplete"] == 1


def test_a_scrape_counts(room):
    room.announce(1, left=0, event="completed")
    room.announce(2)
    room.announce(2, film=OTHER)
    ((_, told),) = room.say(3, action="scrape", info_hash=[FILM, OTHER, "u" * 20])
    assert told["files"] == {
        FILM: {"complete": 1, "incomplete": 1, "downloaded": 1},
        OTHER: {"complete": 0, "incomplete": 1, "downloaded": 0},
    }


def test_films_that_are_not_in_the_catalogue_are_refused_and_forgotten(room):
    room.announce(1)
    room.announce(1, film=OTHER)
    room.relay.permit(frozenset([FILM.encode("latin-1")]))
    assert room.relay.peers == 1
    room.announce(2)
    with pytest.raises(RequestError, match="not in the catalogue"):
        room.announce(2, film=OTHER)


def test_limits():
    room = Room(max_swarms_per_browser=2, max_torrents=3, max_offers=2, max_peers_per_torrent=3)
    for number, film in ((1, "a"), (1, "b"), (2, "c")):
        room.announce(number, film=film * 20)
    with pytest.raises(RequestError, match="2 swarms"):
        room.announce(1, film="c" * 20)
    with pytest.raises(RequestError, match="no room"):
        room.announce(2, film="d" * 20)
    room.announce(3, film="a" * 20)
    assert len(room.announce(4, film="a" * 20, offers=offers(9))) == 3
    with pytest.raises(RequestError, match="full"):
        room.announce(5, film="a" * 20)


@pytest.mark.parametrize(
    ("message", "says"),
    [
        ("nonsense", "no JSON"),
        ("[" * 100_000, "no JSON"),
        ("[]", "JSON object"),
        ("{}", "action"),
        ('{"action": "announce"}', "info_hash"),
        (json.dumps({"action": "announce", "info_hash": "short", "peer_id": name(1)}), "info_hash"),
        (json.dumps({"action": "announce", "info_hash": "\u0100" * 20}), "info_hash"),
        (json.dumps({"action": "announce", "info_hash": FILM, "peer_id": 7}), "peer_id"),
        (json.dumps({**WHOLE, "offers": {"a": 1}}), "list"),
        (
            json.dumps(
                {"action": "announce", "info_hash": FILM, "peer_id": name(1), "offers": [1]}
            ),
            "object",
        ),
        (json.dumps({**WHOLE, "offers": [{}]}), "session"),
        ('{"action": "scrape"}', "info_hash"),
        (json.dumps({"action": "scrape", "info_hash": [FILM] * 51}), "50"),
    ],
)
def test_what_means_nothing_is_refused_in_words(room, message, says):
    with pytest.raises(RequestError, match=says):
        list(room.relay.hear(1, message))
    assert room.relay.peers == 0


VALUES = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=21) | st.just(FILM),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=5,
)
NAMES = st.sampled_from(
    [
        "action",
        "info_hash",
        "peer_id",
        "left",
        "event",
        "offers",
        "answer",
        "to_peer_id",
        "offer_id",
    ]
)


@given(
    st.lists(
        st.tuples(
            st.integers(0, 2),
            st.dictionaries(NAMES, VALUES | st.just("announce") | st.just(name(1))),
        ),
        max_size=8,
    )
)
def test_whatever_comes_members_are_counted_right(said):
    room = Room(max_swarms_per_browser=2)
    for number, message in said:
        whole = {"action": "announce", "info_hash": FILM, "peer_id": name(number), **message}
        try:
            for to, told in room.say(number, **whole):
                assert to in {0, 1, 2}
                json.dumps(told)
        except RequestError:
            pass
        assert 0 <= room.relay.peers <= 6
    for number in range(3):
        room.relay.leave(number)
    assert room.relay.peers == 0
