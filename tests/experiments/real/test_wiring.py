"""What of a scenario becomes which setting of a real viewer, and what is refused."""

from dataclasses import replace
from pathlib import Path

import pytest

from experiments.bound import Behaviour
from experiments.errors import ScenarioError
from experiments.real.wiring import (
    check,
    most_present,
    note_on,
    session_settings,
    storage_bytes,
    viewer_settings,
)
from experiments.swarms.presets import SCALES
from experiments.swarms.scenario import Arrivals, Choking, Client, Film, Link, Scenario
from toast.swarm import Utp

PLAIN = Scenario(
    viewers=5, film=Film(duration_seconds=10.0), arrivals=Arrivals(spacing_seconds=4.0)
)


def test_the_presets_can_be_carried_out():
    for scenario in SCALES.values():
        check(scenario)


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"request_queue_seconds": 1.5}, "request_queue_seconds"),
        ({"links": (Link(upload_bps=0),)}, "links.upload_bps"),
        ({"film": Film(piece_bytes=128 << 20)}, "film.piece_bytes"),
    ],
)
def test_what_loopback_cannot_do_is_refused_by_the_name_of_the_field(changes, field):
    with pytest.raises(ScenarioError, match=f"^{field} "):
        check(PLAIN.with_(**changes))


def test_links_and_the_rest_become_settings_of_the_session():
    link = Link(upload_bps=1e6, download_bps=8e6)
    scenario = PLAIN.with_(
        request_queue_seconds=2.0,
        upload_slots=3,
        connections=7,
        peer_exchange=True,
        utp=True,
        choking=Choking.SEED,
    )
    settings = session_settings(scenario, link, "127.9.0.1")

    assert settings.listen_host == "127.9.0.1"
    assert (settings.upload_rate, settings.download_rate) == (125e3, 1e6)
    assert settings.request_queue_seconds == 2
    assert (settings.upload_slots, settings.connections) == (3, 7)
    assert settings.peer_exchange
    assert settings.serves_takers
    assert settings.utp is Utp.ONLY


def test_stock_choking_without_peer_exchange_is_the_default():
    settings = session_settings(PLAIN, Link(), "127.9.0.1")
    assert not settings.serves_takers
    assert not settings.peer_exchange
    assert settings.utp is Utp.ACCEPT
    assert settings.download_rate is None


def test_policies_become_settings_of_the_viewer():
    scenario = PLAIN.with_(
        behaviour=Behaviour.SEEDING,
        picker="hybrid",
        picker_options={"in_order_seconds": 3.0},
        horizon="fixed",
        horizon_options={"seconds": 4.0},
        neighbours="random",
        neighbours_options={"k": 3},
        buffer_fraction=0.5,
    )
    settings = viewer_settings(scenario, Path("films"))

    assert settings.folder == Path("films")
    assert settings.behaviour.value == "seeding"
    assert (settings.picker, settings.picker_options) == ("hybrid", {"in_order_seconds": 3.0})
    assert (settings.horizon, settings.horizon_options) == ("fixed", {"seconds": 4.0})
    assert (settings.neighbours, settings.neighbours_options) == ("random", {"k": 3})
    assert settings.buffer_fraction == 0.5


def test_only_the_seed_choker_needs_a_note():
    assert note_on(PLAIN) is None
    assert "choking" in (note_on(PLAIN.with_(choking=Choking.SEED)) or "")


def test_those_who_seed_stay_and_the_others_leave_with_the_end_of_the_film():
    assert most_present(PLAIN) == 3  # a film of 10 s, somebody every 4 s
    seeding = PLAIN.with_(behaviour=Behaviour.SEEDING)
    assert most_present(seeding) == 3  # who has all of it shares it
    assert most_present(seeding.with_(client=Client.NAIVE)) == 5
    assert most_present(seeding.with_(buffer_fraction=0.5)) == 5
    at_once = replace(PLAIN.arrivals, spacing_seconds=0.0)
    assert most_present(PLAIN.with_(arrivals=at_once)) == 5


def test_the_disk_must_hold_the_films_of_all_who_are_there_and_the_operators():
    film = PLAIN.film.film_bytes
    assert storage_bytes(PLAIN) == 5 * film
    assert storage_bytes(PLAIN.with_(buffer_fraction=0.5)) == 2 * film + 3 * (film // 2)
