"""The decoder counts what a viewer would see: every frame, every fault, every halt."""

import pytest

from experiments.decoder import decode_in_real_time
from experiments.errors import DecodeFailedError
from experiments.film import FilmSpec, make_film


class FakeTime:
    """A clock that only moves when someone sleeps."""

    def __init__(self):
        self.now = 0.0

    def clock(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


def watch(path, time=None, **more):
    time = time or FakeTime()
    result = decode_in_real_time(str(path), clock=time.clock, sleep=time.sleep, **more)
    return result, time


def test_every_frame_of_a_sound_film_in_its_own_time(small_film):
    """6 s of film take 5 s of clock with a lead of one."""
    result, time = watch(small_film)
    assert (result.frames, result.expected_frames) == (150, 150)
    assert result.audio_frames >= 281
    assert (result.errors, result.late_frames, result.halt_seconds) == (0, 0, 0.0)
    assert result.first_frame_seconds == 0.0
    assert time.now == pytest.approx(5.0, abs=0.1)


def test_no_packet_is_read_long_before_it_is_due(small_film):
    """The lead bounds how far the clock may be behind what was read."""
    _, time = watch(small_film, read_ahead_seconds=0.25)
    assert time.now == pytest.approx(5.75, abs=0.1)


def test_a_late_frame_halts_the_clock_once(small_film):
    """Time that passes while nobody sleeps is lateness; what follows is in time again."""

    class Hiccup(FakeTime):
        slept = 0

        def sleep(self, seconds):
            super().sleep(seconds)
            self.slept += 1
            if self.slept == 50:
                self.now += 2.0

    result, _ = watch(small_film, Hiccup())
    assert result.errors == 0
    assert result.late_frames == 1
    assert result.halt_seconds == pytest.approx(1.0, abs=0.1)


def test_damage_is_an_error_and_not_concealed(small_film, tmp_path):
    data = bytearray(small_film.read_bytes())
    for at in range(300_000, 340_000, 50):
        data[at] ^= 0xFF
    broken = tmp_path / "broken.mp4"
    broken.write_bytes(data)
    result, _ = watch(broken)
    assert result.errors > 0


def test_missing_pictures_are_errors(tmp_path):
    """A film whose second half is not there: every promised picture that is missing counts."""
    spec = FilmSpec(duration_seconds=2.0, bit_rate=62_500.0, width=160, height=90)
    path = make_film(tmp_path / "film.mp4", spec)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    result, _ = watch(path)
    assert result.expected_frames == 50
    assert result.errors >= 50 - result.frames > 10


@pytest.mark.parametrize("content", [b"", b"no film at all\n" * 100])
def test_what_is_no_film_is_one_clear_line(tmp_path, content):
    path = tmp_path / "notes.mp4"
    path.write_bytes(content)
    with pytest.raises(DecodeFailedError, match=r"notes.mp4"):
        watch(path)


def test_nobody_there_is_one_clear_line():
    with pytest.raises(DecodeFailedError, match="cannot be opened"):
        watch("http://127.0.0.1:1/film.mp4")
