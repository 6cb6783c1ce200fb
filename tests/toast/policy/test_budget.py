import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toast.policy import BudgetSettings, OriginBudget
from toast.policy.errors import PolicyError

DAY = 86_400.0


def budget(now=0.0, *, state=None, away_seconds=0.0, **settings):
    return OriginBudget(BudgetSettings(**settings), now, state=state, away_seconds=away_seconds)


def test_without_a_bound_everything_is_allowed():
    free = budget()
    free.spend(0.0, 10**15)

    allowance = free.allowance(1.0)
    assert (allowance.bytes_left, allowance.ease, allowance.wait_seconds) == (math.inf, 1.0, 0.0)
    assert free.spent_bytes == 10**15


class TestRate:
    def test_a_burst_is_allowed_and_then_the_rate(self):
        tight = budget(rate=100.0, burst_seconds=10.0)
        tight.spend(0.0, 1000)

        spent = tight.allowance(0.0)
        assert spent.bytes_left == 0.0
        assert 0 < spent.wait_seconds < 0.1
        assert tight.allowance(1.0).bytes_left == math.inf

    def test_what_was_overdrawn_is_paid_back_first(self):
        tight = budget(rate=100.0, burst_seconds=10.0)
        tight.spend(0.0, 1500)

        assert tight.allowance(4.0).bytes_left == 0.0
        assert tight.allowance(4.0).wait_seconds == pytest.approx(1.0, abs=0.02)
        assert tight.allowance(5.1).bytes_left == math.inf

    def test_below_the_short_share_less_and_less_is_fetched_early(self):
        tight = budget(rate=100.0, burst_seconds=10.0, short_share=0.25)
        eases = []
        for _ in range(5):
            eases.append(tight.allowance(0.0).ease)
            tight.spend(0.0, 200)

        assert eases == pytest.approx([1.0, 1.0, 1.0, 1.0, 0.8])
        assert tight.allowance(0.0).ease == 0.0

    @given(st.lists(st.tuples(st.floats(0, 60), st.integers(1, 5000)), max_size=30))
    def test_on_average_the_rate_holds(self, wishes):
        """What was spent never exceeds burst, rate x time, and one order."""
        tight = budget(rate=100.0, burst_seconds=10.0)
        now, largest = 0.0, 0
        for pause, size in wishes:
            now += pause
            if tight.allowance(now).bytes_left > 0:
                tight.spend(now, size)
                largest = max(largest, size)

        assert tight.spent_bytes <= 1000 + 100 * now + largest + 1e-6


class TestDay:
    def test_a_day_s_bytes_are_never_exceeded_and_come_back_after_a_day(self):
        day = budget(day_bytes=1000)
        day.spend(100.0, 700)

        assert day.allowance(100.0).bytes_left == 300
        day.spend(200.0, 300)
        assert day.allowance(200.0).bytes_left == 0
        assert day.allowance(200.0).wait_seconds == pytest.approx(DAY, rel=0.02)
        assert day.allowance(DAY + 50.0).bytes_left == 0
        assert day.allowance(DAY + 1000.0).bytes_left == 1000
        assert day.day_bytes == 0

    def test_it_gets_short_in_its_last_quarter(self):
        day = budget(day_bytes=1000)
        day.spend(0.0, 750)
        assert day.allowance(0.0).ease == 1.0
        day.spend(0.0, 125)
        assert day.allowance(0.0).ease == 0.5

    def test_no_bytes_at_all(self):
        nothing = budget(day_bytes=0).allowance(0.0)

        assert (nothing.bytes_left, nothing.ease) == (0, 0.0)
        assert nothing.wait_seconds > 0

    def test_many_small_orders_take_little_memory(self):
        day = budget(day_bytes=10**9)
        for second in range(5000):
            day.spend(float(second), 1)

        assert day.day_bytes == 5000
        assert len(day.export(5000.0)["day"]) <= 7


class TestAnotherLife:
    def test_what_was_spent_counts_after_a_restart(self):
        before = budget(rate=100.0, burst_seconds=10.0, day_bytes=5000)
        before.spend(10.0, 1200)
        state = json.loads(json.dumps(before.export(20.0)))

        after = budget(
            7.0, state=state, away_seconds=1.0, rate=100.0, burst_seconds=10.0, day_bytes=5000
        )

        assert after.day_bytes == 1200
        assert after.spent_bytes == 0
        assert after.export(7.0)["tokens"] == pytest.approx(-200 + 100 * 10 + 100)
        assert after.allowance(7.0).bytes_left == 3800

    def test_a_day_away_makes_it_whole_again(self):
        before = budget(day_bytes=5000)
        before.spend(10.0, 1200)

        after = budget(0.0, state=before.export(10.0), away_seconds=DAY + 1, day_bytes=5000)
        assert after.allowance(0.0).bytes_left == 5000

    def test_a_clock_that_was_put_back_gives_nothing_away(self):
        before = budget(day_bytes=5000)
        before.spend(10.0, 1200)

        after = budget(0.0, state=before.export(10.0), away_seconds=-500.0, day_bytes=5000)
        assert after.allowance(0.0).bytes_left == 3800

    def test_another_rate_than_before_takes_effect(self):
        state = budget().export(0.0)

        assert budget(state=state, rate=100.0, burst_seconds=10.0).export(0.0)["tokens"] == 1000.0

    @pytest.mark.parametrize(
        "state",
        [
            {},
            {"tokens": 1.0},
            {"tokens": "much", "day": []},
            {"tokens": math.nan, "day": []},
            {"tokens": None, "day": 3},
            {"tokens": None, "day": [[1.0]]},
            {"tokens": None, "day": [[-1.0, 5]]},
            {"tokens": None, "day": [[1.0, -5]]},
            {"tokens": None, "day": [[math.inf, 5]]},
            {"tokens": None, "day": [[math.nan, 5]]},
        ],
    )
    def test_a_state_that_is_none_is_refused(self, state):
        with pytest.raises(PolicyError, match="budget"):
            budget(state=state, rate=5.0)


@pytest.mark.parametrize(
    "settings",
    [
        {"rate": 0.0},
        {"rate": math.nan},
        {"rate": math.inf},
        {"day_bytes": -1},
        {"burst_seconds": 0.0},
        {"short_share": 0.0},
        {"short_share": 1.5},
    ],
)
def test_settings_that_cannot_be(settings):
    with pytest.raises(PolicyError):
        BudgetSettings(**settings)
