import pytest

from toast.common.errors import UsageError
from tracker.settings import TrackerSettings


def test_defaults_suit_young_swarms():
    settings = TrackerSettings()
    assert (settings.host, settings.port) == ("127.0.0.1", 6969)
    assert (settings.interval_seconds, settings.min_interval_seconds) == (30.0, 5.0)
    assert settings.expiry_seconds == 75.0


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"port": 65536}, "port 65536"),
        ({"port": -1}, "port -1"),
        ({"interval_seconds": 0}, "interval_seconds"),
        ({"interval_seconds": float("nan")}, "interval_seconds"),
        ({"interval_seconds": float("inf")}, "interval_seconds"),
        ({"interval_seconds": 4.0}, "min_interval_seconds"),
        ({"min_interval_seconds": -1.0}, "min_interval_seconds"),
        ({"idle_timeout_seconds": 0.0}, "idle_timeout_seconds"),
        ({"expiry_intervals": 0.5}, "expiry_intervals"),
        ({"default_numwant": 201}, "default_numwant"),
        ({"max_peers": 0}, "max_peers"),
        ({"max_torrents": 0}, "max_torrents"),
        ({"max_connections_per_address": 0}, "max_connections_per_address"),
    ],
)
def test_a_useless_value_is_refused_and_named(wrong, named):
    with pytest.raises(UsageError, match=named):
        TrackerSettings(**wrong)
