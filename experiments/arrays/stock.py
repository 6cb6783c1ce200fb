"""A store for a real run: films of noise, each extent where the simulator has it."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from experiments.arrays.audience import Audience
from experiments.arrays.scenario import ArrayScenario
from experiments.errors import LabError
from toast.common.errors import ToastError
from toast.common.timemap import TimeMap
from toast.media.probe import MediaInfo
from vodserver.store import add_film, create_store, open_store

__all__ = ["film_name", "make_store"]


def film_name(number: int) -> str:
    """What a film is called, and its title's id."""
    return f"film-{number}"


def make_store(scenario: ArrayScenario, audience: Audience, seed: int, place: Path) -> int:
    """Make a store of an audience's films: the server's own code places them, by the same chance.

    Args:
        scenario: what is played, and how it is placed.
        audience: whose films it gets; its streams have been asked for.
        seed: of the noise.
        place: the folder of the store and its disks.

    Returns:
        The size of an extent.

    Raises:
        LabError: it cannot be made, or lies otherwise than the simulator has it.
    """
    piece = scenario.unit_bytes  # a piece is an extent, and so exactly as long as it should be
    rng, noise = audience.chance_of_places, np.random.default_rng([seed, 8])
    film = place / "film.bin"
    try:
        disks = [place / f"disk{n}" for n in range(len(scenario.disks))]
        create_store(place / "store", disks, allocation=scenario.allocation)
        with open_store(place / "store") as store:
            for number, extents in enumerate(audience.films):
                film.write_bytes(noise.bytes(len(extents) * piece))
                media = _media(len(extents) * piece, len(extents) * scenario.extent_seconds)
                name = film_name(number)
                title = add_film(store, film, name=name, media=media, piece_bytes=piece, rng=rng)
                if title.extent_bytes != piece:
                    raise LabError(f"extents are of {title.extent_bytes} bytes, not {piece}")
                _check(name, [extent.disks for extent in title.extents], extents)
        film.unlink(missing_ok=True)
    except (OSError, ToastError) as error:
        raise LabError(f"the films do not go into a store: {error}") from error
    return piece


def _check(name: str, lies: Sequence[Sequence[int]], should: Sequence[tuple[int, ...]]) -> None:
    if [tuple(disks) for disks in lies] != list(should):
        raise LabError(f"{name} does not lie on the disks that were predicted")


def _media(size: int, seconds: float) -> MediaInfo:
    return MediaInfo("raw", seconds, "noise", None, 0, 0, None, TimeMap.constant(size, seconds))
