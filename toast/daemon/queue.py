"""Which films run, which end, and which make room: the rules of the house. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from toast.daemon.errors import QuotaError
from toast.daemon.schedule import Limits

__all__ = ["FilmFacts", "choose_ejected", "choose_running", "is_served_enough"]

_MOST_BARREN = 20
"""Films that may wait in their swarms for somebody who has them: each takes memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilmFacts:
    """What the rules look at in a film.

    Attributes:
        id: its info-hash, hexadecimal.
        priority: higher ones are downloaded first.
        added_at: Unix time; among equal priorities the oldest is first.
        paused: by a person.
        failed: it halted with an error, and a person must look at it.
        watched_now: someone reads it, or did a moment ago.
        complete: every piece is here.
        watched: a viewing came to the end, or nearly.
        behaviour: `download-only`, `streaming` or `seeding`.
        sent_ratio: film bytes sent to peers, over the film's size.
        seeded_seconds: how long it was served since it is complete.
        stored_bytes: what it takes on the disk.
        size_bytes: what it takes when it is complete.
        last_used_at: Unix time at which it was last watched, or completed.
        barren: it has run for a while, and nothing of it comes: nobody has it.
    """

    id: str
    priority: int
    added_at: float
    paused: bool
    failed: bool
    watched_now: bool
    complete: bool
    watched: bool
    behaviour: str
    sent_ratio: float
    seeded_seconds: float
    stored_bytes: int
    size_bytes: int
    last_used_at: float
    barren: bool = False


def is_served_enough(
    film: FilmFacts, *, seed_ratio: float | None, seed_seconds: float | None
) -> bool:
    """Whether a complete film need be served to others no longer.

    Args:
        film: the film.
        seed_ratio: times its size to send; None: without end.
        seed_seconds: how long to serve it; None: without end.
    """
    if film.behaviour == "download-only" or (film.behaviour == "streaming" and film.watched):
        return True
    if seed_ratio is not None and film.sent_ratio >= seed_ratio:
        return True
    return seed_seconds is not None and film.seeded_seconds >= seed_seconds


def choose_running(
    films: Iterable[FilmFacts],
    *,
    most_active: int,
    limits: Limits,
    seed_ratio: float | None,
    seed_seconds: float | None,
) -> frozenset[str]:
    """The films that should be in their swarms now.

    What is watched runs whatever else is said: the film never stops. Then come the downloads, best
    priority first, as many as may run, and every complete film that others may still have. Films of
    which nothing comes go on waiting for somebody, but do not keep others from running.
    """
    running: set[str] = set()
    waiting: list[FilmFacts] = []
    for film in films:
        if film.watched_now:
            running.add(film.id)
        elif film.paused or film.failed:
            continue
        elif film.complete:
            enough = is_served_enough(film, seed_ratio=seed_ratio, seed_seconds=seed_seconds)
            if limits.uploads and not enough:
                running.add(film.id)
        elif limits.downloads:
            waiting.append(film)
    waiting.sort(key=lambda film: (-film.priority, film.added_at, film.id))
    fruitful = [film for film in waiting if not film.barren]
    barren = [film for film in waiting if film.barren]
    running.update(film.id for film in fruitful[:most_active])
    running.update(film.id for film in barren[: _MOST_BARREN if most_active else 0])
    return frozenset(running)


def choose_ejected(
    films: Sequence[FilmFacts], *, needed_bytes: int, quota_bytes: int, eject_watched: bool
) -> tuple[str, ...]:
    """The films to delete so that one more finds room; empty if there is room.

    What a film will take when it is complete counts, not what it takes now: otherwise ten films
    would be let in that cannot all be finished. Only films that are complete, watched and not
    being watched go, the longest unused first.

    Args:
        films: those that are here.
        needed_bytes: size of the new one.
        quota_bytes: most that all may take.
        eject_watched: whether any may go at all.

    Raises:
        QuotaError: there is not room enough even so.
    """
    free = quota_bytes - sum(max(film.size_bytes, film.stored_bytes) for film in films)
    candidates = [film for film in films if film.complete and film.watched and not film.watched_now]
    candidates.sort(key=lambda film: (film.last_used_at, film.id))
    ejected: list[str] = []
    for film in candidates if eject_watched else ():
        if free >= needed_bytes:
            break
        free += max(film.size_bytes, film.stored_bytes)
        ejected.append(film.id)
    if free < needed_bytes:
        raise QuotaError(
            f"this film has {needed_bytes} bytes, and {max(free, 0)} of the quota's {quota_bytes}"
            " are free: remove films, or raise disk_bytes"
        )
    return tuple(ejected)
