"""The film maker makes what it says: films that decode, at the rate and length that were asked."""

import hashlib
from itertools import pairwise

import av
import pytest

from experiments.errors import FilmError
from experiments.film import FilmSpec, cached_film, make_film

SHORT = {"duration_seconds": 1.0, "width": 160, "height": 90}


def decode(path):
    with av.open(path) as film:
        pictures = sum(1 for _ in film.decode(video=0))
    with av.open(path) as film:
        samples = sum(frame.samples for frame in film.decode(audio=0))
    return pictures, samples


def box_order(path):
    data, names, at = path.read_bytes(), [], 0
    while at < len(data):
        names.append(data[at + 4 : at + 8].decode())
        at += int.from_bytes(data[at : at + 4])
    return names


def test_small_film_is_what_its_fixture_promises(small_film):
    with av.open(small_film) as film:
        video, audio = film.streams.video[0], film.streams.audio[0]
        assert (video.codec_context.name, audio.codec_context.name) == ("h264", "aac")
        assert (video.width, video.height, video.average_rate) == (320, 180, 25)
        assert film.duration == 6_000_000
    pictures, samples = decode(small_film)
    assert pictures == 150
    assert samples >= 6 * 48_000
    assert small_film.stat().st_size == pytest.approx(6 * 125_000, rel=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("bit_rate", [62_500.0, 250_000.0, 500_000.0])
def test_the_file_has_the_bit_rate_that_was_asked(tmp_path, bit_rate):
    """Within 5 % over the whole file: picture, sound and container."""
    spec = FilmSpec(duration_seconds=8.0, bit_rate=bit_rate, width=320, height=180)
    assert make_film(tmp_path / "film.mp4", spec).stat().st_size == pytest.approx(
        8.0 * bit_rate, rel=0.05
    )


def test_the_bit_rate_is_spent_on_pictures_not_on_stuffing(small_film):
    """At most 5 % of the picture's bytes are filler (NAL type 12)."""
    filler = total = 0
    with av.open(small_film) as film:
        for packet in film.demux(video=0):
            data, at = bytes(packet), 0
            while at + 4 < len(data):
                size = 4 + int.from_bytes(data[at : at + 4])
                filler += size if data[at + 4] & 31 == 12 else 0
                total += size
                at += size
    assert total > 500_000
    assert filler <= 0.05 * total


def test_the_index_stands_where_it_was_asked_to(tmp_path):
    front = make_film(tmp_path / "front.mp4", FilmSpec(faststart=True, **SHORT))
    back = make_film(tmp_path / "back.mp4", FilmSpec(faststart=False, **SHORT))
    assert box_order(front).index("moov") < box_order(front).index("mdat")
    assert box_order(back).index("moov") > box_order(back).index("mdat")
    assert decode(front) == decode(back)


@pytest.mark.slow
def test_equal_specs_give_equal_bytes_and_seeds_tell_films_apart(tmp_path):
    def digest(seed):
        path = make_film(tmp_path / "film.mp4", FilmSpec(seed=seed, **SHORT))
        return hashlib.sha256(path.read_bytes()).digest()

    assert digest(1) == digest(1)
    assert digest(1) != digest(2)


def test_no_two_seconds_look_alike(small_film):
    """A repeated or missing second must show: the clock and the ground both move."""
    with av.open(small_film) as film:
        pictures = [
            frame.to_ndarray(format="gray")
            for number, frame in enumerate(film.decode(video=0))
            if number % 25 == 0
        ]
    for earlier, later in pairwise(pictures):
        assert abs(earlier.astype(int) - later).mean() > 4
        assert (abs(earlier[:28, :150].astype(int) - later[:28, :150]) > 100).any()


def test_sound_and_picture_lie_side_by_side_in_the_file(small_film):
    """No packet lies more than half a second of film time away from its neighbour."""
    with av.open(small_film) as film:
        packets = [p for p in film.demux() if p.size]
    packets.sort(key=lambda packet: packet.pos)
    times = [float(packet.dts * packet.time_base) for packet in packets]
    assert max(abs(b - a) for a, b in pairwise(times)) < 0.5


def test_progress_climbs_to_one(tmp_path):
    told = []
    make_film(tmp_path / "film.mp4", FilmSpec(**SHORT), told.append)
    assert told == sorted(told)
    assert len(told) == 26
    assert told[-1] == 1.0


def test_the_cache_makes_a_film_once_per_spec(tmp_path):
    spec = FilmSpec(**SHORT)
    first = cached_film(tmp_path, spec)
    before = first.stat().st_mtime_ns
    assert cached_film(tmp_path, spec) == first
    assert first.stat().st_mtime_ns == before
    assert cached_film(tmp_path, FilmSpec(faststart=False, **SHORT)) != first


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        ({"duration_seconds": 0.0}, "seconds"),
        ({"width": 161}, "even"),
        ({"width": 8}, "pixels"),
        ({"fps": 0}, "pictures"),
        ({"bit_rate": 500.0}, "too low"),
        ({"bit_rate": 1e9}, "too high"),
    ],
)
def test_a_film_that_cannot_be_is_refused(wrong, word):
    with pytest.raises(FilmError, match=word):
        FilmSpec(**wrong)


def test_nothing_is_left_behind_where_no_film_can_be_written(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(FilmError, match="cannot write"):
        make_film(tmp_path / "file" / "film.mp4", FilmSpec(**SHORT))
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_an_interrupted_film_leaves_nothing_behind(tmp_path):
    def interrupt(share):
        if share > 0.5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_film(tmp_path / "film.mp4", FilmSpec(**SHORT), interrupt)
    assert list(tmp_path.iterdir()) == []
