"""Where films were left, for `toast play`: a small file in the folder of the films.

It is a comfort and no more: a file that cannot be read or written costs the position, never the
film. The daemon keeps positions of its own.
"""

import contextlib
import json
import math
import os
from pathlib import Path
from typing import Final

__all__ = ["Positions"]

_NAME: Final = ".toast-positions.json"
_MOST_FILMS: Final = 1000
_MOST_BYTES: Final = 1 << 20
_LEAST_SECONDS: Final = 5.0
_END_SHARE: Final = 0.03


class Positions:
    """The positions of the films in a folder.

    Args:
        folder: where the films lie.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / _NAME

    def get(self, film_id: str) -> float:
        """Film time at which a film was left, in seconds; 0 if nothing is known."""
        return self._read().get(film_id, 0.0)

    def put(self, film_id: str, seconds: float, duration: float | None) -> None:
        """Remember where a film is left.

        Its very beginning and its end are forgotten: from there it is watched from the start.

        Args:
            film_id: its info-hash, in hexadecimal digits.
            seconds: film time.
            duration: how long it is; None if that is not known.
        """
        positions = self._read()
        positions.pop(film_id, None)
        at_end = duration is not None and seconds >= duration * (1 - _END_SHARE)
        if seconds >= _LEAST_SECONDS and not at_end:
            positions[film_id] = round(seconds, 3)
        kept = dict(list(positions.items())[-_MOST_FILMS:])
        fresh = self._path.with_name(f"{_NAME}.{os.getpid()}")
        try:
            fresh.write_text(json.dumps(kept), encoding="utf-8")
            fresh.replace(self._path)
        except OSError:
            with contextlib.suppress(OSError):
                fresh.unlink(missing_ok=True)

    def _read(self) -> dict[str, float]:
        try:
            with self._path.open("rb") as file:
                found = json.loads(file.read(_MOST_BYTES))
        except (OSError, ValueError, RecursionError):
            return {}
        if not isinstance(found, dict):
            return {}
        return {
            str(film_id): float(seconds)
            for film_id, seconds in found.items()
            if isinstance(seconds, int | float) and 0 <= seconds < math.inf
        }
