"""Hour-long films of real pictures, made quickly: some seconds, repeated without encoding again."""

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import av

from experiments.errors import FilmError
from experiments.film import FilmSpec, cached_film
from toast.media import probe

__all__ = ["KINDS", "LongFilm", "Step", "long_film", "steps_to"]

KINDS: Final = ("front", "end", "mkv")
"""MP4 with its index before or behind the media data, and Matroska as FFmpeg writes it."""

_CLIP: Final = FilmSpec(duration_seconds=20.0)
_HEADER_BYTES: Final = 4096
_BEFORE_FRAME_BYTES: Final = 64  # a cluster's own header, where the container has one
_AFTER_FRAME_BYTES: Final = 16
"""Where Matroska says that a packet is, there its block's header is: the picture ends later."""


@dataclass(frozen=True, slots=True)
class Step:
    """Bytes that a player reads next; it knows of them only from what it has read before.

    Attributes:
        name: "front", "index" or "frame".
        start: first byte.
        end: byte after the last.
    """

    name: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class LongFilm:
    """A film for the laboratory.

    Attributes:
        path: where it is.
        kind: one of `KINDS`.
        duration: in seconds.
        index: bytes of its container's index, [start, end).
    """

    path: Path
    kind: str
    duration: float
    index: tuple[int, int]


def long_film(folder: Path, kind: str, minutes: int = 60) -> LongFilm:
    """A film of so many minutes at 2 Mb/s, from a folder of films, made if it is not there yet.

    Raises:
        FilmError: FFmpeg is not here, or cannot make it.
    """
    path = folder / f"{kind}-{minutes}min{'.mkv' if kind == 'mkv' else '.mp4'}"
    if not path.is_file():
        clip = cached_film(folder, _CLIP)
        options = ["-movflags", "+faststart"] if kind == "front" else []
        with TemporaryDirectory(dir=folder) as unfinished:
            made = Path(unfinished) / path.name
            again = ["-stream_loop", str(3 * minutes - 1), "-i", str(clip), "-c", "copy"]
            _run(["ffmpeg", "-v", "error", "-y", *again, *options, str(made)])
            made.replace(path)
    info = probe(path)
    # The front is in there, too, where the index is behind the media data.
    start, end = info.timemap.index[-1]
    return LongFilm(path, kind, info.duration, (start, end))


def steps_to(film: LongFilm, seconds: float) -> tuple[Step, ...]:
    """What a player reads to show the picture at a film time, on opening the film there.

    That picture is the key frame at or before the time: the first that can be shown at all.

    Raises:
        FilmError: the film cannot be read.
    """
    start, end = _key_frame(film.path, seconds)
    index_start, index_end = film.index
    steps = []
    if index_start > _HEADER_BYTES:
        steps.append(Step("front", 0, _HEADER_BYTES))
        # Matroska shows its beginning without the index, which is for seeking alone.
        if film.kind != "mkv" or seconds > 0:
            steps.append(Step("index", index_start, index_end))
    else:
        steps.append(Step("index", 0, index_end))
    steps.append(Step("frame", start, end))
    return tuple(steps)


def _key_frame(path: Path, seconds: float) -> tuple[int, int]:
    try:
        with av.open(str(path)) as container:
            video = container.streams.video[0]
            if video.time_base is None:
                raise FilmError(f"{path.name} has no clock")
            container.seek(int(seconds / video.time_base), stream=video)
            for packet in container.demux(video):
                if packet.is_keyframe and packet.pos is not None:
                    start = max(0, packet.pos - _BEFORE_FRAME_BYTES)
                    end = packet.pos + packet.size + _AFTER_FRAME_BYTES
                    return start, min(end, path.stat().st_size)
    except av.FFmpegError as error:
        raise FilmError(f"{path.name} cannot be read: {error}") from error
    raise FilmError(f"{path.name} has no key frame at {seconds:g} s")


def _run(command: Sequence[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise FilmError(f"{command[0]} cannot be run: {error.strerror}") from error
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise FilmError(f"{command[0]} fails: {last}")
