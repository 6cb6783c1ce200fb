"""The films of a daemon: added, removed, started and stopped by the rules of the house."""

import asyncio
import contextlib
import shutil
import time
from collections.abc import Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from datetime import tzinfo
from typing import Any, TypeVar

import aiohttp
import numpy as np

from toast.common.errors import ToastError
from toast.common.waiting import wait_event
from toast.daemon.checks import check_behaviour, read_changes
from toast.daemon.consumption import Consumption
from toast.daemon.errors import DaemonError, NoSuchFilm, QuotaError, RequestError, StateError
from toast.daemon.film import Film
from toast.daemon.folders import folder_name, stored_bytes
from toast.daemon.house import House
from toast.daemon.queue import choose_ejected, choose_running
from toast.daemon.record import FilmRecord
from toast.daemon.schedule import Limits, Schedule
from toast.daemon.settings import DaemonSettings, RuleSettings, change_rules
from toast.daemon.state import State
from toast.swarm import SwarmSession, parse_metainfo
from toast.viewer import Source, resolve_source

__all__ = ["MODES", "Library"]

T = TypeVar("T")

MODES: Mapping[str, int] = {"watch": 1, "download": 0, "queue": -1}
"""How a film may be added, and the priority that it gets."""

_MOST_RESOLVING = 4
_STORED_SECONDS = 5.0
_MOST_SOURCE_CHARACTERS = 8192
_MOST_NOTICES = 20


class Library:
    """All films. Made by `open_library`; `run` must be running for anything to happen.

    Args:
        state: what is remembered.
        settings: fixed ones.
        session: the one libtorrent session of all films.
        http: for origins, trackers and .torrents.
        zone: of the wall clock that days and schedules go by.
        wall: Unix time.

    Attributes:
        rules: those in force.
        consumption: what was sent and asked for of late.
        notices: what a person should know.
        looked_at: monotonic time of the last look at the films.
    """

    def __init__(
        self,
        state: State,
        settings: DaemonSettings,
        *,
        session: SwarmSession,
        http: aiohttp.ClientSession,
        zone: tzinfo,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.settings = settings
        self.rules = RuleSettings()
        self.notices: list[str] = [] if state.notice is None else [state.notice]
        self._state = state
        self._session = session
        self._http = http
        self._zone = zone
        self._wall = wall
        self._films: dict[str, Film] = {}
        self._adding: set[str] = set()
        self._resolving = 0
        self._wake = asyncio.Event()
        self._listeners: list[Callable[[str, dict[str, Any]], None]] = []
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="state")
        self._kept_at = 0.0
        self.looked_at = time.monotonic()
        self._measured_at = -_STORED_SECONDS
        self._schedule = Schedule.parse("")
        self._limits: Limits | None = None
        self.films_folder = settings.films or settings.state / "films"
        self._tasks: set[asyncio.Task[None]] = set()
        loop = asyncio.get_running_loop()
        self.consumption = Consumption(None, zone=zone, wall=wall, clock=loop.time)
        self._house = House(
            session=session,
            http=http,
            films=self.films_folder,
            load_torrent=state.torrent,
            checking=asyncio.Lock(),
            linger_seconds=settings.linger_seconds,
            budget=self.consumption.budget,
            rng=np.random.default_rng(),
            changed=self._wake.set,
        )

    # -- what there is ---------------------------------------------------------------------------

    def get(self, film_id: str, /) -> Film | None:
        """The film of this id, or None."""
        return self._films.get(film_id)

    def film(self, film_id: str) -> Film:
        """The film of this id.

        Raises:
            NoSuchFilm: there is none.
        """
        film = self._films.get(film_id)
        if film is None:
            raise NoSuchFilm("there is no such film here")
        return film

    def films(self) -> list[Film]:
        """All films, in the order in which they came."""
        return list(self._films.values())

    @property
    def limits(self) -> Limits:
        """What the schedule allows now."""
        return self._schedule.at(self._wall(), self._zone)

    def next_change(self) -> float | None:
        """Unix time at which the schedule allows something else; None if not within a week."""
        return self._schedule.next_change(self._wall(), self._zone)

    def disk(self) -> dict[str, int | None]:
        """Bytes used by films, the quota, and what the disk has left."""
        try:
            free = shutil.disk_usage(self.films_folder).free
        except OSError:
            free = 0
        used = sum(film.stored_bytes for film in self._films.values())
        return {"used_bytes": used, "quota_bytes": self.rules.disk_bytes, "free_bytes": free}

    # -- life ------------------------------------------------------------------------------------

    async def open(self, changes: Mapping[str, Any] | None = None) -> None:
        """Take up what is remembered.

        Args:
            changes: rules given at the start; they win over the remembered ones.

        Raises:
            StateError: the folder of films cannot be used.
        """
        try:
            self.films_folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StateError(
                f"{self.films_folder} cannot hold films ({error.strerror}): name another --films"
            ) from error
        kept = await self._write(self._state.fact, "consumption")
        loop = asyncio.get_running_loop()
        self.consumption = Consumption(kept, zone=self._zone, wall=self._wall, clock=loop.time)
        self._house = replace(self._house, budget=self.consumption.budget)
        remembered = await self._write(self._state.fact, "rules") or {}
        known = {name: value for name, value in remembered.items() if hasattr(self.rules, name)}
        rules = change_rules(RuleSettings(), known)
        self._use_rules(change_rules(rules, changes or {}))
        for record in await self._write(self._state.films):
            self._films[record.id] = Film(record, self._house)
        await self._take_up_strays()
        await self._finish_removals()

    async def _take_up_strays(self) -> None:
        """Films whose .torrent is here but who are not in the database.

        After damage they are the library; otherwise they were never committed, or were removed.
        """
        taken = 0
        for film_id in await self._write(self._state.torrents):
            if film_id in self._films:
                continue
            if self._state.notice is None:
                await self._write(self._state.drop_torrent, film_id)
                continue
            with contextlib.suppress(ToastError):  # a .torrent that is damaged too
                data = await self._write(self._state.torrent, film_id)
                metainfo = parse_metainfo(data)
                record = self._record(Source(metainfo, metainfo.origins, metainfo.trackers))
                # Whoever has all of it should not seem to have nothing: it is looked at first.
                await self._write(self._state.put, [record])
                self._films[record.id] = Film(record, self._house)
                taken += 1
        if self._state.notice is not None:
            self.notice(
                f"{taken} films were found by their .torrents; their pieces are checked again"
            )

    async def _finish_removals(self) -> None:
        """Delete folders whose film was removed, if the daemon was killed before it was done."""
        for name in await self._write(self._state.doomed):
            await self._delete_folder(name)

    async def run(self) -> None:
        """Keep to the rules until cancelled; then stop every film and write down how it stands."""
        try:
            while True:
                await self._look()
                await wait_event(self._wake, self._pause())
        finally:
            await asyncio.gather(*(film.stop() for film in self._films.values()))
            await self._keep(force=True)

    async def close(self) -> None:
        """Let every film and the last write end; nothing may be asked of the library any more."""
        await asyncio.gather(*(film.stop() for film in self._films.values()))
        await asyncio.to_thread(self._writer.shutdown)

    def _pause(self) -> float:
        busy = any(film.is_busy for film in self._films.values())
        return self.settings.refresh_seconds if busy else self.settings.idle_refresh_seconds

    async def _look(self) -> None:
        """Look at everything once, and act."""
        self.looked_at = time.monotonic()
        now = self._wall()
        self._count(now)
        self._limit()
        films = list(self._films.values())
        limits = self.limits
        wanted = choose_running(
            [film.facts(now) for film in films],
            most_active=self.rules.most_active,
            limits=limits,
            seed_ratio=self.rules.seed_ratio,
            seed_seconds=self.rules.seed_seconds,
        )
        for film in films:
            if film.id in wanted:
                film.start()
            elif film.is_running and not film.is_stopping:
                # Not waited for: one that leaves slowly must not keep the others waiting.
                self._spawn(film.stop())
        for film in films:
            film.pace()
        await self._measure()
        await self._keep()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _count(self, now: float) -> None:
        for film in self._films.values():
            self.consumption.sent(film.collect(now))

    def _limit(self) -> None:
        """Bring the session to what rules, schedule and the day's budget allow."""
        scheduled, rules = self.limits, self.rules
        spent = (
            rules.upload_day_bytes is not None
            and self.consumption.uploaded_bytes >= rules.upload_day_bytes
        )
        limits = Limits(
            upload_rate=_least(rules.upload_rate, scheduled.upload_rate),
            download_rate=_least(rules.download_rate, scheduled.download_rate),
            uploads=scheduled.uploads and not spent,
            downloads=scheduled.downloads,
        )
        if limits != self._limits:
            self._limits = limits
            self._session.limit(
                upload_rate=limits.upload_rate if limits.uploads else 0.0,
                download_rate=limits.download_rate,
            )

    async def _measure(self) -> None:
        """Look how much the films take on the disk, now and then."""
        now = time.monotonic()
        if now - self._measured_at < _STORED_SECONDS:
            return
        first = self._measured_at < 0
        self._measured_at = now
        films = [film for film in self._films.values() if first or film.is_busy or film.is_new]
        sizes = await asyncio.to_thread(lambda: [stored_bytes(film.folder) for film in films])
        for film, size in zip(films, sizes, strict=True):
            film.stored_bytes = size
            film.is_new = False

    async def _keep(self, *, force: bool = False) -> None:
        """Write down what has changed, now and then."""
        now = time.monotonic()
        if not force and now - self._kept_at < self.settings.keep_seconds:
            return
        dirty = [film for film in self._films.values() if film.is_dirty or film.is_busy]
        if not dirty and not force:
            return
        self._kept_at = now
        for film in dirty:
            film.is_dirty = False
        try:
            await self._write(self._state.put, [film.record for film in dirty])
            await self._write(self._state.put_fact, "consumption", self.consumption.export())
        except StateError as error:  # films go on; what could not be written is tried again
            for film in dirty:
                film.is_dirty = True
            self.notice(str(error))

    async def _write(self, work: Callable[..., T], *arguments: Any) -> T:
        """Do something with the state, in the one thread that may."""
        return await asyncio.get_running_loop().run_in_executor(self._writer, work, *arguments)

    # -- orders ----------------------------------------------------------------------------------

    async def add(
        self, source: str | bytes, *, mode: str = "download", behaviour: str | None = None
    ) -> Film:
        """Take a film in. When this returns it is on the disk that there is one.

        Args:
            source: URL of a title or of a .torrent, magnet link, path of a .torrent; or a .torrent.
            mode: see `MODES`.
            behaviour: how long to serve it to others; by default as the rules say.

        Raises:
            RequestError: an argument makes no sense.
            QuotaError: there is no room for it.
            DaemonError: it is here already.
            ToastError: the source cannot be had, or is no film.
        """
        if mode not in MODES:
            raise RequestError(f"mode must be one of {', '.join(MODES)}")
        if behaviour is not None:
            check_behaviour(behaviour)
        self._require_room_for_one()
        found, torrent = await self._resolve(source)
        film_id = found.metainfo.info_hash.hex()
        if film_id in self._films or film_id in self._adding:
            raise DaemonError(f"{found.metainfo.name} is here already")
        self._require_room_for_one()
        self._adding.add(film_id)
        try:
            await self._make_room(found.metainfo.film_bytes)
            record = replace(
                self._record(found),
                behaviour=behaviour or self.rules.behaviour,
                priority=MODES[mode],
            )
            await self._write(self._state.add, record, torrent)
            film = self._films[film_id] = Film(record, self._house)
        finally:
            self._adding.discard(film_id)
        if mode == "watch":
            film.touch()
        self._wake.set()
        return film

    def _require_room_for_one(self) -> None:
        if len(self._films) + len(self._adding) >= self.settings.most_films:
            raise QuotaError(f"{self.settings.most_films} films are here already: remove some")

    async def _resolve(self, source: str | bytes) -> tuple[Source, bytes]:
        if isinstance(source, bytes):
            metainfo = await asyncio.to_thread(parse_metainfo, source)
            return Source(metainfo, metainfo.origins, metainfo.trackers), source
        if not source or len(source) > _MOST_SOURCE_CHARACTERS or "\0" in source:
            raise RequestError("source must name a film: a URL, a magnet link or a .torrent")
        if self._resolving >= _MOST_RESOLVING:
            raise DaemonError("other films are just being looked up: try again in a moment")
        self._resolving += 1
        try:
            found = await resolve_source(source, http=self._http, session=self._session)
        finally:
            self._resolving -= 1
        return found, found.metainfo.torrent

    def _record(self, source: Source) -> FilmRecord:
        metainfo = source.metainfo
        findable = metainfo.discoverable and self._session.settings.discovers
        if not (source.origins or source.trackers or findable):
            raise RequestError("this film names neither a VoD server nor a tracker")
        return FilmRecord(
            id=metainfo.info_hash.hex(),
            folder=folder_name(metainfo),
            name=metainfo.name,
            size_bytes=metainfo.film_bytes,
            pieces=int(metainfo.wanted().sum()),
            origins=source.origins,
            trackers=source.trackers,
            added_at=self._wall(),
            last_used_at=self._wall(),
            duration_seconds=None if metainfo.timemap is None else metainfo.timemap.duration,
        )

    async def _make_room(self, needed_bytes: int) -> None:
        quota = self.rules.disk_bytes
        if quota is None:
            return
        ejected = choose_ejected(
            [film.facts(self._wall()) for film in self._films.values()],
            needed_bytes=needed_bytes,
            quota_bytes=quota,
            eject_watched=self.rules.eject_watched,
        )
        for film_id in ejected:
            self.notice(f"{self._films[film_id].film_name} was watched and made room")
            await self.remove(film_id, data=True)

    async def remove(self, film_id: str, *, data: bool = False) -> None:
        """Let a film go. When this returns it is on the disk that it is gone.

        Args:
            film_id: its id.
            data: whether its files go too; they go even if the daemon is killed meanwhile.

        Raises:
            NoSuchFilm: there is none.
        """
        film = self.film(film_id)
        del self._films[film_id]
        film.is_removed = True
        await self._write(self._state.remove, film_id, film.folder.name if data else None)
        await film.stop()
        if data:
            await self._delete_folder(film.folder.name)
        self.tell("removed", {"id": film_id})
        self._wake.set()

    async def _delete_folder(self, name: str) -> None:
        if not any(film.folder.name == name for film in self._films.values()):
            await asyncio.to_thread(shutil.rmtree, self.films_folder / name, ignore_errors=True)
        await self._write(self._state.forget_doomed, name)

    async def change(self, film_id: str, changes: Mapping[str, Any]) -> Film:
        """Change a film: `paused`, `behaviour`, `priority`, `position_seconds`.

        Raises:
            NoSuchFilm: there is none.
            RequestError: an unknown name, or a value that makes no sense.
        """
        film = self.film(film_id)
        fields = read_changes(changes)
        film.change(**fields)
        if fields.get("paused"):
            film.forget_watching()
        film.is_dirty = False
        await self._write(self._state.put, [film.record])
        self._wake.set()
        return film

    async def change_rules(self, changes: Mapping[str, Any]) -> RuleSettings:
        """Change the rules, and remember them.

        Raises:
            RequestError: an unknown name, or a value that makes no sense.
        """
        rules = change_rules(self.rules, changes)
        await self._write(self._state.put_fact, "rules", asdict(rules))
        self._use_rules(rules)
        self._wake.set()
        return rules

    def shown_rules(self) -> dict[str, Any]:
        """The rules as the API shows them."""
        return asdict(self.rules)

    def _use_rules(self, rules: RuleSettings) -> None:
        self.rules = rules
        self._schedule = Schedule.parse(rules.schedule)
        self.consumption.use(rules)

    # -- telling ---------------------------------------------------------------------------------

    def notice(self, line: str) -> None:
        """Keep a line that a person should read, unless the last one says the same."""
        if self.notices[-1:] != [line]:
            self.notices.append(line)
            del self.notices[:-_MOST_NOTICES]

    def listen(self, listener: Callable[[str, dict[str, Any]], None]) -> None:
        """Call `listener(event, data)` for what cannot be seen by looking: removals."""
        self._listeners.append(listener)

    def tell(self, event: str, data: dict[str, Any]) -> None:
        """Tell everyone who listens."""
        for listener in self._listeners:
            listener(event, data)


def _least(*rates: float | None) -> float | None:
    return min((rate for rate in rates if rate is not None), default=None)
