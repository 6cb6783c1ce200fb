import math

from hypothesis import given
from hypothesis import strategies as st

from toast.policy.lead import Lead, LeadSettings

SETTINGS = LeadSettings(
    memory_seconds=12, least_seconds=3, starved_share=0.5, trial_seconds=10, most_seconds=30
)


def lead(near=1.5, piece=1.0):
    return Lead(near, piece, SETTINGS)


def observe(it, start, seconds, *, starving, horizon=4.0):
    """Every half second; returns when the lead became wider, if it did."""
    before = it.seconds
    for step in range(int(2 * seconds)):
        now = start + step / 2
        it.observe(now, starving=starving, horizon=horizon)
        if it.seconds != before:
            return now
    return None


def test_it_begins_with_the_closest():
    assert lead().seconds == 0.0


def test_who_starves_from_the_start_soon_wants_more_than_the_horizon_and_a_piece():
    it = lead()
    assert observe(it, 0, 20, starving=True) == 3.0
    assert it.seconds == 6.0  # 1.5 doubled until it is 5 at least


def test_who_has_something_to_ask_for_keeps_the_closest():
    it = lead()
    assert observe(it, 0, 600, starving=False) is None


def test_a_short_want_after_good_times_changes_nothing():
    it = lead()
    observe(it, 0, 30, starving=False)
    assert observe(it, 30, 5, starving=True) is None
    observe(it, 35, 30, starving=False)
    assert it.seconds == 0.0


def test_a_lasting_want_after_good_times_does():
    it = lead()
    observe(it, 0, 30, starving=False)
    widened = observe(it, 30, 60, starving=True)
    assert widened is not None
    assert 32 <= widened <= 40


def test_a_wider_lead_has_its_trial_before_it_is_doubled():
    it = lead()
    first = observe(it, 0, 20, starving=True)
    second = observe(it, first + 0.5, 60, starving=True)
    assert second - first >= SETTINGS.trial_seconds + SETTINGS.least_seconds - 0.5  # one look
    assert it.seconds == 12.0


def test_a_server_that_is_away_says_nothing_of_the_lead():
    """Then nothing is given up, and the horizon is no number."""
    it = lead()
    assert observe(it, 0, 60, starving=True, horizon=-math.inf) is None


def test_one_look_after_a_long_sleep_weighs_no_more_than_the_memory():
    it = lead()
    it.observe(0.0, starving=True, horizon=4.0)
    it.observe(1e6, starving=False, horizon=4.0)
    assert it.seconds == 6.0
    assert observe(it, 1e6 + 20, 60, starving=False) is None


@given(
    st.lists(st.tuples(st.floats(0, 20), st.booleans(), st.floats(-1, 60)), max_size=60),
    st.floats(0.1, 20),
    st.floats(0.01, 20),
)
def test_it_only_doubles_and_stays_within_its_limit(looks, near, piece):
    it = lead(near, piece)
    now, before = 0.0, 0.0
    for elapsed, starving, horizon in looks:
        now += elapsed
        it.observe(now, starving=starving, horizon=horizon)
        assert it.seconds >= before
        if it.seconds:
            doublings = math.log2(it.seconds / near)
            assert doublings >= 0
            assert abs(doublings - round(doublings)) < 1e-9
        assert it.seconds <= SETTINGS.most_seconds
        before = it.seconds
