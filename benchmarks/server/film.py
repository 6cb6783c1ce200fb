"""A large film that plays, made in seconds: one small picture again and again, and much padding.

Every picture is the same small H.264 key frame, followed by a filler data unit, which decoders drop
(ITU-T H.264, 7.3.2.7), of random bytes up to the wanted size. So encoding costs nothing, and what
is served cannot be compressed.
"""

import random
from fractions import Fraction
from pathlib import Path
from typing import Final

import av
import numpy as np

__all__ = ["make_large_film"]

_FPS: Final = 25
_RATE: Final = 1_750_000  # bytes per second, 14 Mb/s: an extent of 5 s has 9 MB
_FILLER: Final = b"\x00\x00\x01\x0c"  # start code, nal_unit_type 12
_POOL_BYTES: Final = 8 << 20


def make_large_film(path: Path, film_bytes: int) -> Path:
    """Make a film of about this many bytes; at least a second's worth (1.75 MB)."""
    pictures = max(_FPS, film_bytes * _FPS // _RATE)
    filler = film_bytes // pictures
    rng = random.Random(1)  # noqa: S311 - which bytes is no secret
    # Without zeros, because a unit must not contain a start code.
    pool = np.random.default_rng(1).integers(1, 256, _POOL_BYTES + filler, dtype=np.uint8)
    padding = memoryview(pool.tobytes())
    with av.open(str(path), "w", format="mp4") as film:
        stream = film.add_stream("libx264", rate=_FPS, options={"preset": "ultrafast"})
        stream.width, stream.height, stream.pix_fmt = 320, 180, "yuv420p"
        grey = av.VideoFrame.from_ndarray(np.full((270, 320), 128, np.uint8), "yuv420p")
        picture = b"".join(bytes(unit) for unit in [*stream.encode(grey), *stream.encode(None)])
        for number in range(pictures):
            begin = rng.randrange(_POOL_BYTES)
            packet = av.Packet(picture + _FILLER + padding[begin : begin + filler - len(picture)])
            packet.stream, packet.time_base = stream, Fraction(1, _FPS)
            packet.pts = packet.dts = number
            packet.duration, packet.is_keyframe = 1, True
            film.mux(packet)
    return path
