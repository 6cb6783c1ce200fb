"""The largest number for which something holds."""

from hypothesis import given
from hypothesis import strategies as st

from experiments.arrays.disk import DiskModel
from experiments.arrays.scenario import ArrayScenario
from experiments.arrays.search import largest, sustained


@given(st.integers(0, 400), st.integers(1, 600))
def test_it_is_found_from_any_guess(limit, guess):
    asked = []

    def holds(number):
        asked.append(number)
        return number <= limit

    assert largest(holds, guess) == limit
    assert len(asked) <= 30
    assert all(number >= 1 for number in asked)


def test_two_mirrors_sustain_what_the_model_says():
    scenario = ArrayScenario(
        disks=(DiskModel(jitter_share=0.0),) * 2, allocation="raid1", hold_seconds=50.0
    )
    assert abs(sustained(scenario, seed=1) - scenario.model_streams) < 0.05 * 135
