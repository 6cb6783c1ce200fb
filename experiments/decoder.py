"""A real decoder that watches a film at the film's own pace, as a player would.

It reads picture and sound over HTTP, at most a second ahead of its clock, and decodes every frame.
A frame that is not decoded when it should be shown halts the clock, as the picture of a player
halts, and is counted. FFmpeg conceals damage unless told not to: it is told not to.
"""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import av
import av.container
import av.stream

from experiments.errors import DecodeFailedError

__all__ = ["DecodeResult", "decode_in_real_time"]

_TOLERANCE_SECONDS = 0.1
_MOST_ERRORS = 1000  # what is broken in more places is broken


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeResult:
    """What a decoder saw of a film."""

    frames: int
    """Pictures decoded."""
    audio_frames: int
    """Frames of sound decoded."""
    expected_frames: int | None
    """Pictures that the container promises, where it does."""
    errors: int
    """Packets and frames that were damaged, reads that failed, and promised pictures missing."""
    late_frames: int
    """Frames that halted the clock by more than a tenth of a second."""
    halt_seconds: float
    """How long the clock stood in all."""
    first_frame_seconds: float
    """From opening the film to its first decoded frame."""


def decode_in_real_time(
    url: str,
    *,
    read_ahead_seconds: float = 1.0,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> DecodeResult:
    """Decode every video and audio frame of a film, none before it is due by more than the lead.

    Args:
        url: of the film, or its path.
        read_ahead_seconds: how far ahead of the clock packets are read.
        clock: monotonic seconds.
        sleep: waits for so many seconds.

    Raises:
        DecodeFailedError: nothing there can be decoded.
    """
    opened = clock()
    try:
        film = av.open(url)
    except (av.FFmpegError, OSError) as error:
        raise DecodeFailedError(f"{url} cannot be opened as a film: {error}") from error
    with film:
        if not film.streams.video:
            raise DecodeFailedError(f"{url} has no picture")
        watching = _Watching(read_ahead_seconds, clock, sleep)
        for stream in (*film.streams.video[:1], *film.streams.audio[:1]):
            stream.codec_context.options = {"err_detect": "explode"}
        for packet in watching.packets(film):
            watching.decode(packet)
        expected = film.streams.video[0].frames or None
    missing = max(0, expected - watching.frames) if expected else 0
    return DecodeResult(
        frames=watching.frames,
        audio_frames=watching.audio_frames,
        expected_frames=expected,
        errors=watching.errors + missing,
        late_frames=watching.late_frames,
        halt_seconds=round(watching.halted, 3),
        first_frame_seconds=round(
            (clock() if watching.first_frame is None else watching.first_frame) - opened, 3
        ),
    )


class _Watching:
    """The clock and the counts of one viewing."""

    def __init__(
        self, lead: float, clock: Callable[[], float], sleep: Callable[[float], None]
    ) -> None:
        self._lead = lead
        self._clock = clock
        self._sleep = sleep
        self._zero: float | None = None  # the clock's reading at film time 0
        self.frames = self.audio_frames = self.errors = self.late_frames = 0
        self.halted = 0.0
        self.first_frame: float | None = None

    def packets(self, film: av.container.InputContainer) -> Iterator["av.Packet[av.stream.Stream]"]:
        """Packets of the first picture and sound, none read sooner than the lead allows."""
        chosen = [*film.streams.video[:1], *film.streams.audio[:1]]
        packets = film.demux(chosen)
        while self.errors < _MOST_ERRORS:
            try:
                packet = next(packets)
            except StopIteration:
                return
            except (av.FFmpegError, OSError):
                self.errors += 1
                return
            self._wait_for(packet)
            yield packet

    def _wait_for(self, packet: "av.Packet[av.stream.Stream]") -> None:
        if self._zero is None or packet.dts is None or packet.time_base is None:
            return
        early = self._zero + float(packet.dts * packet.time_base) - self._lead - self._clock()
        if early > 0:
            self._sleep(early)

    def decode(self, packet: "av.Packet[av.stream.Stream]") -> None:
        """Decode what a packet completes (an empty packet: what is left in the decoder)."""
        self.errors += packet.is_corrupt
        try:
            frames = packet.decode()
        except (av.FFmpegError, OSError):
            self.errors += 1
            return
        for frame in frames:
            self._show(frame)

    def _show(self, frame: object) -> None:
        if isinstance(frame, av.VideoFrame):
            self.frames += 1
        elif isinstance(frame, av.AudioFrame):
            self.audio_frames += 1
        else:
            return
        self.errors += frame.is_corrupt
        if frame.time is None:
            return
        now = self._clock()
        if self._zero is None:
            self._zero, self.first_frame = now - frame.time, now
        late = now - (self._zero + frame.time)
        if late > _TOLERANCE_SECONDS:
            self.late_frames += 1
            self.halted += late
            self._zero += late
