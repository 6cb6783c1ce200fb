"""Whole runs of the simulator: what must hold whatever the policies do, who carries the film."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from experiments.bound import Behaviour
from experiments.errors import ScenarioError
from experiments.sim.engine import SimEngine
from experiments.sim.settings import SimSettings
from experiments.sim.world import World
from experiments.swarms.presets import scaled
from experiments.swarms.result import RunResult
from experiments.swarms.scenario import (
    ArrivalKind,
    Arrivals,
    Choking,
    Client,
    Film,
    Link,
    Scenario,
)
from toast.policy.neighbours import neighbours_names
from toast.policy.pickers import picker_names

RATE_BPS = 1e6


def small(viewers: int = 5, *, upload: float = 1.0, **changes: object) -> Scenario:
    """A film of 20 s in pieces of half a second, a viewer every 2 s, no operator's seed."""
    fields: dict[str, object] = {
        "name": "small",
        "viewers": viewers,
        "film": Film(bit_rate_bps=RATE_BPS, duration_seconds=20.3, piece_bytes=64 * 1024),
        "arrivals": Arrivals(spacing_seconds=2.0),
        "links": (Link(upload_bps=upload * RATE_BPS),),
        "seed_upload_bps": 0.0,
        "picker": "in-order",
    }
    return Scenario(**{**fields, **changes})  # type: ignore[arg-type]


def run(scenario: Scenario) -> RunResult:
    return SimEngine().run(scenario)


def world_of(scenario: Scenario) -> tuple[World, float]:
    world = World(scenario)
    return world, world.run()


def as_text(result: RunResult) -> str:
    plain = result.to_dict()
    for cost in ("wall_seconds", "cpu_seconds", "peak_memory_bytes"):
        del plain[cost]
    return json.dumps(plain)


@pytest.mark.parametrize("picker", picker_names())
def test_the_same_seed_gives_the_same_result_byte_for_byte(picker):
    scenario = small(6, picker=picker, arrivals=Arrivals(kind=ArrivalKind.POISSON))

    assert as_text(run(scenario)) == as_text(run(scenario))
    assert as_text(run(scenario)) != as_text(run(scenario.with_(random_seed=2)))


def test_one_viewer_alone_takes_everything_from_the_operator():
    result = run(small(1))

    assert result.offload == 0.0
    assert result.peer_bytes == 0
    assert result.operator_bytes == small().film.film_bytes


def test_the_second_takes_almost_nothing_from_the_operator_if_the_first_can_send():
    first, second = world_of(small(2, upload=4.0))[0].viewers
    film_bytes = small().film.film_bytes

    assert first.from_origin == film_bytes
    assert second.from_peers > 0.85 * film_bytes


def test_half_the_upload_carries_half_the_film_at_most():
    result = run(small(10, upload=0.5))

    assert 0.2 < result.offload <= 0.5
    assert result.upload_cap_respected


def test_all_at_once():
    result = run(small(8, arrivals=Arrivals(kind=ArrivalKind.ALL_AT_ONCE)))

    assert 0 <= result.offload <= result.bound
    assert result.stalls == 0


@pytest.mark.parametrize("picker", picker_names())
def test_who_stays_longer_carries_more(picker):
    scenario = small(12, picker=picker, upload=0.75, run_seconds=60.0)
    offload = {
        behaviour: run(scenario.with_(behaviour=behaviour)).offload
        for behaviour in (Behaviour.STREAMING, Behaviour.SEEDING)
    }

    assert offload[Behaviour.SEEDING] >= offload[Behaviour.STREAMING]


def test_who_downloads_only_leaves_as_soon_as_it_has_everything_and_still_sees_the_film():
    world, end = world_of(small(4, upload=4.0, behaviour=Behaviour.DOWNLOAD_ONLY))

    assert all(
        viewer.row(end).played_bytes == world.cut.geometry.film_bytes for viewer in world.viewers
    )
    assert any(viewer.departed_at < viewer.ended_at for viewer in world.viewers)


def test_who_leaves_sooner_plays_and_gives_no_more():
    world, end = world_of(small(10, upload=2.0, leaving_share=0.5))
    for viewer in world.viewers:
        who, row = viewer.who, viewer.row(end)
        assert row.stalls == 0
        if who.leaves_seconds is None:
            assert row.played_bytes == world.cut.geometry.film_bytes
            continue
        assert row.departed_at == who.arrives_seconds + who.leaves_seconds
        seen = who.leaves_seconds / world.cut.timemap.duration * world.cut.geometry.film_bytes
        assert row.played_bytes == pytest.approx(seen, abs=2 * 64 * 1024)
    left = [viewer for viewer in world.viewers if viewer.who.leaves_seconds is not None]
    assert len(left) == 5


def test_when_some_leave_the_rest_still_sees_the_film():
    whole, some = (run(small(12, leaving_share=share)) for share in (0.0, 0.4))
    assert some.stalls == 0
    assert some.peer_bytes < whole.peer_bytes
    assert 0 < some.offload <= some.bound
    assert some.bound < whole.bound


def test_nobody_stalls_with_a_server_that_is_fast_enough():
    result = run(small(6, upload=0.0))

    assert result.stalls == 0
    assert result.offload == 0.0
    assert result.start_seconds_p95 < 0.5


def test_a_server_that_is_too_slow_makes_films_halt():
    result = run(small(3, upload=0.0, origin_rate_bps=1.5 * RATE_BPS))

    assert result.stalls > 0
    assert result.stall_seconds > 5


def test_what_the_first_one_lacks_does_not_lack_everybody_behind_it():
    """The operator's seed cannot keep up, so the foremost takes pieces from the server: they are
    had of it by the next one, and so on. (Fetched when due, each was fetched by all: 0.865.)"""
    chain = scaled("compressed", picker="in-order").with_(
        neighbours_options={"ahead": 1},
        viewers=30,
        film=Film(duration_seconds=60.0),
        run_seconds=150.0,
    )
    short, full = (run(chain.with_(seed_upload_bps=rate)).offload for rate in (1.8e6, 2e6))

    assert full > 0.9
    assert short > full - 0.005


def test_those_who_come_all_at_once_spread_what_each_of_them_fetches():
    """Nobody is ahead of anybody. (When each fetched what it lacked at the last moment: 0.48.)"""
    crowd = scaled("compressed", picker="in-order").with_(
        viewers=15,
        film=Film(duration_seconds=90.0),
        arrivals=Arrivals(kind=ArrivalKind.ALL_AT_ONCE),
        run_seconds=None,
    )
    result = run(crowd)

    assert result.stalls == 0
    assert result.offload > 0.7


def test_the_operators_seed_is_paid_for_by_the_operator():
    result = run(small(1, seed_upload_bps=4 * RATE_BPS))

    assert result.operator_seed_bytes > 0.5 * small().film.film_bytes
    assert result.offload <= 0.0


def test_latency_delays_the_start():
    near = run(small(2))
    far = run(small(2, links=(Link(upload_bps=RATE_BPS, latency_seconds=0.1),)))

    assert far.start_seconds_p50 > near.start_seconds_p50 + 0.09
    assert far.stalls == 0


def test_a_limited_buffer_keeps_within_its_bound():
    scenario = small(5, buffer_fraction=0.4)
    most = int(0.4 * scenario.film.film_bytes) // scenario.film.piece_bytes
    world = World(scenario)
    kept = []
    for viewer in world.viewers:
        verified = viewer._verified

        def look(piece, viewer=viewer, verified=verified):
            verified(piece)
            kept.append(int(viewer.have.sum()))

        viewer._verified = look
    world.run()

    assert max(kept) <= most
    assert all(viewer.playing.stalls == 0 for viewer in world.viewers)


def test_peer_exchange_makes_more_neighbours():
    def neighbours(*, exchange: bool) -> int:
        seen = []

        def say(_):
            seen.append(sum(len(viewer.connected) for viewer in world.viewers))

        world = World(
            small(10, peer_exchange=exchange),
            settings=SimSettings(exchange_seconds=5.0),
            say=say,
        )
        world.run()
        return max(seen)

    assert neighbours(exchange=True) > neighbours(exchange=False)


def test_progress_goes_from_the_first_arrival_to_the_end():
    told = []
    SimEngine().run(small(3), told.append)

    assert [p.seconds for p in told] == sorted(p.seconds for p in told)
    assert told[-1].arrived == 3
    assert told[-1].watching == 0


@pytest.mark.parametrize(
    ("scenario", "word"),
    [
        (small(client=Client.UNICAST), "client"),
        (small(buffer_fraction=0.01), "buffer_fraction"),
        (small(links=(Link(loss=0.01),)), r"links\.loss"),
        (small(server_loss=0.01), "server_loss"),
        (small(congestion_control="reno"), "congestion_control"),
        (small(utp=True), "utp"),
    ],
)
def test_what_it_cannot_do_is_refused_with_the_field_named(scenario, word):
    with pytest.raises(ScenarioError, match=word):
        run(scenario)


scenarios = st.builds(
    small,
    st.integers(1, 7),
    upload=st.sampled_from([0.0, 0.3, 0.5, 1.0, 2.0]),
    picker=st.sampled_from(picker_names()),
    neighbours=st.sampled_from(neighbours_names()),
    behaviour=st.sampled_from(list(Behaviour)),
    choking=st.sampled_from(list(Choking)),
    arrivals=st.sampled_from(
        [Arrivals(spacing_seconds=1.0), Arrivals(kind=ArrivalKind.ALL_AT_ONCE)]
    ),
    upload_slots=st.integers(1, 4),
    buffer_fraction=st.sampled_from([None, 0.4]),
    seed_upload_bps=st.sampled_from([0.0, 1e6]),
    request_queue_seconds=st.sampled_from([0.3, 1.0, 3.0]),
    peer_exchange=st.booleans(),
    random_seed=st.integers(0, 1000),
)
links = st.sampled_from(
    [
        None,
        (Link(upload_bps=1e6, download_bps=3e6), Link(upload_bps=5e5, latency_seconds=0.05)),
        (Link(upload_bps=1e6, latency_seconds=0.02),),
    ]
)


@settings(max_examples=15, deadline=None)
@given(scenarios, links)
def test_bytes_are_neither_made_nor_lost_and_no_cap_is_exceeded(scenario, mixed):
    if mixed is not None:
        scenario = scenario.with_(links=mixed)
    world, end = world_of(scenario)
    rows = [viewer.row(end) for viewer in world.viewers]

    for viewer, row in zip(world.viewers, rows, strict=True):
        received = row.bytes_from_peers + row.bytes_from_seed + row.bytes_from_origin
        if scenario.buffer_fraction is None:
            assert received - row.bytes_regretted == scenario.film.film_bytes
            assert viewer.have.all()
        assert row.bytes_uploaded <= row.upload_rate * (row.departed_at - row.arrived_at) + 1
        assert row.played_bytes == scenario.film.film_bytes
    assert sum(row.bytes_uploaded for row in rows) + world.seed_bytes + len(rows) >= sum(
        row.bytes_from_peers + row.bytes_from_seed for row in rows
    )


@settings(max_examples=15, deadline=None)
@given(scenarios)
def test_no_swarm_passes_the_bound(scenario):
    if scenario.buffer_fraction is not None:
        scenario = scenario.with_(buffer_fraction=None)

    result = run(scenario)

    assert result.offload <= result.bound + 0.02  # the bound cuts the film into 50 pieces


@pytest.mark.parametrize(("upload", "least", "most"), [(1.0, 0.8, 0.93), (0.5, 0.35, 0.5)])
def test_the_quick_scale_is_where_real_viewers_are(upload, least, most):
    result = run(scaled("quick", upload=upload))

    assert least <= result.offload <= most
    assert result.stalls == 0


def test_a_decision_is_made_where_the_server_is_asked_and_not_a_moment_before():
    """What it had still to send has come by then: its timer goes off too early."""
    film = Film(bit_rate_bps=RATE_BPS, duration_seconds=120.0, piece_bytes=64 * 1024)
    scenario = small(3, upload=0.5, film=film, arrivals=Arrivals(spacing_seconds=20.0))
    world = World(scenario, settings=SimSettings.fitting(300, 3273))
    world.run()

    _, follower, _ = world.viewers
    asked = follower.from_origin / film.piece_bytes
    assert 0.3 * film.geometry.pieces < asked
    assert follower.decisions < 1.4 * asked


def test_who_jumps_plays_what_it_showed_and_nothing_halts():
    world, end = world_of(small(10, upload=2.0, seeking_share=0.5))
    film_bytes, duration = world.cut.geometry.film_bytes, world.cut.timemap.duration
    for viewer in world.viewers:
        row, seek = viewer.row(end), viewer.who.seek
        assert row.stalls == 0
        assert viewer.playing.ended
        if seek is None:
            assert row.played_bytes == film_bytes
            continue
        after, to = seek
        missed = max(0.0, to - after)
        shown = (1 - missed / duration) * film_bytes
        assert row.played_bytes == pytest.approx(shown, abs=2 * 64 * 1024)
        assert viewer.playing.sought
        assert len(viewer.playing.seek_seconds) == 1
    assert 0 < run(small(10, upload=2.0, seeking_share=0.5)).offload <= 1
