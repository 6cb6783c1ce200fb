"""The rules of the house: who runs, who is served on, who makes room."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toast.daemon.errors import QuotaError
from toast.daemon.queue import FilmFacts, choose_ejected, choose_running, is_served_enough
from toast.daemon.schedule import FULL, Limits

FILM = FilmFacts(
    id="a",
    priority=0,
    added_at=0.0,
    paused=False,
    failed=False,
    watched_now=False,
    complete=False,
    watched=False,
    behaviour="seeding",
    sent_ratio=0.0,
    seeded_seconds=0.0,
    stored_bytes=0,
    size_bytes=100,
    last_used_at=0.0,
)


def film(name, **facts):
    return replace(FILM, id=name, **facts)


def running(films, *, most_active=2, limits=FULL, seed_ratio=None, seed_seconds=None):
    chosen = choose_running(
        films,
        most_active=most_active,
        limits=limits,
        seed_ratio=seed_ratio,
        seed_seconds=seed_seconds,
    )
    return "".join(sorted(chosen))


def test_downloads_run_by_priority_then_age():
    films = [film("a", added_at=1.0), film("b", added_at=2.0), film("c", added_at=3.0, priority=1)]
    assert running(films) == "ac"
    assert running(films, most_active=0) == ""


def test_what_is_watched_runs_on_top_and_takes_no_ones_place():
    films = [film("a"), film("b"), film("w", watched_now=True, paused=True, failed=True)]
    assert running(films) == "abw"
    assert running(films, limits=Limits(uploads=False, downloads=False), most_active=0) == "w"


def test_paused_and_failed_films_rest():
    assert running([film("a", paused=True), film("b", failed=True)]) == ""


def test_complete_films_are_served_beside_the_downloads():
    films = [film("a"), film("b"), film("s", complete=True), film("t", complete=True)]
    assert running(films) == "abst"
    assert running(films, limits=Limits(uploads=False)) == "ab"
    assert running(films, limits=Limits(downloads=False)) == "st"


@pytest.mark.parametrize(
    ("facts", "limits", "enough"),
    [
        ({"behaviour": "download-only"}, {}, True),
        ({"behaviour": "streaming"}, {}, False),
        ({"behaviour": "streaming", "watched": True}, {}, True),
        ({"watched": True}, {}, False),
        ({"sent_ratio": 1.99}, {"seed_ratio": 2.0}, False),
        ({"sent_ratio": 2.0}, {"seed_ratio": 2.0}, True),
        ({"seeded_seconds": 59.0}, {"seed_seconds": 60.0}, False),
        ({"seeded_seconds": 60.0}, {"seed_seconds": 60.0}, True),
        ({"sent_ratio": 0.0}, {"seed_ratio": 0.0}, True),
    ],
)
def test_when_a_film_was_served_enough(facts, limits, enough):
    rules = {"seed_ratio": None, "seed_seconds": None} | limits
    complete = film("a", complete=True, **facts)
    assert is_served_enough(complete, **rules) is enough
    assert (running([complete], **rules) == "") is enough


facts = st.builds(
    lambda **given: given,
    priority=st.integers(-3, 3),
    added_at=st.integers(0, 9).map(float),
    paused=st.booleans(),
    failed=st.booleans(),
    watched_now=st.booleans(),
    complete=st.booleans(),
    watched=st.booleans(),
    behaviour=st.sampled_from(["download-only", "streaming", "seeding"]),
    last_used_at=st.integers(0, 9).map(float),
    stored_bytes=st.integers(0, 150),
)
libraries = st.lists(facts, max_size=8).map(
    lambda all_facts: [film(f"{n}", **each) for n, each in enumerate(all_facts)]
)


@pytest.mark.slow
@settings(max_examples=50)
@given(libraries, st.integers(0, 4), st.booleans(), st.booleans())
def test_never_more_downloads_than_may_be_and_none_left_out_without_need(
    films, most_active, uploads, downloads
):
    limits = Limits(uploads=uploads, downloads=downloads)
    chosen = choose_running(
        films, most_active=most_active, limits=limits, seed_ratio=None, seed_seconds=None
    )
    rest = [each for each in films if not each.watched_now]
    loading = [each for each in rest if each.id in chosen and not each.complete]
    willing = [each for each in rest if not (each.complete or each.paused or each.failed)]
    assert len(loading) == (min(most_active, len(willing)) if downloads else 0)
    assert all(each.id in chosen for each in films if each.watched_now)
    assert not any((each.paused or each.failed) and each.id in chosen for each in rest)
    worst = min((each.priority for each in loading), default=9)
    left = [each for each in willing if each not in loading]
    assert not downloads or most_active == 0 or all(each.priority <= worst for each in left)


def test_watched_films_make_room_the_longest_unused_first():
    films = [
        film("a", complete=True, watched=True, last_used_at=3.0),
        film("b", complete=True, watched=True, last_used_at=1.0),
        film("c", complete=True),
        film("d", complete=True, watched=True, watched_now=True),
    ]
    quota = {"quota_bytes": 450, "eject_watched": True}
    assert choose_ejected(films, needed_bytes=50, **quota) == ()
    assert choose_ejected(films, needed_bytes=100, **quota) == ("b",)
    assert choose_ejected(films, needed_bytes=250, **quota) == ("b", "a")
    with pytest.raises(QuotaError, match="disk_bytes"):
        choose_ejected(films, needed_bytes=251, **quota)
    with pytest.raises(QuotaError):
        choose_ejected(films, needed_bytes=100, quota_bytes=450, eject_watched=False)


def test_films_count_with_what_they_will_take():
    with pytest.raises(QuotaError):
        choose_ejected([film("a")], needed_bytes=50, quota_bytes=149, eject_watched=True)


@pytest.mark.slow
@settings(max_examples=50)
@given(libraries, st.integers(0, 300), st.integers(0, 1500))
def test_after_making_room_all_fits_and_nothing_dear_is_gone(films, needed, quota):
    try:
        gone = choose_ejected(films, needed_bytes=needed, quota_bytes=quota, eject_watched=True)
    except QuotaError:
        dear = [each for each in films if not (each.complete and each.watched) or each.watched_now]
        assert sum(max(each.size_bytes, each.stored_bytes) for each in dear) + needed > quota
        return
    kept = [each for each in films if each.id not in gone]
    assert (
        sum(max(each.size_bytes, each.stored_bytes) for each in kept) + needed <= quota or not gone
    )
    assert all(
        each.complete and each.watched and not each.watched_now for each in films if each.id in gone
    )


def test_a_film_that_nobody_has_keeps_no_other_from_running():
    barren = [film(f"b{n}", priority=9, barren=True) for n in range(30)]
    others = [film(f"o{n}", added_at=float(n)) for n in range(3)]
    rules = {"limits": FULL, "seed_ratio": None, "seed_seconds": None}
    chosen = choose_running([*barren, *others], most_active=2, **rules)
    assert {name for name in chosen if name[0] == "o"} == {"o0", "o1"}
    assert len(chosen) == 2 + 20
    assert choose_running(barren, most_active=0, **rules) == frozenset()
