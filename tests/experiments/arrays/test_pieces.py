"""Piece requests as a load of disks."""

import pytest

from experiments.arrays import pieces
from experiments.arrays.hotspot_figures import placement
from experiments.arrays.piece_figures import PIECE_FIGURES
from experiments.arrays.pieces import PieceAudience, PieceWork, measure_pieces, of_swarm
from experiments.sim.origin import Asked
from experiments.swarms.presets import SCALES

QUICK = SCALES["quick"]
ARRAY = of_swarm(placement("rda"), QUICK)
EXTENT = ARRAY.unit_bytes


def audience(*trace, swarms=1, seed=1):
    film_bytes = QUICK.film.film_bytes
    return PieceAudience(ARRAY, seed, trace=trace, swarms=swarms, film_bytes=film_bytes)


def asked(seconds, extent, within=0):
    return Asked(seconds, extent * EXTENT + within, 16_384)


def test_films_are_cut_as_the_server_cuts_them():
    assert EXTENT % QUICK.film.piece_bytes == 0
    assert ARRAY.extent_seconds == pytest.approx(5.0, abs=0.3)
    assert ARRAY.unit_bytes == round(ARRAY.stream_rate * ARRAY.extent_seconds)


def test_a_request_reads_the_extent_that_it_lies_in():
    film = audience(asked(0.0, 0), asked(1.0, 2, within=100), asked(9.0, 2))
    streams = film.streams(3)
    assert sorted(stream.film for stream in streams) == [0, 2, 2]
    assert all(len(stream.extents) == 1 for stream in streams)
    assert len({tuple(s.extents) for s in streams if s.film == 2}) == 1


def test_every_swarm_has_a_film_and_a_time_of_its_own():
    crowd = audience(asked(0.0, 0), asked(9.0, 1), swarms=3).streams(6)
    assert len({stream.film for stream in crowd}) == 6
    assert len({stream.begins_seconds for stream in crowd}) == 6
    begins = [stream.begins_seconds for stream in crowd]
    assert begins == sorted(begins)
    assert max(begins) < 9.01


def test_requests_of_a_time_are_counted():
    crowd = audience(asked(0.0, 0), asked(9.0, 1), swarms=3)
    assert crowd.within(9.01) == 6
    assert crowd.within(0.0) == 0


def test_what_is_in_memory_is_answered_at_once(monkeypatch):
    trace = tuple(asked(float(n), n % 2) for n in range(20))
    monkeypatch.setattr(pieces, "_trace", lambda scale, upload: trace)
    told = {
        memory: measure_pieces(
            PieceWork(
                array=placement("rda").with_(cache_bytes=memory, hold_seconds=5.0),
                scale="quick",
                swarms=2,
                seconds=20.0,
            ),
            1,
        )
        for memory in (0, 1 << 30)
    }
    assert told[0]["reads"] == 40
    assert told[1 << 30]["reads"] == 4
    assert told[1 << 30]["response_p50_seconds"] == 0.0 < told[0]["response_p50_seconds"]
    assert told[0]["requests_per_second"] == 2.0


@pytest.mark.slow
def test_a_swarms_own_requests_can_be_measured():
    work = PieceWork(array=placement("rda, lazy"), scale="quick", swarms=1, seconds=5.0)
    told = measure_pieces(work, 1)
    assert told["streams"] > 10
    assert told["lost"] == 0


def test_every_bar_is_of_another_load():
    (figure,) = PIECE_FIGURES
    told = [str(cell.scenario.describe()) for cell in figure.cells("source")]
    assert len(set(told)) == len(told) == 20
