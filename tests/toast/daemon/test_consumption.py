"""What was sent and asked for: by day of local time, by the last 24 hours, over restarts."""

from zoneinfo import ZoneInfo

import pytest

from toast.daemon.consumption import Consumption
from toast.daemon.settings import RuleSettings

AMSTERDAM = ZoneInfo("Europe/Amsterdam")
NOON = 1_780_999_200.0  # 2026-06-09 12:00 in Amsterdam


class Clocks:
    """A wall clock and a monotonic one that begins anew with each life."""

    def __init__(self):
        self.wall_now, self.now = NOON, 100.0

    def pass_hours(self, hours):
        self.wall_now += 3600 * hours
        self.now += 3600 * hours

    def live(self, kept=None):
        return Consumption(kept, zone=AMSTERDAM, wall=lambda: self.wall_now, clock=lambda: self.now)


def test_uploads_begin_anew_at_midnight_of_local_time():
    clocks = Clocks()
    used = clocks.live()
    used.sent(5)
    clocks.pass_hours(11.9)
    used.sent(6)
    assert used.uploaded_bytes == 11
    clocks.pass_hours(0.2)
    used.sent(7)
    assert used.uploaded_bytes == 7


def test_a_restart_forgets_nothing():
    clocks = Clocks()
    used = clocks.live()
    used.sent(5)
    used.budget.spend(clocks.now, 1000)
    kept = used.export()
    clocks.wall_now += 3600
    clocks.now = 3.0  # another life
    again = clocks.live(kept)
    again.use(RuleSettings(origin_day_bytes=1500))
    assert (again.uploaded_bytes, again.origin_bytes) == (5, 1000)
    assert again.budget.allowance(clocks.now).bytes_left == 500
    clocks.pass_hours(24)
    assert again.budget.allowance(clocks.now).bytes_left == 1500


@pytest.mark.parametrize(
    "kept",
    [
        {},
        [],
        "x",
        {"day": "2026-06-09", "uploaded_bytes": "many"},
        {"day": "2026-06-09", "uploaded_bytes": -5, "budget": {"tokens": "x"}, "at": 0.0},
        {"at": "then", "day": "", "uploaded_bytes": 0, "budget": {}},
    ],
)
def test_what_is_damaged_counts_as_nothing(kept):
    used = Clocks().live(kept)
    assert (used.uploaded_bytes, used.origin_bytes) == (0, 0)
