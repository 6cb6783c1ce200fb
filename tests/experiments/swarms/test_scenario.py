"""Scenarios: what they say, what they refuse, and that text and data are the same thing."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from experiments.bound import Behaviour
from experiments.errors import ScenarioError
from experiments.swarms.presets import SCALES, scaled
from experiments.swarms.scenario import (
    ArrivalKind,
    Arrivals,
    Choking,
    Client,
    Film,
    Link,
    Scenario,
)
from experiments.swarms.text import describe, from_plain, read_scenario


def test_the_sources_scenario_is_the_default_but_for_the_films_size():
    source = SCALES["source"]
    assert source.viewers == 300
    assert source.film.film_bytes == 858_000_000
    assert source.crowd()[-1].arrives_seconds == pytest.approx(299 * 36)


@pytest.mark.parametrize("scale", SCALES)
def test_a_scale_at_half_the_upload(scale):
    scenario = scaled(scale, upload=0.5, picker="beta")
    assert scenario.links[0].upload_rate == scenario.film.rate / 2
    assert scenario.picker_options == {}


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("viewers = 0", "viewers"),
        ("viewers = 1.5", "viewers"),
        ("viewers = true", "viewers"),
        ('name = "../x"', "name"),
        ('picker = "newest"', "picker"),
        ('picker = "hybrid"\npicker_options = {in_order_seconds = -1}', "picker"),
        ("picker_options = {nonsense = 1}", "picker"),
        ('horizon = "none"', "horizon"),
        ('neighbours = "nobody"', "neighbours"),
        ('behaviour = "sleeping"', "behaviour"),
        ('choking = "all"', "choking"),
        ('client = "other"', "client"),
        ("buffer_fraction = 0", "buffer_fraction"),
        ("buffer_fraction = 1.1", "buffer_fraction"),
        ("seed_upload_bps = -1", "seed_upload_bps"),
        ("server_loss = 1.1", "server_loss"),
        ("[[links]]\nloss = -0.1", "links.loss"),
        ('utp = "only"', "utp"),
        ("origin_rate_bps = 0", "origin_rate_bps"),
        ("random_seed = -1", "random_seed"),
        ("links = []", "links"),
        ("links = 3", "links"),
        ("[[links]]\nupload_bps = -1", "links.upload_bps"),
        ("[[links]]\nupload_bps = nan", "links.upload_bps"),
        ("[[links]]\nshare = 0", "links.share"),
        ("[film]\nbit_rate_bps = -2e6", "film.bit_rate_bps"),
        ("[film]\nbit_rate_bps = inf", "film.bit_rate_bps"),
        ("[film]\nduration_seconds = 1e12", "film.duration_seconds"),
        ("[film]\npiece_bytes = 1000", "film.piece_bytes"),
        ('[film]\npiece_bytes = "big"', "film.piece_bytes"),
        ("[arrivals]\nspacing_seconds = -1", "arrivals.spacing_seconds"),
        ('[arrivals]\nkind = "late"', "arrivals.kind"),
        ('[arrivals]\nkind = "trace"', "arrivals.times_seconds"),
        ("[arrivals]\ntimes_seconds = [1]", "arrivals.times_seconds"),
        ("film = 3", "film"),
        ("viewer = 3", "viewer"),
        ("viewers = ", "TOML"),
    ],
)
def test_nonsense_is_refused_with_the_field_named(tmp_path, text, word):
    path = tmp_path / "nonsense.toml"
    path.write_text(text)
    with pytest.raises(ScenarioError, match=word):
        read_scenario(path)


def test_a_trace_of_another_length_is_refused():
    trace = Arrivals(kind=ArrivalKind.TRACE, times_seconds=(0.0, 1.0))
    with pytest.raises(ScenarioError, match="times_seconds"):
        Scenario(viewers=3, arrivals=trace).crowd()


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ScenarioError, match=r"none\.toml"):
        read_scenario(tmp_path / "none.toml")


def test_a_file_names_its_scenario(tmp_path):
    path = tmp_path / "my swarm.toml"
    path.write_text("viewers = 5\n[arrivals]\nspacing_seconds = 2")
    scenario = read_scenario(path)
    assert scenario.name == "my-swarm"
    assert [viewer.arrives_seconds for viewer in scenario.crowd()] == [0, 2, 4, 6, 8]


def test_classes_are_dealt_out_by_their_shares():
    links = (Link(upload_bps=1e6, share=1), Link(upload_bps=4e6, share=3))
    crowd = Scenario(viewers=8, links=links).crowd()
    assert [viewer.link.upload_bps for viewer in crowd].count(1e6) == 2
    assert {viewer.link.upload_bps for viewer in crowd[:4]} == {1e6, 4e6}


def test_a_share_of_the_viewers_leaves_sooner():
    scenario = Scenario(viewers=50, leaving_share=0.2)
    moments = {viewer.number: viewer.leaves_seconds for viewer in scenario.crowd()}
    leaving = {number: moment for number, moment in moments.items() if moment is not None}
    assert len(leaving) == 10
    assert all(0 <= moment <= scenario.film.duration_seconds for moment in leaving.values())
    assert leaving != {
        viewer.number: viewer.leaves_seconds
        for viewer in scenario.with_(random_seed=2).crowd()
        if viewer.leaves_seconds is not None
    }
    assert scenario.with_(leaving_share=0.0).crowd() == Scenario(viewers=50).crowd()


def test_a_share_of_the_viewers_jumps():
    scenario = Scenario(viewers=50, seeking_share=0.2, leaving_share=0.2)
    seeks = [viewer.seek for viewer in scenario.crowd() if viewer.seek is not None]
    assert len(seeks) == 10
    assert all(0 <= moment <= scenario.film.duration_seconds for seek in seeks for moment in seek)
    calm = scenario.with_(seeking_share=0.0).crowd()
    assert [viewer.leaves_seconds for viewer in calm] == [
        viewer.leaves_seconds for viewer in scenario.crowd()
    ], "who leaves is not for the jumps to say"


def test_only_our_own_client_can_be_told_to_jump():
    with pytest.raises(ScenarioError, match="seeking_share"):
        Scenario(seeking_share=0.2, client=Client.UNICAST)


def test_chance_is_the_seeds():
    poisson = Scenario(arrivals=Arrivals(kind=ArrivalKind.POISSON))
    assert poisson.crowd() == poisson.crowd()
    assert poisson.crowd() != poisson.with_(random_seed=2).crowd()
    gaps = np.diff([viewer.arrives_seconds for viewer in poisson.crowd()])
    assert 25 < gaps.mean() < 50


scenarios = st.builds(
    Scenario,
    viewers=st.integers(1, 500),
    film=st.builds(
        Film,
        bit_rate_bps=st.floats(1e5, 1e7),
        duration_seconds=st.floats(10, 1e4),
        piece_bytes=st.sampled_from([16384, 262144]),
        file=st.sampled_from([None, Path("film.mp4")]),
    ),
    arrivals=st.builds(
        Arrivals,
        kind=st.sampled_from([ArrivalKind.UNIFORM, ArrivalKind.POISSON, ArrivalKind.ALL_AT_ONCE]),
        spacing_seconds=st.floats(0, 1e3),
    ),
    behaviour=st.sampled_from(Behaviour),
    links=st.lists(
        st.builds(Link, upload_bps=st.floats(0, 1e9), download_bps=st.none() | st.floats(1, 1e9)),
        min_size=1,
        max_size=3,
    ).map(tuple),
    client=st.sampled_from(Client),
    choking=st.sampled_from(Choking),
    buffer_fraction=st.none() | st.floats(0.01, 1),
    run_seconds=st.none() | st.floats(1, 1e5),
    random_seed=st.integers(0, 2**31),
)


@given(scenarios)
def test_plain_data_is_the_scenario_again(scenario):
    plain = json.loads(json.dumps(describe(scenario)))
    assert from_plain(plain) == scenario
