"""A poster is a real frame of the film, and is made of what is here alone."""

import io

import av
import numpy as np
import pytest

from toast.media.errors import NotHereError, PictureError
from toast.media.poster import PosterSettings, take_poster

SECONDS = 20


def make(path, brightness, *, size=(320, 180), options=None):
    """A film of 20 s, one key frame each second; `brightness(second)` is a grey, or a seed."""
    rng = np.random.default_rng(3)
    fields = rng.integers(40, 220, (size[1] // 20, size[0] // 20, 3), dtype=np.uint8)
    noise = fields.repeat(20, axis=0).repeat(20, axis=1)  # large enough to be seen from afar
    noise = noise + rng.integers(0, 16, noise.shape, dtype=np.uint8)  # and with something to code
    with av.open(str(path), "w", options=options or {}) as film:
        track = film.add_stream("libx264", rate=5)
        track.width, track.height, track.pix_fmt = *size, "yuv420p"
        track.options = {"preset": "ultrafast", "g": "5"}
        for number in range(5 * SECONDS):
            grey = brightness(number // 5)
            picture = noise if grey is None else np.full_like(noise, grey)
            film.mux(track.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")))
        film.mux(track.encode(None))
    return path.read_bytes()


@pytest.fixture(scope="module")
def bright(tmp_path_factory):
    """Black for 3 s, then something to see; the index in front."""
    path = tmp_path_factory.mktemp("bright") / "film.mp4"
    return make(path, lambda second: 0 if second < 3 else None, options={"movflags": "+faststart"})


@pytest.fixture(scope="module")
def black(tmp_path_factory):
    return make(tmp_path_factory.mktemp("black") / "film.mp4", lambda second: 0)


class PartOfFilm(io.BytesIO):
    """A film of which only some bytes are here; counts what is read."""

    def __init__(self, data, here=lambda offset: True):
        super().__init__(data)
        self._here = here
        self.taken = 0

    def read(self, size=-1):
        at = self.tell()
        data = super().read(size)
        here = next((n for n in range(len(data)) if not self._here(at + n)), len(data))
        if data and not here:
            raise NotHereError("not here")
        self.seek(at + here)
        self.taken += here
        return data[:here]


def decoded(jpeg):
    assert jpeg[:2] == b"\xff\xd8"
    with av.open(io.BytesIO(jpeg)) as picture:
        return next(picture.decode(video=0)).to_ndarray(format="gray")


def test_black_pictures_are_passed_over(bright):
    """A tenth of the film is at second 2, which is black."""
    film = PartOfFilm(bright)
    picture = decoded(take_poster(film))
    assert picture.std() > 20
    assert picture.shape == (180, 320)
    assert not film.closed


def test_a_film_that_is_black_throughout_has_a_black_poster(black):
    assert decoded(take_poster(io.BytesIO(black))).mean() < 20


def test_a_large_picture_is_made_smaller_and_a_small_one_left(bright):
    assert decoded(take_poster(io.BytesIO(bright), PosterSettings(width=100))).shape == (56, 100)
    assert decoded(take_poster(io.BytesIO(bright), PosterSettings(width=999))).shape == (180, 320)


def test_it_is_compressed_until_it_fits(bright):
    large = take_poster(io.BytesIO(bright))
    small = take_poster(io.BytesIO(bright), PosterSettings(most_bytes=len(large) // 2))
    assert len(small) <= len(large) // 2
    with pytest.raises(PictureError, match="small enough"):
        take_poster(io.BytesIO(bright), PosterSettings(most_bytes=100))


def test_nothing_here_is_said_so():
    with pytest.raises(NotHereError):
        take_poster(PartOfFilm(bytes(100_000), lambda offset: False))


@pytest.mark.slow
def test_another_place_is_taken_where_the_first_is_not_here(bright):
    """The start and the last two thirds are here: a picture is found there."""
    size = len(bright)
    film = PartOfFilm(bright, lambda at: at < 20_000 or at > size * 0.1)
    assert decoded(take_poster(film)).std() > 20


def test_black_here_and_the_rest_missing_is_worth_waiting_for(bright):
    film = PartOfFilm(bright, lambda at: at < len(bright) * 0.02)
    with pytest.raises(NotHereError):
        take_poster(film)


def test_reading_and_time_are_bounded(bright):
    film = PartOfFilm(bright)
    assert decoded(take_poster(film, PosterSettings(most_read_bytes=1000))).mean() < 20
    assert film.taken <= 1000 + 64 * 1024
    with pytest.raises(PictureError):
        take_poster(PartOfFilm(bright), PosterSettings(limit_seconds=-1.0))


def test_pictures_that_are_too_large_are_not_decoded(bright):
    with pytest.raises(PictureError, match="too large"):
        take_poster(io.BytesIO(bright), PosterSettings(most_pixels=320 * 180 - 1))


@pytest.mark.parametrize("data", [b"", b"no film at all" * 100, b"\x00\x00\x00\x18ftypmp42" * 9])
def test_what_is_no_film_has_no_picture(data):
    with pytest.raises(PictureError):
        take_poster(io.BytesIO(data))


def test_a_list_of_addresses_is_not_followed(tmp_path):
    """A stranger's "film" must not make us open other files."""
    text = b"#EXTM3U\n#EXTINF:5,\nfile:///etc/hostname\n#EXT-X-ENDLIST\n"
    with pytest.raises(PictureError):
        take_poster(io.BytesIO(text))
