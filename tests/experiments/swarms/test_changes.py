"""Fields of a scenario changed by words."""

import pytest

from experiments.errors import ScenarioError
from experiments.swarms.changes import with_changes
from experiments.swarms.presets import SCALES
from experiments.swarms.scenario import Link, Scenario


@pytest.mark.parametrize(
    ("change", "path", "value"),
    [
        ("viewers=7", ("viewers",), 7),
        ("picker=beta", ("picker",), "beta"),
        ('picker="in-order"', ("picker",), "in-order"),
        (" film.duration_seconds = 60 ", ("film", "duration_seconds"), 60.0),
        ("arrivals.kind=poisson", ("arrivals", "kind"), "poisson"),
        ("peer_exchange=true", ("peer_exchange",), True),
        ("buffer_fraction=0.25", ("buffer_fraction",), 0.25),
        ("run_seconds=none", ("run_seconds",), None),
        ("horizon_options={}", ("horizon_options",), {}),
    ],
)
def test_a_field_is_changed(change, path, value):
    found = with_changes(SCALES["quick"], [change])
    for name in path:
        found = getattr(found, name)
    assert found == value


def test_links_are_changed_in_every_class():
    mixed = Scenario(links=(Link(share=1.0), Link(share=3.0)))
    found = with_changes(mixed, ["links.upload_bps=1e6"])
    assert [(link.upload_bps, link.share) for link in found.links] == [(1e6, 1.0), (1e6, 3.0)]


def test_another_policy_has_its_own_parameters():
    quick = SCALES["quick"]
    assert quick.picker_options
    assert with_changes(quick, ["picker=beta"]).picker_options == {}
    changes = ["neighbours=random", "neighbours_options.k=3"]
    assert with_changes(quick, changes).neighbours_options == {"k": 3}


def test_the_policy_that_is_there_keeps_its_parameters():
    quick = SCALES["quick"]
    for text in ("picker=hybrid", 'picker = "hybrid"'):
        assert with_changes(quick, [text]) == quick


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("viewers", "FIELD=VALUE"),
        ("viewer=3", "viewer is no field of a scenario: there are name, film"),
        ("film.lenght=3", "film.lenght is no field"),
        ("viewers=many", "viewers is 'many'"),
        ("picker=newest", "picker"),
        ("picker.x=1", "picker is no table"),
        ("links.upload_bps=-1", "links.upload_bps is -1"),
        ("viewers=[1", "viewers is '\\[1'"),
    ],
)
def test_what_is_wrong_is_named(change, words):
    with pytest.raises(ScenarioError, match=words):
        with_changes(SCALES["quick"], [change])
