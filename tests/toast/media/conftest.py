"""Real films in the containers that people have, made by FFmpeg once per run."""

from fractions import Fraction

import av
import numpy as np
import pytest

WIDTH, HEIGHT, FPS, SECONDS = 160, 96, 24, 4
_GRAIN = np.random.default_rng(1).integers(0, 255, (FPS, 40, WIDTH, 3), dtype=np.uint8)


def _sound(rng, codec, samples, at):
    planar = codec == "aac"
    wave = (rng.standard_normal((2, samples)) * 0.1).astype(np.float32)
    if not planar:
        wave = (wave.T.reshape(1, -1) * 32767).astype(np.int16)
    frame = av.AudioFrame.from_ndarray(wave, format="fltp" if planar else "s16", layout="stereo")
    frame.sample_rate, frame.pts, frame.time_base = 48000, at, Fraction(1, 48000)
    return frame


def write_film(
    path, *, vcodec="libx264", acodec="aac", gop=FPS, seconds=SECONDS, options=None, x264=None
):
    """A moving, grainy picture with noise for sound, interleaved as the muxer likes it."""
    rng = np.random.default_rng(2)
    samples = 1024 if acodec == "aac" else 960
    with av.open(str(path), "w", options=options or {}) as film:
        video = film.add_stream(vcodec, rate=FPS)
        video.width, video.height, video.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        video.codec_context.gop_size, video.bit_rate = gop, 300_000
        video.options = {"x264-params": x264} if x264 else {}
        audio = film.add_stream(acodec, rate=48000, layout="stereo") if acodec else None
        at = 0
        for i in range(seconds * FPS):
            image = np.full((HEIGHT, WIDTH, 3), i * 3 % 255, np.uint8)
            image[:40] = _GRAIN[i % FPS]
            frame = av.VideoFrame.from_ndarray(image, format="rgb24").reformat(format="yuv420p")
            frame.pts, frame.time_base = i, Fraction(1, FPS)
            film.mux(video.encode(frame))
            while audio and at < (i + 1) * 48000 // FPS:
                film.mux(audio.encode(_sound(rng, acodec, samples, at)))
                at += samples
        film.mux(video.encode(None))
        if audio:
            film.mux(audio.encode(None))
    return path


FILMS = {
    "front.mp4": {"options": {"movflags": "+faststart"}},
    "end.mp4": {},
    "mute.mp4": {"acodec": None},
    "fragmented.mp4": {"options": {"movflags": "frag_keyframe+empty_moov"}},
    "film.mkv": {},
    "film.webm": {"vcodec": "libvpx", "acodec": "libopus"},
    "film.avi": {},
    "film.ts": {},
}


@pytest.fixture(scope="session")
def films(tmp_path_factory):
    """Name -> path of a real film; made when first asked for."""
    folder = tmp_path_factory.mktemp("films")

    class Films(dict):
        def __missing__(self, name):
            self[name] = write_film(folder / name, **FILMS[name])
            return self[name]

    return Films()
