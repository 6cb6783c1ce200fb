"""A picture to know a film by: one of its own frames, as JPEG.

Taken from as much of the film as there is. Nothing is fetched for it: a file object that does not
have some bytes raises `NotHereError`, and another place of the film is tried.
"""

import io
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import BinaryIO, Final

import av
import av.error
import numpy as np
from av.container import InputContainer
from av.stream import Disposition
from av.video.frame import VideoFrame
from av.video.stream import VideoStream

from toast.media.errors import NotHereError, PictureError
from toast.media.probe import CONTAINER_OPTIONS

__all__ = ["PosterSettings", "take_poster"]

_DARK: Final = 28.0
"""Mean luma (0 to 255; black is 16) up to which a picture is taken for a black one."""
_FLAT: Final = 6.0
"""Standard deviation of luma up to which a picture shows one colour, or one title on it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PosterSettings:
    """How a poster is looked for."""

    percents: tuple[int, ...] = (10, 15, 20)
    """Places of the film that are looked at, in hundredths of its length, until one is good. A
    tenth in, most films have shown their titles and given nothing away."""
    other_percents: tuple[int, ...] = (30, 5, 0)
    """Places that will do while nothing better is here."""
    pictures: int = 4
    """Key frames that are looked at in each place."""
    width: int = 480
    """Pixels; the height follows from the film. It is never made larger."""
    most_bytes: int = 128 * 1024
    """Size of the JPEG; it is compressed until it fits."""
    most_read_bytes: int = 64 * 1024 * 1024
    """Bytes of the film that are read at most."""
    limit_seconds: float = 10.0
    """Time after which the best picture so far is taken, or none."""
    most_pixels: int = 8192 * 4608
    """Larger pictures are not decoded."""


def take_poster(
    film: BinaryIO, settings: PosterSettings | None = None, *, anywhere: bool = True
) -> bytes:
    """A frame of a film that is not black, as JPEG. Blocking: call it in a thread.

    Args:
        film: seekable; left open. Reading what is not there raises `NotHereError`.
        settings: where to look, and bounds.
        anywhere: whether the other places will do, too.

    Raises:
        NotHereError: it may be found when more of the film is here.
        PictureError: the film is here, but no picture can be had from it.
    """
    settings = settings or PosterSettings()
    bounded = _Bounded(film, settings.most_read_bytes, settings.limit_seconds)
    best: tuple[float, VideoFrame] | None = None
    for percent in settings.percents + (settings.other_percents if anywhere else ()):
        bounded.is_missing = False
        try:
            for frame in _frames(bounded, percent, settings):
                quality = _quality(frame)
                if quality > 0:
                    return _as_jpeg(frame, settings)
                if best is None or quality > best[0]:
                    best = (quality, frame)
        except PictureError:
            if not bounded.is_missing and not bounded.is_spent:
                raise
        if bounded.is_spent:
            break
    if bounded.was_missing:
        raise NotHereError("too little of the film is here for a picture of it")
    if best is None:
        raise PictureError("no picture can be had from this film")
    return _as_jpeg(best[1], settings)  # a dark film: the least dark place of it


class _Bounded:
    """A file object with a limit on bytes and on time, that ends where bytes are missing.

    FFmpeg prints what a file object raises, and is not always told of it: so it is given an end
    of the file instead, and what it makes of that is thrown away.
    """

    def __init__(self, file: BinaryIO, most_bytes: int, seconds: float) -> None:
        self._file = file
        self._left = most_bytes
        self._deadline = time.monotonic() + seconds
        self.is_missing = False
        self.was_missing = False
        self.is_spent = False
        self.seek = file.seek
        self.tell = file.tell

    def read(self, size: int = -1) -> bytes:
        if self._left <= 0 or time.monotonic() > self._deadline:
            self.is_spent = True
            return b""
        try:
            data = self._file.read(size)
        except NotHereError:
            self.is_missing = self.was_missing = True
            return b""
        self._left -= len(data)
        return data


def _frames(film: _Bounded, percent: int, settings: PosterSettings) -> Iterator[VideoFrame]:
    """Key frames from one place of the film on."""
    film.seek(0)
    with _opened(film) as container:
        video = _picture_track(container)
        context = video.codec_context
        if context.width * context.height > settings.most_pixels:
            raise PictureError("this film's pictures are too large")
        film.is_missing = False  # opening looks further ahead than it needs
        context.thread_count = 1
        if percent > 0 and container.duration:
            start = container.start_time or 0
            container.seek(start + container.duration * percent // 100, any_frame=False)
        shown = 0
        for packet in container.demux(video):
            if film.is_missing or film.is_spent or shown >= settings.pictures:
                return  # what was read last may be cut short
            if not packet.is_keyframe or not packet.size:
                continue
            # Emptied after each: a decoder that waits for the next pictures makes us read them.
            frames = [*context.decode(packet), *context.decode(None)]
            context.flush_buffers()
            shown += 1
            yield from frames[:1]


@contextmanager
def _opened(film: _Bounded) -> Iterator[InputContainer]:
    # Every place gets a demuxer of its own: one that has met a missing byte does not recover.
    try:
        with av.open(
            film, "r", container_options=dict(CONTAINER_OPTIONS), metadata_errors="replace"
        ) as container:
            yield container
    except av.error.FFmpegError as error:
        raise PictureError(f"no picture can be had from this film: {error.strerror}") from error


def _picture_track(container: InputContainer) -> VideoStream:
    for stream in container.streams.video:
        if stream.codec_context is not None and not stream.disposition & Disposition.attached_pic:
            return stream
    raise PictureError("this film has no picture that can be decoded")


def _quality(frame: VideoFrame) -> float:
    """How much there is to see: above 0 is good enough, the most negative is the darkest."""
    # Small first: nobody needs eight million pixels to know black.
    luma = frame.reformat(width=64, height=36, format="gray").to_ndarray().astype(np.float64)
    return min(float(luma.mean()) - _DARK, float(luma.std()) - _FLAT)


def _as_jpeg(frame: VideoFrame, settings: PosterSettings) -> bytes:
    # A pixel of the film may be wider than high (anamorphic DVDs); one of a JPEG is not.
    aspect = frame.sample_aspect_ratio if hasattr(frame, "sample_aspect_ratio") else None
    wide = frame.width * float(aspect or 1)
    width = max(2, min(settings.width, round(wide)))
    height = max(2, min(4 * width, round(width * frame.height / wide)))
    picture = frame.reformat(width=width, height=height, format="yuvj420p")
    for scale in (4, 8, 14, 24, 31):
        data = _encode(picture, scale)
        if len(data) <= settings.most_bytes:
            return data
    raise PictureError("no picture of this film is small enough")


def _encode(picture: VideoFrame, scale: int) -> bytes:
    encoder = av.CodecContext.create("mjpeg", "w")
    encoder.width, encoder.height = picture.width, picture.height
    encoder.pix_fmt, encoder.time_base = "yuvj420p", Fraction(1, 25)
    encoder.options = {"qmin": str(scale), "qmax": str(scale)}
    picture.pts = None
    target = io.BytesIO()
    for packet in (*encoder.encode(picture), *encoder.encode(None)):
        target.write(bytes(packet))
    return target.getvalue()
