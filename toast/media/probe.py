"""What a film is and when each of its bytes is needed, read from the container's own index.

The file may be one that is still arriving, where every read waits for bytes from the network: so
only header and index are read, unless the caller passes a path and nothing else helps.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

import av
import av.error
import numpy as np
from av.container import InputContainer
from av.stream import Disposition

from toast.common.timemap import TimeMap, cell_bytes_for
from toast.media import boxes, ebml
from toast.media.cells import Packets, make_timemap, merge_ranges, need_times
from toast.media.errors import MediaError

__all__ = ["CONTAINER_OPTIONS", "MediaInfo", "probe"]

_NAMES: Final = {
    "mov": "mp4",
    "matroska": "matroska",
    "avi": "avi",
    "mpegts": "mpegts",
    "mpeg": "mpeg",
    "flv": "flv",
    "ogg": "ogg",
    "asf": "asf",
}
# Play lists (HLS, DASH, concat...) are not among them: a stranger's "film" must not make us open
# other files or addresses.
CONTAINER_OPTIONS: Final = {
    "format_whitelist": "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,mpegts,mpeg,flv,ogg,asf",
    "protocol_whitelist": "",
}
_MAX_TAIL: Final = 16 << 20  # bytes after the last packet that are taken for an index (AVI)
_INTERLEAVE_SECONDS: Final = 1.0
"""Muxers keep the sound within a second of the picture: a cluster holds sound (and pictures shown
out of order) from before the key frame that its index entry names."""
_KEY_FRAME_SECONDS: Final = 5.0
"""A key frame is taken to hold no more of the bytes up to the next one than come in this time."""
_MAX_DURATION: Final = 1_000_000.0  # seconds: eleven days


@dataclass(frozen=True, slots=True)
class MediaInfo:
    """What a film is.

    Attributes:
        container: "mp4", "matroska", "avi", ...
        duration: length in seconds.
        video_codec: FFmpeg's name, such as "h264".
        audio_codec: the same of the first sound track, or None.
        width: of the picture, in pixels.
        height: of the picture, in pixels.
        frames: number of pictures, or None where only reading the whole film would tell.
        timemap: when each byte is needed.
    """

    container: str
    duration: float
    video_codec: str
    audio_codec: str | None
    width: int
    height: int
    frames: int | None
    timemap: TimeMap


def probe(film: str | Path | BinaryIO) -> MediaInfo:
    """Find out what a film is and when each of its bytes is needed.

    Args:
        film: a path, or a seekable binary file object, which is left open. Of a file object only
            header and index are read; where the container has no usable index, a path is read
            from end to end, and a file object gets a map of constant bit rate (`timemap.source`
            is "constant" then).

    Raises:
        MediaError: the file cannot be read, is empty, cut short, or no film.
    """
    if not isinstance(film, str | Path):
        return _probe(film, _name_of(film), thorough=False)
    path = Path(film)
    try:
        with path.open("rb") as file:
            return _probe(file, path.name, thorough=True)
    except OSError as error:
        raise MediaError(f"{path.name} cannot be read: {error.strerror or error}") from error


def _name_of(film: BinaryIO) -> str:
    name = getattr(film, "name", None)
    return Path(name).name if isinstance(name, str) and name else "this file"


def _probe(file: BinaryIO, name: str, *, thorough: bool) -> MediaInfo:
    size = file.seek(0, 2)
    if size == 0:
        raise MediaError(f"{name} is empty (0 bytes)")
    _check_riff(file, size, name)
    mp4 = boxes.read_layout(file, size, name)
    matroska = None if mp4 else ebml.read_layout(file, size, name)
    file.seek(0)
    with _opened(file, name) as container:
        return _Reading(container, name, size, mp4, matroska, thorough=thorough).info()


def _check_riff(file: BinaryIO, size: int, name: str) -> None:
    """AVI: the outermost chunk says how long the file is meant to be."""
    file.seek(0)
    head = file.read(12)
    if head[:4] == b"RIFF" and head[8:] == b"AVI ":
        end = 8 + int.from_bytes(head[4:8], "little")
        if end > size:
            raise MediaError(
                f"{name} is cut short: it should end at byte {end}, and ends at {size}"
            )


class _Unowned:
    """A file object that its user may close without closing the one it stands for."""

    def __init__(self, file: BinaryIO) -> None:
        self.read = file.read
        self.seek = file.seek
        self.tell = file.tell


@contextmanager
def _opened(file: BinaryIO, name: str) -> Iterator[InputContainer]:
    """FFmpeg's view of a file; its errors become ours, those of the file object pass through."""
    try:
        with av.open(
            _Unowned(file),
            "r",
            container_options=dict(CONTAINER_OPTIONS),
            metadata_errors="replace",
        ) as container:
            yield container
    except av.error.FFmpegError as error:
        reason = (error.strerror or str(error)).lower()
        raise MediaError(
            f"{name} is not a film that can be read: {reason} "
            "(MP4, Matroska, WebM and other usual containers are understood)"
        ) from error


class _Reading:
    """One film while it is being looked at."""

    def __init__(
        self,
        container: InputContainer,
        name: str,
        size: int,
        mp4: boxes.Layout | None,
        matroska: ebml.Layout | None,
        *,
        thorough: bool,
    ) -> None:
        self._container = container
        self._name = name
        self._size = size
        self._mp4 = mp4
        self._matroska = matroska
        self._thorough = thorough
        self._origin = (container.start_time or 0) / 1e6  # film time 0 on the container's clock
        self._frames: int | None = None
        self._last = 0.0
        self._keys: list[tuple[float, int]] = []  # when shown, first byte
        pictures = [
            stream
            for stream in container.streams.video
            if not stream.disposition & Disposition.attached_pic
        ]
        if not pictures:
            raise MediaError(f"{name} has no video track")
        self._video = pictures[0]
        if self._video.codec_context is None:
            raise MediaError(f"{name} has a video track in a format that is not known here")
        sounds = [stream for stream in container.streams.audio if stream.codec_context is not None]
        self._audio = sounds[0] if sounds else None

    def info(self) -> MediaInfo:
        label = _NAMES.get(self._container.format.name.split(",")[0], "other")
        packets, index, first, source = self._packets(label)
        duration = max((self._container.duration or 0) / 1e6, self._last)
        if not 0.001 <= duration <= _MAX_DURATION:
            raise MediaError(
                f"{self._name} does not say how long it is: a picture, or an unfinished recording"
            )
        if packets is None:
            fallback = TimeMap.constant(self._size, duration)
            ranges = merge_ranges(index)
            timemap = TimeMap(
                self._size,
                duration,
                fallback.cell_bytes,
                fallback.due,
                ranges,
                merge_ranges((*ranges, *fallback.startup)),
                "constant",
            )
        else:
            timemap = make_timemap(
                self._size,
                duration,
                packets,
                index=index,
                first=first,
                source=source,
                keys=self._keys,
            )
        context = self._video.codec_context
        return MediaInfo(
            label,
            duration,
            context.name,
            self._audio.codec_context.name if self._audio else None,
            context.width,
            context.height,
            self._frames or self._video.frames or None,
            timemap,
        )

    def _packets(
        self, label: str
    ) -> tuple[Packets | None, list[tuple[int, int]], list[tuple[int, int]], str]:
        """Packets (None: not known), index ranges, first packets, and where that came from."""
        if self._mp4 is not None and not self._mp4.fragmented:
            rows, first = self._from_entries()
            if rows:
                return Packets.of(rows), list(self._mp4.index), first, label
        if self._thorough:
            rows, first, ends = self._from_demux()
            if rows:
                return Packets.of(rows), self._header_ranges(rows, ends), first, label
        if self._matroska is not None:
            index = list(self._matroska.index)
            if self._matroska.cues:
                return self._from_cues(), index, self._first_picture(), label
            return None, index, [], "constant"
        return None, list(self._mp4.index) if self._mp4 else [], [], "constant"

    def _from_entries(self) -> tuple[list[tuple[int, int, float]], list[tuple[int, int]]]:
        """Every sample as MP4's sample tables give it.

        The times are those of decoding. Key frames are shown later by as much as the first of them:
        FFmpeg's players, too, find the key frame of a time by that. (In open groups of pictures
        the later ones are shown a few pictures later still; their players begin with them early.)
        """
        rows: list[tuple[int, int, float]] = []
        first: list[tuple[int, int]] = []
        if not len(self._video.index_entries):
            return rows, first
        tick = float(self._video.time_base or 0)
        delay = self._delay()
        self._keys = [
            ((entry.timestamp + delay) * tick - self._origin, entry.pos)
            for entry in self._video.index_entries
            if entry.is_keyframe
        ]
        for stream in self._container.streams:
            base = float(stream.time_base or 0)
            entries = [
                (e.pos, e.pos + e.size, e.timestamp * base - self._origin)
                for e in stream.index_entries
                if e.size > 0
            ]
            if not entries:
                continue
            if max(end for _, end, _ in entries) > self._size:
                raise MediaError(f"{self._name} is cut short: its index points past its end")
            if stream in (self._video, self._audio):
                first.append(entries[0][:2])
            rows += entries
        return rows, first

    def _delay(self) -> int:
        """How long after it is decoded the first picture is shown, in ticks of its track."""
        for packet in self._container.demux(self._video):
            if packet.size and packet.pts is not None and packet.dts is not None:
                return max(0, packet.pts - packet.dts)
        return 0

    def _from_demux(
        self,
    ) -> tuple[list[tuple[int, int, float]], list[tuple[int, int]], int]:
        """Every packet, by reading the film from end to end; and where the last one ends."""
        places: dict[int, list[tuple[int, int]]] = {}
        shown: dict[int, list[float]] = {}
        for packet in _all_packets(self._container):
            stamp = packet.pts if packet.pts is not None else packet.dts
            if packet.pos is None or packet.pos < 0 or packet.size == 0 or stamp is None:
                continue
            time = float(stamp * packet.time_base) - self._origin
            self._last = max(self._last, time + float((packet.duration or 0) * packet.time_base))
            places.setdefault(packet.stream_index, []).append(
                (packet.pos, min(packet.pos + packet.size, self._size))
            )
            shown.setdefault(packet.stream_index, []).append(time)
            if packet.is_keyframe and packet.stream_index == self._video.index:
                self._keys.append((time, packet.pos))
        if self._video.index not in places:
            return [], [], 0
        self._frames = len(places[self._video.index])
        rows: list[tuple[int, int, float]] = []
        for stream, spans in places.items():
            if self._container.format.name in ("mpegts", "mpeg"):
                spans[:] = _stretched(spans, self._size)
            due = need_times(shown[stream]).tolist()
            rows += [(start, end, time) for (start, end), time in zip(spans, due, strict=True)]
        ends = max(end for _, end, _ in rows)
        tracks = [s for s in (self._video, self._audio) if s and s.index in places]
        return _with_headers(rows), [places[s.index][0] for s in tracks], ends

    def _header_ranges(
        self, rows: list[tuple[int, int, float]], ends: int
    ) -> list[tuple[int, int]]:
        if self._matroska is not None:
            return list(self._matroska.index)
        if self._mp4 is not None:
            return list(self._mp4.index)
        tail = (ends, self._size) if self._size - ends <= _MAX_TAIL else (0, 0)
        return [(0, min(start for start, _, _ in rows)), tail]

    def _from_cues(self) -> Packets:
        """The index of Matroska names key frames only: all up to the next one is due with it.

        Going up in a straight line between two key frames would be late for every byte of a key
        frame, which is many times as long as the pictures after it. But where key frames are far
        apart, waiting for all up to the next one would be worse: there the line is followed at a
        distance.
        """
        assert self._matroska is not None
        places = np.array([at for _, at in self._matroska.cues], dtype=np.int64)
        times = np.array([time for time, _ in self._matroska.cues]) - self._origin
        # Several tracks, and several frames of one cluster, have entries of their own.
        places, nth = np.unique(places, return_index=True)
        times = need_times(np.minimum.reduceat(times, nth).tolist())
        self._keys = list(zip(times.tolist(), places.tolist(), strict=True))
        cell = cell_bytes_for(self._size)
        starts = np.arange(self._matroska.first_cluster // cell, -(-self._size // cell)) * cell
        before = np.searchsorted(places, starts, side="right") - 1
        step = np.where(before >= 0, times[before], 0.0) - _INTERLEAVE_SECONDS
        end = max((self._container.duration or 0) / 1e6, float(times[-1]))
        line = np.interp(starts, [*places, self._size], [*times, end]) - _KEY_FRAME_SECONDS
        due = np.maximum(np.maximum(step, line), 0.0)
        return Packets(starts, np.minimum(starts + cell, self._size), due)

    def _first_picture(self) -> list[tuple[int, int]]:
        assert self._matroska is not None
        for packet in self._container.demux(self._video):
            if packet.pos is not None and packet.pos >= 0 and packet.size:
                return [(self._matroska.first_cluster, min(packet.pos + packet.size, self._size))]
        return []


def _all_packets(
    container: InputContainer,
) -> Iterator["av.Packet[Any]"]:  # a type only in the stubs: quoted
    """Every packet of the tracks that the container named when it was opened.

    MPEG streams may add tracks on the way. The binding leaves their packets out, but at the very
    end it looks for these tracks in its own list.
    """
    try:
        yield from container.demux()
    except IndexError:
        return


def _stretched(spans: list[tuple[int, int]], size: int) -> list[tuple[int, int]]:
    """Packets of MPEG streams lie in chunks between those of other tracks, up to the next one."""
    nexts = [start for start, _ in spans[1:]] + [size]
    return [(start, max(end, after)) for (start, end), after in zip(spans, nexts, strict=True)]


def _with_headers(rows: list[tuple[int, int, float]]) -> list[tuple[int, int, float]]:
    """The same packets, each with the container's bytes between the one before and itself."""
    rows.sort()
    out: list[tuple[int, int, float]] = []
    before = rows[0][0]
    for start, end, due in rows:
        out.append((min(start, before), end, due))
        before = max(before, end)
    return out
