"""What the main process tells a new worker: the settings, the store, the disks. Pure."""

import dataclasses
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vodserver.errors import ChannelError
from vodserver.settings import ServeSettings
from vodserver.store.held import held_share

__all__ = ["Terms", "share_of"]

_PATHS = {
    each.name for each in dataclasses.fields(ServeSettings) if each.type == Path | None
}  # what JSON has no word for


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """How a worker serves.

    Attributes:
        settings: its own: limits are its share of the server's.
        store: directory of the store.
        disks: where each disk is that a worker can send from, by number.
        bad: replicas known to be bad: folder, extent number, disk number.
    """

    settings: ServeSettings
    store: Path
    disks: Mapping[int, Path]
    bad: frozenset[tuple[str, int, int]]

    def to_json(self) -> dict[str, Any]:
        """As a message carries it."""
        settings = dataclasses.asdict(self.settings)
        return {
            "settings": {
                name: str(value) if isinstance(value, Path) else value
                for name, value in settings.items()
            },
            "store": str(self.store),
            "disks": paths_to_json(self.disks),
            "bad": sorted(self.bad),
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "Terms":
        """Of a message.

        Raises:
            ChannelError: it is no such message.
        """
        try:
            fields: dict[str, Any] = {
                name: Path(value) if name in _PATHS and value is not None else value
                for name, value in values["settings"].items()
            }
            fields["trackers"] = tuple(fields["trackers"])
            return cls(
                settings=ServeSettings(**fields),
                store=Path(values["store"]),
                disks=paths_from_json(values["disks"]),
                bad=frozenset((str(f), int(n), int(disk)) for f, n, disk in values["bad"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise ChannelError("a worker was told no terms to serve on") from error


def paths_to_json(paths: Mapping[int, Path]) -> list[list[Any]]:
    """Disks' directories as a message carries them."""
    return [[number, str(path)] for number, path in paths.items()]


def paths_from_json(values: list[list[Any]]) -> dict[int, Path]:
    """The same, of a message."""
    return {int(number): Path(path) for number, path in values}


def share_of(settings: ServeSettings, workers: int, port: int) -> ServeSettings:
    """The settings of one of so many workers on a port.

    What is a limit of the whole server is divided among them: the kernel deals connections out
    evenly, and nobody needs to be asked for each.
    """
    most = settings.client_connections
    return dataclasses.replace(
        settings,
        port=port,
        http_connections=math.ceil(settings.http_connections / workers),
        client_connections=None if most is None else math.ceil(most / workers),
        held_bytes=held_share(settings.held_bytes, workers),
        egress_rate=None if settings.egress_rate is None else settings.egress_rate / workers,
        workers=1,
    )
