"""The film of a scenario: bytes that nothing can make smaller, in a store like the server's."""

import hashlib
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from experiments.errors import LabError
from experiments.swarms.scenario import Scenario
from toast.common.errors import ToastError
from toast.common.timemap import TimeMap
from toast.media import MediaInfo, probe
from vodserver.store import create_store, open_store
from vodserver.store.ingest import add_film

__all__ = ["LabFilm", "fitted", "make_lab_film", "store_film"]

_CHUNK_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class LabFilm:
    """A film on the disk.

    Attributes:
        path: where.
        sha256: of all of it, hexadecimal.
        media: what it is.
    """

    path: Path
    sha256: str
    media: MediaInfo


def fitted(scenario: Scenario) -> Scenario:
    """The same scenario, with size and length of its own film if it names one.

    Raises:
        MediaError: that is no film.
    """
    film = scenario.film
    if film.file is None:
        return scenario
    media = probe(film.file)
    rate = media.timemap.film_bytes / media.duration
    kind = type(film)
    return scenario.with_(
        film=kind(
            bit_rate_bps=rate * 8,
            duration_seconds=media.duration,
            piece_bytes=film.piece_bytes,
            file=film.file,
        )
    )


def make_lab_film(scenario: Scenario, folder: Path) -> LabFilm:
    """The film of a scenario: its own, or noise of constant bit rate, of exactly its size.

    Raises:
        LabError: it cannot be read or written.
        MediaError: the scenario's own is no film.
    """
    film = scenario.film
    try:
        if film.file is not None:
            # A copy: viewers may share it, and nobody may touch the original.
            path = Path(shutil.copy(film.file, folder / film.file.name))
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            return LabFilm(path, digest, probe(path))
        path = folder / "film.bin"
        sha256 = _write_noise(path, film.film_bytes, seed=scenario.random_seed)
    except OSError as error:
        raise LabError(f"the film cannot be had in {folder}: {error.strerror}") from error
    timemap = TimeMap.constant(film.film_bytes, film.duration_seconds)
    media = MediaInfo("raw", film.duration_seconds, "noise", None, 0, 0, None, timemap)
    return LabFilm(path, sha256, media)


def _write_noise(path: Path, size: int, *, seed: int) -> str:
    rng = np.random.default_rng(seed)
    digest = hashlib.sha256()
    with path.open("wb") as file:
        for start in range(0, size, _CHUNK_BYTES):
            data = rng.bytes(min(_CHUNK_BYTES, size - start))
            digest.update(data)
            file.write(data)
    return digest.hexdigest()


def store_film(film: LabFilm, folder: Path, piece_bytes: int) -> Path:
    """Make a store with this film in it, cut into pieces of this size. Blocking.

    Returns:
        The store's directory.

    Raises:
        LabError: it does not go in.
    """
    path = folder / "store"
    try:
        create_store(path, [folder / "disk"], allocation="naive")
        with open_store(path) as store:
            add_film(store, film.path, name="film", media=film.media, piece_bytes=piece_bytes)
    except ToastError as error:
        raise LabError(f"the film does not go into the store: {error}") from error
    return path
