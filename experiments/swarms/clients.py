"""What can be chosen of the clients beside ours, as data. Pure."""

from dataclasses import dataclass
from typing import Final

from experiments.errors import ScenarioError
from toast.common.registry import Registry

__all__ = ["ClientOptions", "DeadlineOptions", "NaiveOptions", "create_options"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientOptions:
    """Of a client at which nothing can be chosen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadlineOptions(ClientOptions):
    """Of the client that gives libtorrent deadlines."""

    pieces: int = 8
    """On so many of the next missing pieces there are deadlines. libtorrent's author calls 2 to 3 s
    of film reasonable: eight pieces of 64 KiB at 2 Mb/s, and more than that of larger ones."""

    def __post_init__(self) -> None:
        _count("pieces", self.pieces)


@dataclass(frozen=True, slots=True, kw_only=True)
class NaiveOptions(ClientOptions):
    """Of the naive client."""

    wanted_pieces: int = 12
    """So many pieces are asked of peers at a time, the next that are missing."""
    give_up_seconds: float = 1.5
    """A piece due sooner is no longer asked of peers."""
    hand_over_seconds: float = 0.3
    """A piece due so soon is fetched from the server."""
    missing_blocks_only: bool = True
    """Fetch only blocks that are not here; otherwise the piece as a whole."""

    def __post_init__(self) -> None:
        _count("wanted_pieces", self.wanted_pieces)
        _at_least("hand_over_seconds", self.hand_over_seconds, 0)
        _at_least("give_up_seconds", self.give_up_seconds, self.hand_over_seconds)
        if not isinstance(self.missing_blocks_only, bool):
            raise ScenarioError("missing_blocks_only must be true or false")


def _count(name: str, value: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ScenarioError(f"{name} is {value!r}, and must be a whole number above 0")


def _at_least(name: str, value: float, least: float) -> None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not (is_number and value >= least):
        raise ScenarioError(f"{name} is {value!r}, and must be at least {least:g}")


_OPTIONS: Final = Registry[ClientOptions]("client", ScenarioError)
_OPTIONS.register("toast", ClientOptions)
_OPTIONS.register("unicast", ClientOptions)
_OPTIONS.register("web-seed-sequential", ClientOptions)
_OPTIONS.register("web-seed-deadlines", DeadlineOptions)
_OPTIONS.register("naive", NaiveOptions)

create_options = _OPTIONS.create
"""The options of a client, by its name in a scenario. Raises `ScenarioError` for what it cannot be
given."""
