import shutil

import av
import pytest

from experiments.errors import FilmError
from experiments.start.films import KINDS, LongFilm, long_film, steps_to

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="films are made with ffmpeg"),
]


@pytest.fixture(scope="module")
def films(tmp_path_factory):
    folder = tmp_path_factory.mktemp("films")
    return {kind: long_film(folder, kind, minutes=1) for kind in KINDS}


def test_a_minute_is_repeated(films):
    for film in films.values():
        assert film.duration == pytest.approx(60.0, abs=1.0)
    assert films["front"].index[0] < 4096
    assert films["end"].index[1] == films["end"].path.stat().st_size


@pytest.mark.parametrize(
    ("kind", "seconds", "names"),
    [
        ("front", 0.0, ["index", "frame"]),
        ("front", 30.0, ["index", "frame"]),
        ("end", 0.0, ["front", "index", "frame"]),
        ("end", 30.0, ["front", "index", "frame"]),
        ("mkv", 0.0, ["front", "frame"]),
        ("mkv", 30.0, ["front", "index", "frame"]),
    ],
)
def test_a_player_needs_front_index_and_picture(films, kind, seconds, names):
    steps = steps_to(films[kind], seconds)
    assert [step.name for step in steps] == names
    assert all(0 <= step.start < step.end for step in steps)
    assert steps[-1].end <= films[kind].path.stat().st_size


@pytest.mark.parametrize("kind", KINDS)
def test_the_bytes_named_are_all_that_a_decoder_needs(films, kind, tmp_path):
    """A copy that has nothing but these bytes, and zeros elsewhere, shows its first picture."""
    film = films[kind]
    data = film.path.read_bytes()
    copy = bytearray(len(data))
    for step in steps_to(film, 0.0):
        copy[step.start : step.end] = data[step.start : step.end]
    (tmp_path / film.path.name).write_bytes(copy)
    pictures = []
    for path in (film.path, tmp_path / film.path.name):
        with av.open(str(path)) as container:
            packet = next(container.demux(container.streams.video[0]))
            frames = packet.decode() or container.streams.video[0].codec_context.decode(None)
            pictures.append(frames[0].to_ndarray())
    assert (pictures[0] == pictures[1]).all()


def test_a_file_that_is_no_film_is_refused(tmp_path):
    (tmp_path / "no.mp4").write_bytes(b"no film")
    with pytest.raises(FilmError, match=r"no\.mp4 cannot be read"):
        steps_to(LongFilm(tmp_path / "no.mp4", "front", 1.0, (0, 1)), 0.0)
