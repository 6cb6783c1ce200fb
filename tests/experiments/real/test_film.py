"""The film of a scenario, made and in a store."""

import hashlib

import pytest

from experiments.errors import LabError
from experiments.real.film import fitted, make_lab_film, store_film
from experiments.swarms.scenario import Film, Scenario
from toast.media import MediaError
from vodserver.store import list_titles

SMALL = Scenario(film=Film(bit_rate_bps=800_000, duration_seconds=3.0, piece_bytes=32 * 1024))


def test_a_film_of_noise_has_its_size_to_the_byte_and_its_times(tmp_path):
    film = make_lab_film(SMALL, tmp_path)

    data = film.path.read_bytes()
    assert len(data) == SMALL.film.film_bytes == 300_000
    assert film.sha256 == hashlib.sha256(data).hexdigest()
    assert film.media.timemap.film_bytes == 300_000
    assert film.media.timemap.duration == 3.0


def test_the_same_scenario_has_the_same_film_and_another_seed_another(tmp_path):
    first = make_lab_film(SMALL, tmp_path)
    assert make_lab_film(SMALL, tmp_path).sha256 == first.sha256
    assert make_lab_film(SMALL.with_(random_seed=2), tmp_path).sha256 != first.sha256


def test_a_folder_that_is_not_there_is_one_line(tmp_path):
    with pytest.raises(LabError, match="the film cannot be had in"):
        make_lab_film(SMALL, tmp_path / "gone")


def test_in_the_store_it_is_cut_as_the_scenario_says(tmp_path):
    film = make_lab_film(SMALL, tmp_path)
    (title,) = list_titles(store_film(film, tmp_path, SMALL.film.piece_bytes))

    assert title.piece_bytes == 32 * 1024
    assert title.film_bytes == 300_000
    assert title.duration == 3.0
    assert title.sha256 == film.sha256


def test_a_store_that_is_there_already_is_one_line(tmp_path):
    film = make_lab_film(SMALL, tmp_path)
    store_film(film, tmp_path, SMALL.film.piece_bytes)
    with pytest.raises(LabError, match="the film does not go into the store"):
        store_film(film, tmp_path, SMALL.film.piece_bytes)


def test_a_scenario_without_a_film_of_its_own_stays_as_it_is():
    assert fitted(SMALL) is SMALL


def test_a_film_of_its_own_gives_size_and_length(small_film, tmp_path):
    scenario = fitted(SMALL.with_(film=Film(file=small_film, piece_bytes=16 * 1024)))

    assert scenario.film.film_bytes == small_film.stat().st_size
    assert scenario.film.duration_seconds == pytest.approx(6.0, abs=0.1)
    assert scenario.film.piece_bytes == 16 * 1024
    film = make_lab_film(scenario, tmp_path)
    assert film.path.parent == tmp_path  # a copy: nobody may touch the original
    assert film.sha256 == hashlib.sha256(small_film.read_bytes()).hexdigest()


def test_what_is_no_film_is_refused(tmp_path):
    (tmp_path / "notes.mp4").write_text("not a film")
    with pytest.raises(MediaError, match=r"notes\.mp4"):
        fitted(SMALL.with_(film=Film(file=tmp_path / "notes.mp4")))
