"""What is remembered of a film, however the daemon ends. Pure."""

import dataclasses
import json
import math
from dataclasses import dataclass
from typing import Any

from toast.daemon.errors import StateError
from toast.viewer import Behaviour

__all__ = ["FilmRecord"]

_MOST_JSON_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class FilmRecord:
    """One film of the library.

    Attributes:
        id: its info-hash, hexadecimal.
        folder: name of its folder among the films.
        name: its file name.
        size_bytes: its size.
        pieces: how many it has.
        origins: URLs of the whole film at VoD servers.
        trackers: announce URLs.
        added_at: Unix time.
        behaviour: how long it is served to others.
        priority: higher ones are downloaded first.
        paused: by a person.
        position_seconds: where to go on watching.
        watched: whether a viewing came to the end, or nearly.
        completed_at: Unix time at which the last piece came; None while one is missing.
        seeded_seconds: how long it was served since it is complete.
        uploaded_bytes: film bytes sent to peers.
        bytes_from_peers: film bytes received from viewers, in all viewings.
        bytes_from_seed: from the operator's seed.
        bytes_from_origin: from VoD servers, headers included.
        stalls: how often a viewing halted.
        pieces_have: how many pieces were there when it was last looked at.
        duration_seconds: how long it plays; None while that is not known.
        video_codec: FFmpeg's name; None while nothing is known of it.
        audio_codec: the same of its sound; None also where there is no sound.
        width: of the picture, in pixels.
        height: of the picture, in pixels.
        last_used_at: Unix time at which it was last watched, or completed, or added.
        intact: what `fingerprint` said of the file when the daemon left it, complete and checked.
        error: why it halted; None if it did not.
    """

    id: str
    folder: str
    name: str
    size_bytes: int
    pieces: int
    origins: tuple[str, ...]
    trackers: tuple[str, ...]
    added_at: float
    behaviour: str = str(Behaviour.SEEDING)
    priority: int = 0
    paused: bool = False
    position_seconds: float = 0.0
    watched: bool = False
    completed_at: float | None = None
    seeded_seconds: float = 0.0
    uploaded_bytes: int = 0
    bytes_from_peers: int = 0
    bytes_from_seed: int = 0
    bytes_from_origin: int = 0
    stalls: int = 0
    pieces_have: int = 0
    duration_seconds: float | None = None
    video_codec: str | None = None
    audio_codec: str | None = None
    width: int | None = None
    height: int | None = None
    last_used_at: float = 0.0
    intact: str | None = None
    error: str | None = None

    def to_json(self) -> str:
        """As one line of JSON."""
        return json.dumps(dataclasses.asdict(self), allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> "FilmRecord":
        """Read what `to_json` wrote.

        Raises:
            StateError: it is something else.
        """
        if len(text) > _MOST_JSON_BYTES:
            raise StateError("a film's record is larger than any that Toast writes")
        try:
            fields = json.loads(text)
            for name in ("origins", "trackers"):
                fields[name] = tuple(str(url) for url in fields[name])
            record = cls(**fields)
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise StateError(f"a film's record cannot be read ({error})") from error
        record.check()
        return record

    def check(self) -> None:
        """Compare each value with its annotation: a record may come from a damaged disk.

        Raises:
            StateError: one is of another kind.
        """
        for each in dataclasses.fields(self):
            value: Any = getattr(self, each.name)
            kind = each.type.__name__ if isinstance(each.type, type) else str(each.type)
            if not _fits(value, kind):
                raise StateError(f"a film's record is damaged: {each.name} is {value!r:.40}")
        if len(self.id) != 40 or set(self.id) - set("0123456789abcdef"):
            raise StateError(f"a film's record is damaged: its id is {self.id!r:.60}")
        if (
            self.folder != self.folder.strip()
            or "/" in self.folder
            or self.folder in {"", ".", ".."}
        ):
            raise StateError(f"a film's record is damaged: its folder is {self.folder!r:.60}")
        if self.behaviour not in set(Behaviour):
            raise StateError(f"a film's record is damaged: its behaviour is {self.behaviour!r:.40}")


def _fits(value: Any, kind: str) -> bool:
    if value is None:
        return kind.endswith("| None")
    match kind.removesuffix(" | None"):
        case "bool":
            return isinstance(value, bool)
        case "int":
            return isinstance(value, int) and not isinstance(value, bool)
        case "float":
            number = isinstance(value, int | float) and not isinstance(value, bool)
            return number and math.isfinite(value)
        case "str":
            return isinstance(value, str)
        case _:
            return isinstance(value, tuple)
