import pytest
from hypothesis import given
from hypothesis import strategies as st

from toast.policy.errors import PolicyError
from toast.policy.lookahead import PeerRate, create_horizon, horizon_names

MB = 1_000_000


def horizon(rule, **changes):
    facts = {
        "piece_bytes": 250_000,
        "film_rate": 250_000.0,
        "peer_rate": 125_000.0,
        "queued_bytes": 0,
        "hand_over_seconds": 0.5,
    }
    return rule.horizon(**facts | changes)


def test_transfer_is_the_time_for_one_piece_and_the_hand_over():
    assert horizon(create_horizon("transfer", safety=1.0)) == pytest.approx(2.5)


def test_what_could_just_be_in_time_is_not_begun():
    """The transfer time counts one and a half times, the hand-over once."""
    assert horizon(create_horizon("transfer")) == pytest.approx(1.5 * 2.0 + 0.5)


def test_a_safety_factor_below_one_is_refused():
    with pytest.raises(PolicyError, match="safety"):
        create_horizon("transfer", safety=0.9)


def test_what_is_queued_comes_first():
    assert horizon(create_horizon("transfer", safety=1.0), queued_bytes=500_000) == 6.5


def test_an_unknown_peer_is_taken_to_keep_up_with_the_film():
    assert horizon(create_horizon("transfer", safety=1.0), peer_rate=None) == 1.5


def test_the_source_s_example():
    """A piece of 4 s, needed in less than 4 s, from a peer no faster than the film."""
    rule = create_horizon("transfer", safety=1.0)

    assert horizon(rule, piece_bytes=MB, peer_rate=250_000.0, hand_over_seconds=0.0) == 4.0


def test_it_is_bounded():
    rule = create_horizon("transfer", lo=2.0, hi=10.0)

    assert horizon(rule, peer_rate=100.0 * MB) == 2.0
    assert horizon(rule, peer_rate=1.0) == 10.0
    assert horizon(rule, peer_rate=0.0) == 10.0


@given(st.floats(0, 1e9), st.integers(0, 10**9), st.floats(0, 100))
def test_transfer_always_answers_within_its_bounds(rate, queued, hand_over):
    rule = create_horizon("transfer", lo=1.0, hi=20.0)

    answer = horizon(rule, peer_rate=rate, queued_bytes=queued, hand_over_seconds=hand_over)
    assert 1.0 <= answer <= 20.0


def test_fixed_is_fixed():
    assert horizon(create_horizon("fixed", seconds=7.0), peer_rate=1.0) == 7.0


def test_names():
    assert horizon_names() == ("fixed", "transfer")
    assert [create_horizon(name).name for name in horizon_names()] == ["fixed", "transfer"]


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("transfer", {"lo": 5.0, "hi": 1.0}),
        ("transfer", {"lo": -1.0}),
        ("fixed", {"seconds": -1.0}),
        ("fixed", {"minutes": 1.0}),
        ("guess", {}),
    ],
)
def test_impossible_rules_are_refused(name, params):
    with pytest.raises(PolicyError):
        create_horizon(name, **params)


def test_a_peer_rate_is_unknown_until_something_came():
    rate = PeerRate()
    rate.observe(0.0, 0.0, busy=True)
    assert rate.value is None


def test_a_rise_counts_at_once_and_a_fall_slowly():
    rate = PeerRate(memory_seconds=10.0)
    rate.observe(0.0, 100.0, busy=True)
    rate.observe(1.0, 300.0, busy=True)
    assert rate.value == 300.0
    rate.observe(11.0, 100.0, busy=True)
    assert rate.value == pytest.approx(100.0 + 200.0 * 0.3679, rel=1e-3)


def test_an_idle_link_says_nothing_of_its_speed():
    rate = PeerRate()
    rate.observe(0.0, 300.0, busy=True)
    rate.observe(100.0, 0.0, busy=False)
    assert rate.value == 300.0


def test_a_silent_peer_is_soon_not_counted_on_but_never_nothing():
    rate = PeerRate(memory_seconds=1.0)
    rate.observe(0.0, 300.0, busy=True)
    rate.observe(1000.0, 0.0, busy=True)
    assert rate.value == 1.0
