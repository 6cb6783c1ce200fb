"""Time to the first picture, to the picture after a seek, and what a step back costs: measured.

A start is timed from "open" (the .torrent in hand, programs running, nothing connected) to the last
byte that the first picture needs in the player's hands, for plain HTTP and for Toast alike. Plain
HTTP is the better of two players (`reader.STRATEGIES`), so nothing is won by a clumsy one.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np

from experiments.errors import LabError
from experiments.start.films import LongFilm, Step, steps_to
from experiments.start.house import StartHouse
from experiments.start.reader import STRATEGIES

__all__ = [
    "Distribution",
    "SeekFigures",
    "StartFigures",
    "difference",
    "distribution",
    "measure_decoder",
    "measure_seeks",
    "measure_start",
]

_RESAMPLES: Final = 2000
_BEYOND_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True)
class Distribution:
    """Times of several runs, in seconds, with 95 % intervals from the bootstrap.

    Attributes:
        p50: median.
        p50_interval: where the true median lies.
        p95: 95 in 100 are faster.
        p95_interval: where the true one lies.
        runs: how many.
    """

    p50: float
    p50_interval: tuple[float, float]
    p95: float
    p95_interval: tuple[float, float]
    runs: int


@dataclass(frozen=True, slots=True)
class StartFigures:
    """Starts of one film at one place.

    Attributes:
        film: which kind.
        peers: how many have it all.
        seconds: film time at which it was opened.
        toast: through Toast.
        plain: straight from the server, by the better player.
        player: which one that was.
        extra: median of Toast less median of plain.
        extra_interval: where the true difference lies, 95 %.
        marks: medians of what happened on the way in Toast, seconds from "open".
    """

    film: str
    peers: int
    seconds: float
    toast: Distribution
    plain: Distribution
    player: str
    extra: float
    extra_interval: tuple[float, float]
    marks: dict[str, float]

    def as_json(self) -> dict[str, Any]:
        """For results: plain numbers, times in milliseconds."""
        return dict(_milliseconds(asdict(self)))


@dataclass(frozen=True, slots=True)
class SeekFigures:
    """Seeks in one viewing.

    Attributes:
        seeks: to places that were not there.
        back_bytes: what was downloaded because of a step back.
        back_seconds: how long that took to its picture.
    """

    seeks: Distribution
    back_bytes: int
    back_seconds: float


def distribution(seconds: Sequence[float], seed: int = 0) -> Distribution:
    """What times say, and how sure that is."""
    samples = np.asarray(seconds, dtype=np.float64)
    rng = np.random.default_rng(seed)
    drawn = samples[rng.integers(0, samples.size, (_RESAMPLES, samples.size))]
    bounds = np.quantile(np.quantile(drawn, [0.5, 0.95], axis=1), [0.025, 0.975], axis=1)
    p50, p95 = np.quantile(samples, [0.5, 0.95]).tolist()
    (low50, low95), (high50, high95) = bounds.tolist()
    return Distribution(p50, (low50, high50), p95, (low95, high95), int(samples.size))


def difference(
    ours: Sequence[float], theirs: Sequence[float], seed: int = 0
) -> tuple[float, float]:
    """Where the difference of the medians lies, with 95 % (bootstrap)."""
    rng = np.random.default_rng(seed)
    medians = [
        np.median(np.asarray(each)[rng.integers(0, len(each), (_RESAMPLES, len(each)))], axis=1)
        for each in (ours, theirs)
    ]
    low, high = np.quantile(medians[0] - medians[1], [0.025, 0.975]).tolist()
    return low, high


async def measure_start(
    house: StartHouse, film: LongFilm, *, peers: int, seconds: float, runs: int
) -> StartFigures:
    """Open a film so many times each way, in turn, so that the machine's moods are shared.

    Raises:
        LabError: a viewing failed.
    """
    steps = steps_to(film, seconds)
    plain: dict[str, list[float]] = {strategy: [] for strategy in STRATEGIES}
    toast: list[float] = []
    marks: list[dict[str, float]] = []
    for number in range(runs):
        for strategy, times in plain.items():
            run = await house.run("plain", film, steps=_words(steps), strategy=strategy)
            times.append(_until_picture(run))
        run = await house.run(
            "toast", film, steps=_words(steps), strategy="open", seconds=seconds, seed=number
        )
        toast.append(_until_picture(run))
        marks.append(_marks(run))
    player = min(plain, key=lambda strategy: float(np.median(plain[strategy])))
    best = plain[player]
    return StartFigures(
        film=film.kind,
        peers=peers,
        seconds=round(seconds, 3),
        toast=distribution(toast),
        plain=distribution(best),
        player=player,
        extra=float(np.median(toast) - np.median(best)),
        extra_interval=difference(toast, best),
        marks={
            name: float(np.median([each[name] for each in marks if name in each]))
            for name in marks[0]
        },
    )


async def measure_decoder(
    house: StartHouse, film: LongFilm, *, seconds: float, runs: int
) -> dict[str, float]:
    """Medians of FFmpeg's own time, from its start to its end, to decode one picture each way.

    For Toast it begins with opening the film.

    Raises:
        LabError: FFmpeg failed.
    """
    times: dict[str, list[float]] = {"plain": [], "toast": []}
    for number in range(runs):
        for kind, taken in times.items():
            run = await house.run(
                kind, film, ffmpeg=True, steps=[], strategy="open", seconds=seconds, seed=number
            )
            taken.append(_until_picture(run))
    return {kind: float(np.median(taken)) for kind, taken in times.items()}


async def measure_seeks(
    house: StartHouse, film: LongFilm, *, seeks: int, back_seconds: float = 30.0, seed: int = 1
) -> SeekFigures:
    """Seek about in one viewing, then watch for a while and step back in what was seen.

    Each place is in a part of the film of its own and at least a minute from what was seen, so
    nothing of it can be there.

    Raises:
        LabError: a viewing failed.
    """
    rng = np.random.default_rng(seed)
    parts = (np.arange(seeks) + rng.uniform(0.3, 0.7, seeks)) / (seeks + 1)
    places = rng.permutation(parts) * (film.duration - 120.0) + 60.0
    wanted = [_seek(_frame(film, place), after_seconds=0.3) for place in places.tolist()]
    last = film.duration - 100.0
    begin = _frame(film, last)
    until = _frame(film, last + _BEYOND_SECONDS + back_seconds)
    back = _frame(film, last + _BEYOND_SECONDS)
    wanted.append(_seek(Step("watch", begin.start, until.end), after_seconds=0.3))
    # By then everything is here that is fetched ahead while nobody reads on.
    wanted.append(_seek(back, after_seconds=6.0))
    run = await house.run(
        "toast",
        film,
        steps=_words(steps_to(film, 0.0)),
        strategy="open",
        seconds=0.0,
        seed=seed,
        seeks=wanted,
    )
    *there, _, stepped = run["seeks"]
    if any(each["had"] for each in there) or not stepped["had"]:
        raise LabError("a place to seek to was there already, or the film behind was not")
    received = [
        sum(stepped[when][name] for name in stepped[when] if name.startswith("bytes_from"))
        for when in ("before", "taken")
    ]
    return SeekFigures(
        seeks=distribution([_until_picture(each) for each in there]),
        back_bytes=received[1] - received[0],
        back_seconds=_until_picture(stepped),
    )


def _frame(film: LongFilm, seconds: float) -> Step:
    return steps_to(film, seconds)[-1]


def _seek(step: Step, *, after_seconds: float) -> dict[str, Any]:
    return {"after_seconds": after_seconds, "steps": _words([step]), "strategy": "open"}


def _words(steps: Sequence[Step]) -> list[tuple[str, int, int]]:
    return [(step.name, step.start, step.end) for step in steps]


def _until_picture(run: dict[str, Any]) -> float:
    return float(max(run["reading"]["steps"].values()) - run["opened_at"])


def _marks(run: dict[str, Any]) -> dict[str, float]:
    reading = run["reading"]
    times = {**run["marks"], "connected": reading["connected"], **reading["steps"]}
    times["first_byte"] = reading["first_byte"]
    return {name: time - run["opened_at"] for name, time in times.items()}


def _milliseconds(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            name: each if name in {"seconds", "peers", "runs"} else _milliseconds(each)
            for name, each in value.items()
        }
    if isinstance(value, tuple):
        return tuple(_milliseconds(each) for each in value)
    return round(value * 1e3, 1) if isinstance(value, float) else value
