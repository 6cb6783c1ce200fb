"""The bound: published figures, cases that can be worked out by hand, and what must always hold."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.bound import Behaviour, FluidScenario, ViewerPlan, evenly_spaced, offload_bound
from experiments.errors import ScenarioError

RATE = 250_000.0


def bound(
    arrivals,
    upload,
    behaviour="streaming",
    *,
    duration=60.0,
    download=None,
    stays=None,
    seeks=None,
    **more,
):
    """The bound of a film of 2 Mb/s; caps are in units of its bit rate."""
    viewers = tuple(
        ViewerPlan(
            arrival_seconds=arrival,
            upload_rate=upload * RATE,
            download_rate=None if download is None else download * RATE,
            behaviour=Behaviour(behaviour),
            stays_seconds=stay,
            seek=seek,
        )
        for arrival, stay, seek in zip(
            arrivals,
            stays or [None] * len(arrivals),
            seeks or [None] * len(arrivals),
            strict=True,
        )
    )
    return offload_bound(
        FluidScenario(
            film_bytes=round(RATE * duration), duration_seconds=duration, viewers=viewers, **more
        )
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("behaviour", "upload", "published"),
    [
        ("streaming", 1.0, 0.992),
        ("streaming", 0.75, 0.750),
        ("streaming", 0.5, 0.500),
        ("seeding", 1.0, 0.992),
        ("seeding", 0.5, 0.830),
        ("download-only", 1.0, 0.987),
        ("download-only", 0.5, 0.497),
    ],
)
def test_the_founding_scenario(behaviour, upload, published):
    """300 viewers, one per 36 s, a film of one hour, a run of four: docs/measures.md."""
    arrivals = [36.0 * number for number in range(300)]
    value = bound(arrivals, upload, behaviour, duration=3600.0, end_seconds=4 * 3600.0)
    assert value == pytest.approx(published, abs=0.002)


@pytest.mark.parametrize(
    ("upload", "start_pieces", "published"), [(1.0, 0, 0.964), (0.5, 0, 0.499), (1.0, 3, 0.945)]
)
def test_the_prototype_scenario(upload, start_pieces, published):
    """40 viewers, one per 4.5 s, 90 s in 85 pieces."""
    value = bound(
        [4.5 * number for number in range(40)],
        upload,
        duration=90.0,
        pieces=85,
        server_start_seconds=start_pieces * 90 / 85,
    )
    assert value == pytest.approx(published, abs=0.01)


def test_one_viewer_has_no_peers():
    assert bound([0.0], 10.0) == 0.0


def test_two_viewers_by_hand():
    """The second gets all but its first piece from the first, who has it all from the server."""
    assert bound([0.0, 10.0], 1.0, pieces=100) == pytest.approx(0.5 * 0.99)


def test_viewers_who_never_meet_share_nothing():
    assert bound([0.0, 61.0], 5.0) == 0.0
    assert bound([0.0, 61.0], 5.0, "seeding") == pytest.approx(0.5 * 0.995)


def test_two_uplinks_of_half_the_rate_while_both_are_there():
    """30 s together x 2 uplinks x half the rate, of 120 s of film: the server gives each of the
    two what the other one lacks."""
    assert bound([0.0, 30.0], 0.5, pieces=600) == pytest.approx(30 / 120, abs=0.002)


def test_viewers_who_arrive_together_can_feed_each_other():
    """One copy injected early is enough; without that rule this would be 0."""
    value = bound([0.0] * 10, 1.0, pieces=100)
    assert value == pytest.approx(0.9 - 0.9 * 0.01, abs=0.01)


def test_a_seed_that_nobody_counts_serves_even_a_lone_viewer():
    assert bound([0.0], 0.0, free_seed_rate=RATE) == pytest.approx(0.995)
    assert bound([0.0], 0.0, free_seed_rate=RATE / 2) == pytest.approx(0.5, abs=0.005)


def test_a_download_cap_below_the_bit_rate_limits_what_peers_bring():
    """Half of it must then come from elsewhere, in time, whatever the uplinks could send."""
    assert bound([0.0, 10.0, 20.0], 5.0, download=0.5) < 0.35
    assert bound([0.0, 10.0, 20.0], 5.0, download=2.0) == pytest.approx(2 / 3 * 0.995, abs=0.01)


def test_a_download_only_viewer_leaves_before_a_streaming_one():
    arrivals = [4.0 * number for number in range(15)]
    few = bound(arrivals, 0.5, "download-only", pieces=20)
    assert few < bound(arrivals, 0.5, "streaming", pieces=20)
    assert few <= 0.5 * 19 / 20 + 1e-9


def test_who_leaves_sooner_counts_for_what_it_plays():
    """The second plays half the film, and gets all of that but its first piece from the first."""
    value = bound([0.0, 10.0], 1.0, pieces=100, stays=[None, 30.0])
    assert value == pytest.approx(0.49 / 1.5)


def test_who_leaves_sooner_gives_no_more():
    """The second gets what the first has seen, but its own first piece; the rest the server has."""
    value = bound([0.0, 10.0], 1.0, pieces=600, stays=[30.0, None])
    assert value == pytest.approx((30 - 0.1) / 90)
    assert bound([0.0, 10.0], 1.0, pieces=100, stays=[5.0, None]) == 0.0
    assert bound([0.0, 10.0], 1.0, "seeding", pieces=600, stays=[30.0, None]) == value


def test_who_jumps_ahead_plays_less_and_leaves_sooner():
    """The first plays 10 + 30 s. The second, 20 s behind, gets its 10 s to 30 s from nobody: they
    were never there; and what the first has at 40 s it had for 20 s before that."""
    value = bound([0.0, 20.0], 0.5, "seeding", pieces=600, seeks=[(10.0, 30.0), None])
    assert value == pytest.approx((10 - 0.1 + 30) / 100, abs=0.002)
    streaming = bound([0.0, 20.0], 0.5, pieces=600, seeks=[(10.0, 30.0), None])
    assert streaming == pytest.approx(20 / 100, abs=0.002)


def test_who_jumps_back_needs_nothing_again():
    """It sees 30 s twice: that is 60 s of film all the same, and it stays 30 s longer."""
    plain = bound([0.0, 20.0], 1.0, pieces=600)
    back = bound([0.0, 20.0], 1.0, pieces=600, seeks=[(30.0, 0.0), None])
    assert plain <= back <= 0.5
    assert bound([0.0], 1.0, seeks=[(30.0, 0.0)]) == 0.0


def test_who_stays_to_the_end_might_as_well_not_have_said_so():
    arrivals = [7.5 * number for number in range(8)]
    assert bound(arrivals, 0.7, stays=[60.0] * 8) == bound(arrivals, 0.7)


def test_finer_pieces_agree_with_coarse_ones():
    arrivals = [7.5 * number for number in range(8)]
    coarse, fine = (bound(arrivals, 1.0, pieces=pieces) for pieces in (100, 400))
    assert coarse == pytest.approx(fine, abs=0.01)


@pytest.mark.slow
@settings(deadline=None)
@given(
    arrivals=st.lists(st.floats(0, 90), min_size=1, max_size=6),
    upload=st.floats(0, 3),
    behaviour=st.sampled_from([b.value for b in Behaviour]),
    download=st.none() | st.floats(0.1, 3),
    stay=st.none() | st.floats(0, 60),
)
def test_no_bound_exceeds_what_is_there(arrivals, upload, behaviour, download, stay):
    """Not the uplinks, and not all copies but one; and more upload never lowers it."""
    if stay is not None:  # all of them: the same film, only shorter, but for the seeding ones
        value = bound(arrivals, upload, download=download, pieces=20, stays=[stay] * len(arrivals))
        assert 0.0 <= value <= 1 - 1 / len(arrivals) + 1e-9
    value = bound(arrivals, upload, behaviour, download=download, pieces=20)
    stay = 60.0 if behaviour != "seeding" else max(arrivals) - min(arrivals) + 60.0
    assert 0.0 <= value <= 1 - 1 / len(arrivals) + 1e-9
    assert value <= upload * stay / 60.0 + 1e-9
    assert value <= bound(arrivals, upload * 1.5, behaviour, download=download, pieces=20) + 1e-9


def test_an_uplink_without_a_cap_is_no_obstacle():
    assert bound([0.0, 10.0], math.inf, pieces=100) == pytest.approx(0.5 * 0.99)


def test_evenly_spaced_copies_all_but_the_time():
    first = ViewerPlan(
        arrival_seconds=5.0, upload_rate=1.0, download_rate=2.0, behaviour=Behaviour.SEEDING
    )
    viewers = evenly_spaced(3, 10.0, first)
    assert [viewer.arrival_seconds for viewer in viewers] == [5.0, 15.0, 25.0]
    assert {(v.upload_rate, v.download_rate, v.behaviour) for v in viewers} == {
        (1.0, 2.0, Behaviour.SEEDING)
    }


@pytest.mark.parametrize(
    "wrong",
    [
        {"film_bytes": 0},
        {"duration_seconds": 0.0},
        {"pieces": 0},
        {"viewers": ()},
        {"viewers": (ViewerPlan(arrival_seconds=math.nan, upload_rate=1.0),)},
        {"viewers": (ViewerPlan(arrival_seconds=0.0, upload_rate=-1.0),)},
        {"viewers": (ViewerPlan(arrival_seconds=0.0, upload_rate=1.0, download_rate=0.0),)},
    ],
)
def test_a_scenario_that_cannot_be_is_refused(wrong):
    right = {
        "film_bytes": 1000,
        "duration_seconds": 10.0,
        "viewers": (ViewerPlan(arrival_seconds=0.0, upload_rate=1.0),),
    }
    with pytest.raises(ScenarioError):
        FluidScenario(**(right | wrong))


def test_a_run_of_endless_steps_is_refused():
    with pytest.raises(ScenarioError, match="steps"):
        bound([0.0], 1.0, end_seconds=1e9, pieces=200)
