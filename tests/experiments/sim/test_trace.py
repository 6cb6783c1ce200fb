"""What a swarm asks of its server."""

from experiments.sim.cut import Cut
from experiments.sim.engine import SimEngine
from experiments.sim.origin import Asked, asked_by
from experiments.sim.trace import trace_origin
from experiments.swarms.scenario import Arrivals, Film, Link, Scenario
from toast.common.geometry import Geometry
from toast.common.timemap import TimeMap
from toast.policy.handover import Order, Reason

SMALL = Scenario(
    name="small",
    viewers=3,
    film=Film(bit_rate_bps=1e6, duration_seconds=10.0, piece_bytes=64 * 1024),
    arrivals=Arrivals(spacing_seconds=2.0),
    links=(Link(upload_bps=0.5e6),),
    seed_upload_bps=0.0,
    picker="in-order",
)


def test_an_order_is_asked_for_range_by_range():
    cut = Cut(TimeMap.constant(100_000, 10.0), Geometry(100_000, 65_536))
    order = Order(1, ((0, 1), (2, 3)), next(iter(Reason)), 1.0)
    assert list(asked_by(order, cut, 2.5)) == [
        Asked(2.5, 65_536, 16_384),
        Asked(2.5, 98_304, 100_000 - 98_304),
    ]


def test_all_that_the_server_sends_was_asked_for():
    trace = trace_origin(SMALL)
    assert [asked.seconds for asked in trace] == sorted(asked.seconds for asked in trace)
    assert sum(asked.size for asked in trace) >= SimEngine().run(SMALL).operator_http_bytes > 0
    assert all(asked.offset + asked.size <= SMALL.film.film_bytes for asked in trace)
