"""What the real engine refuses before anything starts."""

import re

import pytest

from experiments.errors import ScenarioError
from experiments.real import engine
from experiments.real.engine import RealEngine
from experiments.swarms.scenario import Film, Scenario


def test_its_name_is_real():
    assert RealEngine().name == "real"


@pytest.mark.parametrize(("late", "noted"), [(0.0, False), (0.05, False), (0.31, True)])
def test_a_busy_machine_is_noted(late, noted):
    note = engine._note_on_haste(late)
    assert (note is not None) == noted
    assert not noted or "0.31 s late" in note


@pytest.mark.parametrize(
    ("stalled_at", "said"),
    [
        ([], None),
        ([9.9, 12.0], None),
        ([5.0, 10.2, 11.3], "2 of 3 stalls began within 1 s .*for 0.40 s at most"),
    ],
)
def test_stalls_after_a_pause_of_the_machine_are_noted(stalled_at, said):
    note = engine._note_on_pauses([(10.0, 0.4), (20.0, 0.2)], stalled_at)
    assert note is None if said is None else re.search(said, note)


def test_what_it_cannot_do_is_refused_and_nothing_is_left(tmp_path):
    scenario = Scenario(request_queue_seconds=1.5)
    with pytest.raises(ScenarioError, match="request_queue_seconds"):
        RealEngine(tmp_path).run(scenario)
    assert list(tmp_path.iterdir()) == []


def test_a_film_longer_than_the_disk_is_refused_and_nothing_is_left(tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "free_bytes", lambda _: 10 << 20)
    scenario = Scenario(viewers=2, film=Film(duration_seconds=60.0))
    with pytest.raises(ScenarioError, match=r"^film\.duration_seconds: .* room for 10"):
        RealEngine(tmp_path).run(scenario)
    assert list(tmp_path.iterdir()) == []
