"""What every room's tests may use: a real film, made once per run."""

from pathlib import Path

import pytest

from experiments.film import FilmSpec, make_film

SMALL_FILM = FilmSpec(duration_seconds=6.0, bit_rate=125_000.0, width=320, height=180)


@pytest.fixture(scope="session")
def small_film(tmp_path_factory) -> Path:
    """A real MP4 (H.264 + AAC, index in front): 6 s, 1 Mb/s, 320x180, 150 pictures.

    Shared by the whole run: tests read it and never write to it.
    """
    path = make_film(tmp_path_factory.mktemp("films") / "small.mp4", SMALL_FILM)
    path.chmod(0o444)
    return path
