"""Makes real films to experiment with: H.264 and AAC in MP4, of a chosen length and bit rate.

The picture pans over a textured ground under film grain, and carries a clock and the frame number;
the sound is a tone whose pitch climbs. So a viewer with eyes and ears notices a missing or repeated
second, and the encoder has honest work at any bit rate (a still test card would compress to
nothing, and the film's bytes would be stuffing).
"""

import contextlib
import hashlib
import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from tempfile import NamedTemporaryFile

import av
import av.audio
import av.container
import av.video.stream
import numpy as np
import numpy.typing as npt
from PIL import Image, ImageDraw, ImageFont

from experiments.errors import FilmError

__all__ = ["FilmSpec", "cached_film", "make_film"]

_SAMPLE_RATE = 48_000
_AUDIO_FRAME_SAMPLES = 1024  # one AAC frame
_INDEX_BYTES_PER_SECOND = 900  # what the MP4 sample tables take at 25 pictures and 47 AAC frames
_GRAINS = 8
_GRAIN_STRENGTH = 6.0  # grey levels: enough that no rate below 10 Mb/s needs stuffing at 360 lines
_LOOKS = 1  # raise when the same FilmSpec gives another file: it is part of the cache's key

_Plane = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True, kw_only=True)
class FilmSpec:
    """What a film shall be. The same spec gives the same bytes (with the same encoder library)."""

    duration_seconds: float = 60.0
    """Length of picture and sound."""
    bit_rate: float = 250_000.0
    """Bytes per second of the whole file: picture, sound and container."""
    width: int = 640
    """Pixels, even."""
    height: int = 360
    """Pixels, even."""
    fps: int = 25
    """Pictures per second."""
    faststart: bool = True
    """Whether the index (moov) stands before the media data or behind it."""
    seed: int = 1
    """Seed of texture and grain: two seeds give two films of equal size but no equal piece."""

    def __post_init__(self) -> None:
        if not 0.2 <= self.duration_seconds <= 6 * 3600:
            raise FilmError("a film lasts from 0.2 seconds to 6 hours")
        if not 64 <= self.width <= 4096 or not 36 <= self.height <= 2304:
            raise FilmError("a film is from 64x36 to 4096x2304 pixels")
        if self.width % 2 or self.height % 2:
            raise FilmError("width and height must be even: H.264 halves them for colour")
        if not 1 <= self.fps <= 120:
            raise FilmError("a film has from 1 to 120 pictures per second")
        if self.video_rate < 10_000 / 8:
            raise FilmError(
                "the bit rate is too low for picture and sound: ask for 100 kb/s or more"
            )
        if self.bit_rate > 12.5e6:
            raise FilmError("the bit rate is too high: ask for at most 100 Mb/s")

    @property
    def frames(self) -> int:
        """Number of pictures."""
        return max(1, round(self.duration_seconds * self.fps))

    @property
    def file_name(self) -> str:
        """A name for a cache: readable, and different for every different spec."""
        key = hashlib.sha256(repr((_LOOKS, sorted(asdict(self).items()))).encode()).hexdigest()[:8]
        kilobits = round(self.bit_rate * 8 / 1000)
        return f"test-film-{self.duration_seconds:g}s-{kilobits}kbps-{key}.mp4"

    @property
    def audio_rate(self) -> float:
        """Bytes per second of sound: 96 kb/s, less where the whole film has little."""
        return min(12_000.0, self.bit_rate / 8)

    @property
    def video_rate(self) -> float:
        """Bytes per second of picture: what sound and container leave."""
        return self.bit_rate - self.audio_rate - _INDEX_BYTES_PER_SECOND


def make_film(
    path: Path, spec: FilmSpec | None = None, progress: Callable[[float], None] | None = None
) -> Path:
    """Make a film; the file appears only when it is whole.

    Args:
        path: where; an existing file is replaced.
        spec: what; 60 s at 2 Mb/s if not given.
        progress: is told the share that is done, from 0 to 1.

    Returns:
        The path.

    Raises:
        FilmError: it cannot be written or encoded.
    """
    spec = spec or FilmSpec()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile(dir=path.parent, prefix=".film-", delete=False) as unfinished:
            pass
    except OSError as error:
        raise FilmError(f"cannot write a film to {path.parent}: {error.strerror}") from error
    try:
        _encode(unfinished.name, spec, progress or (lambda _: None))
        Path(unfinished.name).chmod(0o644)
        Path(unfinished.name).replace(path)
    except (av.FFmpegError, OSError) as error:
        raise FilmError(f"cannot make the film {path.name}: {error}") from error
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(unfinished.name)  # noqa: PTH108 - pathlib has the same call, only longer
    return path


def cached_film(
    folder: Path, spec: FilmSpec, progress: Callable[[float], None] | None = None
) -> Path:
    """The film of a spec from a folder of films, made if it is not there yet.

    Raises:
        FilmError: it cannot be made.
    """
    path = folder / spec.file_name
    if path.is_file() and path.stat().st_size:
        return path
    return make_film(path, spec, progress)


def _encode(name: str, spec: FilmSpec, progress: Callable[[float], None]) -> None:
    options = {"movflags": "+faststart"} if spec.faststart else {}
    with av.open(name, "w", format="mp4", options=options) as film:
        video = _video_stream(film, spec)
        audio = film.add_stream("aac", rate=_SAMPLE_RATE, layout="mono")
        audio.bit_rate = round(spec.audio_rate * 8)
        sounds = _sounds(spec)
        heard = 0
        for number, picture in enumerate(_pictures(spec)):
            # Sound and picture advance together: a film whose sound lies seconds away from its
            # picture in the file would be a test of something else.
            while heard * spec.fps <= number * _SAMPLE_RATE and (sound := next(sounds, None)):
                heard += sound.samples
                film.mux(audio.encode(sound))
            film.mux(video.encode(picture))
            progress((number + 1) / (spec.frames + 1))
        for sound in sounds:
            film.mux(audio.encode(sound))
        film.mux(video.encode(None))
        film.mux(audio.encode(None))
    progress(1.0)


def _video_stream(
    film: av.container.OutputContainer, spec: FilmSpec
) -> av.video.stream.VideoStream:
    kilobits = round(spec.video_rate * 8 / 1000)
    # Constant bit rate with a half-second buffer; nal-hrd=cbr stuffs what content leaves free, so
    # that also a short film has its size. One thread: the file must not depend on the machine.
    x264 = {
        "nal-hrd": "cbr",
        "force-cfr": "1",
        "scenecut": "0",
        "keyint": str(2 * spec.fps),
        "vbv-maxrate": str(kilobits),
        "vbv-bufsize": str(max(1, kilobits // 2)),
        "vbv-init": "0.5",
        "rc-lookahead": str(spec.fps),
    }
    stream = film.add_stream("libx264", rate=spec.fps)
    stream.width, stream.height, stream.pix_fmt = spec.width, spec.height, "yuv420p"
    stream.bit_rate = kilobits * 1000
    stream.time_base = Fraction(1, spec.fps)
    stream.codec_context.thread_count = 1
    stream.options = {
        "preset": "superfast",
        "x264-params": ":".join(f"{key}={value}" for key, value in x264.items()),
    }
    return stream


def _pictures(spec: FilmSpec) -> Iterator[av.VideoFrame]:
    rng = np.random.default_rng(spec.seed)
    height, width = spec.height, spec.width
    ground = _ground(rng, height * 2, width * 2)
    grains = rng.normal(0, _GRAIN_STRENGTH, (_GRAINS, height, width)).astype(np.int16)
    font = ImageFont.load_default(size=max(10, height // 9))
    picture = np.empty((height * 3 // 2, width), np.uint8)
    for number in range(spec.frames):
        down = round((height / 2) * (1 - np.cos(number / spec.fps / 7)))
        right = round((width / 2) * (1 - np.cos(number / spec.fps / 5)))
        luma = ground[down : down + height, right : right + width] + grains[number % _GRAINS]
        np.clip(luma, 16, 235, out=luma)
        picture[:height] = luma
        label = _label(font, number, spec.fps)
        lines, columns = min(label.shape[0], height), min(label.shape[1], width)
        picture[:lines, :columns] = label[:lines, :columns]
        picture[height : height + height // 4] = 128 + round(40 * np.sin(number / spec.fps / 3))
        picture[height + height // 4 :] = 128 + round(40 * np.cos(number / spec.fps / 4))
        frame = av.VideoFrame.from_ndarray(picture, format="yuv420p")
        frame.pts, frame.time_base = number, Fraction(1, spec.fps)
        yield frame


def _ground(rng: np.random.Generator, height: int, width: int) -> npt.NDArray[np.int16]:
    """A soft random landscape with detail at several scales, in grey levels 40..210."""
    total = np.zeros((height, width))
    for scale, weight in ((64, 1.0), (16, 0.5), (4, 0.2)):
        coarse = rng.uniform(0, 255, (height // scale + 2, width // scale + 2)).astype(np.uint8)
        total += weight * np.asarray(
            Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC), float
        )
    low, high = total.min(), total.max()
    grey: npt.NDArray[np.int16] = (40 + (total - low) * (170 / (high - low))).astype(np.int16)
    return grey


def _label(font: ImageFont.FreeTypeFont | ImageFont.ImageFont, number: int, fps: int) -> _Plane:
    minutes, seconds = divmod(number / fps, 60)
    text = f"{int(minutes):02d}:{seconds:05.2f}  #{number:06d}"
    _, _, right, bottom = font.getbbox(text)
    label = Image.new("L", (round(right) + 16, round(bottom) + 12), 16)
    ImageDraw.Draw(label).text((8, 4), text, fill=235, font=font)
    return np.asarray(label)


def _sounds(spec: FilmSpec) -> Iterator[av.AudioFrame]:
    rng = np.random.default_rng(spec.seed + 1)
    total = round(spec.duration_seconds * _SAMPLE_RATE)
    phase = 0.0
    for start in range(0, total, _AUDIO_FRAME_SAMPLES):
        count = min(_AUDIO_FRAME_SAMPLES, total - start)
        seconds = (start + np.arange(count)) / _SAMPLE_RATE
        pitch = 220.0 * 2.0 ** (
            (seconds % 12.0) / 6.0
        )  # climbs two octaves in 12 s, again and again
        phases = phase + np.cumsum(2 * np.pi * pitch / _SAMPLE_RATE)
        phase = float(phases[-1]) % (2 * np.pi)
        # A breath of noise under the tone gives the coder enough to spend its rate on.
        wave = 0.3 * np.sin(phases) + rng.normal(0, 0.02, count)
        frame = av.AudioFrame.from_ndarray(
            wave.astype(np.float32)[np.newaxis, :], format="fltp", layout="mono"
        )
        frame.sample_rate, frame.pts = _SAMPLE_RATE, start
        frame.time_base = Fraction(1, _SAMPLE_RATE)
        yield frame
