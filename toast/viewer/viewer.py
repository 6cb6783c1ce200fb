"""One film being watched.

How a piece travels: the playhead gives each missing piece its due time; the horizon closes the
near ones to peers; the picker ranks the open ones; the swarm turns that into requests. A piece
that would come too late is handed over: the server supplies its missing blocks. Every verified
piece wakes the readers that wait for it at once, and then this loop.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from toast.common.errors import ToastError
from toast.common.timemap import TimeMap
from toast.common.waiting import run_apart
from toast.media import MediaInfo, probe
from toast.origin import OriginClient
from toast.policy.audience import Audience, AudienceSettings, Reader
from toast.policy.budget import OriginBudget
from toast.policy.facts import Facts
from toast.policy.lookahead import create_horizon
from toast.policy.pickers import create_picker
from toast.policy.playhead import Playhead, State
from toast.policy.viewing import ViewingPolicy
from toast.swarm import Block, Counters, FilmSwarm, Metainfo, Snapshot, SwarmSession
from toast.viewer.accounts import Accounts
from toast.viewer.attendance import Attendance, Pace
from toast.viewer.errors import FilmUnavailable, ViewerError, first_error
from toast.viewer.keeping import Keeping
from toast.viewer.neighbourhood import Neighbourhood
from toast.viewer.reader import BlockingFilm
from toast.viewer.reading import Reading
from toast.viewer.reporting import make_progress, make_report
from toast.viewer.settings import Behaviour, ViewerSettings
from toast.viewer.sources import PieceSource
from toast.viewer.supply import Supply
from toast.viewer.uplinks import Lookout
from toast.viewer.wakes import Wakes

__all__ = ["Viewer"]

_PROVISIONAL_RATE = 250_000.0


class Viewer:
    """A viewing of one film in one swarm session.

    Args:
        metainfo: the film.
        session: the libtorrent session to join it to; the caller closes it.
        origin: the client of its VoD server, or None if there is no server.
        neighbourhood: announces to its trackers and chooses neighbours.
        settings: see `ViewerSettings`.
        rng: all randomness of the policies.
        clock: monotonic seconds.
        hashes: the client of the server's file of block hashes, or None.

    Attributes:
        metainfo: as given.
        settings: as given.
        accounts: what came from where.
        sources: uint8[pieces], `PieceSource` of each piece.
        wanted: bool[pieces], what the film is in: everything, unless the torrent holds more.
        reading: verified bytes for whoever waits for them.
        playhead: where the viewing is, once opened.
        timemap: of the film; None while it is not known.
        attendance: the players, once opened.
        media: what its container says; None unless the time map had to be made from it.
    """

    def __init__(
        self,
        metainfo: Metainfo,
        *,
        session: SwarmSession,
        origin: OriginClient | None,
        neighbourhood: Neighbourhood,
        settings: ViewerSettings,
        rng: np.random.Generator,
        clock: Callable[[], float] = time.monotonic,
        hashes: OriginClient | None = None,
        budget: OriginBudget | None = None,
    ) -> None:
        self.metainfo = metainfo
        self.settings = settings
        self.accounts = Accounts()
        self._geometry = metainfo.geometry
        self._session = session
        self._neighbourhood = neighbourhood
        self._rng = rng
        self._clock = clock
        self._lookout = Lookout()
        self._budget = budget or OriginBudget(settings.budget, clock())
        self._keeping = Keeping(metainfo, settings)
        self._file = self._keeping.file
        self.wanted = self._keeping.wanted
        self.sources: NDArray[np.uint8] = np.zeros(self._geometry.pieces, dtype=np.uint8)
        self._wakes = Wakes()
        self._supply = Supply(
            metainfo,
            origin,
            self.accounts,
            clock=clock,
            stuck_seconds=settings.stuck_seconds,
            changed=self._wakes.now,
            hashes=hashes,
            readable=self._more_readable,
        )
        self.reading = Reading(self._geometry, self._file, self._supply, self._wakes.now)
        self._stop = asyncio.Event()
        self._swarm: FilmSwarm | None = None
        self._joining: asyncio.Task[None] | None = None
        self._snapshot: Snapshot | None = None
        self._failure: ViewerError | None = None
        self._arrived_at = self._opened_at = self._left_at = 0.0
        self._final_counters: Counters | None = None
        self.playhead: Playhead | None = None
        self.attendance: Attendance | None = None
        self.timemap: TimeMap | None = metainfo.timemap
        self.media: MediaInfo | None = None

    # -- life ------------------------------------------------------------------------------------

    async def open(
        self, progress: Callable[[int, int], None] | None = None, *, intact: bool = False
    ) -> None:
        """Check what is on disk, unless that is known to be `intact`, and join the swarm.

        Raises:
            ViewerError: the folder cannot be used.
            SwarmError: something other than the film is in its place.
        """
        try:
            self.settings.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ViewerError(
                f"{self.settings.folder} cannot hold films ({error.strerror}): try another --folder"
            ) from error
        found = self.wanted.copy() if intact else await self._keeping.look(progress)
        self.have[:] = found | ~self.wanted
        self._keeping.seen |= found
        self.sources[found] = PieceSource.DISK
        self._opened_at = self._clock()
        self._arrived_at = time.time()
        self._swarm = FilmSwarm(
            self._session,
            self.metainfo,
            folder=self.settings.folder,
            have=found,
            events=self,
            layout=self._keeping.layout,
        )
        self.reading.swarm = self._swarm
        likely = TimeMap.constant(
            self.metainfo.film_bytes, self.metainfo.film_bytes / _PROVISIONAL_RATE
        )
        self._set_timemap(self.timemap or self.metainfo.in_torrent(likely))

    def _set_timemap(self, timemap: TimeMap) -> None:
        self.playhead = Playhead(timemap, self._geometry, self._opened_at)
        by_readers = self.settings.pace is Pace.READERS
        if self.settings.start_seconds > 0:
            start = min(self.settings.start_seconds, timemap.duration)
            self.playhead.seek(self._clock(), start, from_key=by_readers)
        audience = AudienceSettings(
            jump_seconds=self.settings.reader_jump_seconds,
            lead_seconds=self.settings.reader_lead_seconds if by_readers else 0.0,
        )
        self.attendance = Attendance(
            self.playhead,
            Audience(timemap, self._geometry, audience),
            self.settings.pace,
            self._wakes.now,
        )
        self.attendance.audience.sought(self.playhead.position)
        self._policy = ViewingPolicy(
            self._geometry,
            timemap.duration,
            picker=create_picker(self.settings.picker, **self.settings.picker_options),
            horizon=create_horizon(self.settings.horizon, **self.settings.horizon_options),
            buffer=self._keeping.make_buffer(),
            settings=self.settings.viewing,
            rng=self._rng,
            budget=self._budget,
            wanted=self.wanted,
        )
        self._wakes.now()

    async def run(self) -> None:
        """Watch until the behaviour's end, or until `stop` is called; then leave the swarm.

        Raises:
            ViewerError: the film cannot be watched on.
        """
        assert self._swarm is not None, "open first"
        try:
            async with asyncio.TaskGroup() as tasks:
                self._joining = tasks.create_task(self._neighbourhood.run(self, self._swarm))
                if self.timemap is None:
                    tasks.create_task(self._look_into_container())
                if self._keeping.is_limited:
                    tasks.create_task(self._keeping.hash_what_comes(self.reading))
                try:
                    await self._control()
                finally:
                    self._end()
        except BaseExceptionGroup as group:  # not except*: it wraps what is raised inside it
            known, unknown = group.split(ToastError)
            if known is None or unknown is not None:
                raise
            raise first_error(known) from None
        finally:
            await self._supply.close()
            self._leave_swarm()
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        """End the viewing; `run` returns soon after."""
        self._stop.set()
        self._wakes.now()

    def _end(self) -> None:
        """Let go of everyone who waits for something of this viewing."""
        self._tick(self._clock())
        if self._joining is not None:
            self._joining.cancel()
        self.reading.end()

    def _leave_swarm(self) -> None:
        if self._swarm is not None:
            if self._joining is not None:
                self._joining.cancel()
            self._final_counters = self._swarm.counters()
            self._swarm.close()
            self._swarm = self.reading.swarm = None
            self._left_at = self._clock()

    @property
    def have(self) -> NDArray[np.bool_]:
        """bool[pieces], here and verified."""
        return self.reading.have

    async def _control(self) -> None:
        while not self._finished():
            wait = self._step()
            if self._finished():
                return
            await self._wakes.wait(wait, is_hurrying=self._supply.is_hurrying)

    def _finished(self) -> bool:
        if self._stop.is_set() or self._failure is not None:
            return True
        behaviour = self.settings.behaviour
        if behaviour is Behaviour.DOWNLOAD_ONLY and self.have.all() and self._swarm is not None:
            self._leave_swarm()
        assert self.playhead is not None
        ended = self.playhead.state is State.ENDED and self.timemap is not None
        return ended and behaviour is not Behaviour.SEEDING

    def _tick(self, now: float) -> State:
        assert self.playhead is not None
        self.playhead.tick(now, self.have, self._supply.early.verified())
        return self.playhead.state

    def _step(self) -> float:
        """Decide once. Returns how many seconds may pass until the next time, unless woken."""
        self._tick(now := self._clock())
        assert self.playhead is not None
        assert self.attendance is not None
        wait = min(self.attendance.follow(now), self.playhead.next_event(now, self.have))
        if self._swarm is None or self.have.all():
            return max(min(self.settings.rest_seconds, wait), 0.001)
        wait = min(self.settings.refresh_seconds, wait)
        self._swarm.settle(now)
        self._supply.mend(self._swarm)
        snapshot = self._swarm.snapshot()
        facts = self._facts(now, snapshot)
        self._supply.abandon(facts.slack > self.settings.abandon_seconds)
        decision = self._policy.decide(
            facts,
            self._supply.missing_blocks(snapshot.missing),
            asked_of=self._lookout.asked_of,
            first_blocks=self.attendance.awaited_blocks,
        )
        self._eject(decision.eject, self._swarm)
        self.accounts.planned(decision.ranked, top=decision.window)
        self.accounts.refused |= decision.refused
        self._swarm.steer(decision.plan, decision.coming, decision.view)
        self._supply.fetch(decision.orders, self._swarm)
        return max(min(wait, decision.wait_seconds, self._supply.retry_in), 0.001)

    def _eject(self, pieces: NDArray[np.intp], swarm: FilmSwarm) -> None:
        """Make room."""
        swarm.eject(pieces)
        for piece in pieces.tolist():
            self.have[piece] = False
            self.sources[piece] = PieceSource.EJECTED
            self._file.forget(piece)
            self.accounts.piece_lost(piece)
        self.accounts.ejected += pieces.size

    def _facts(self, now: float, snapshot: Snapshot) -> Facts:
        assert self.playhead is not None
        self._snapshot = snapshot
        assert self.attendance is not None
        starting = self.playhead.state is State.STARTING
        slack = self.attendance.audience.slack(
            now, self.playhead.position, self.playhead.slack(now), starting=starting
        )
        for piece in (*self.reading.urgent, *self.reading.in_use):
            slack[piece] = min(slack[piece], 0.0)
        return Facts(
            now=now,
            slack=slack,
            have=self.have.copy(),
            closed=self._supply.closed.copy(),
            availability=snapshot.availability,
            in_flight=snapshot.in_flight,
            down_rate=sum(neighbour.down_rate for neighbour in snapshot.neighbours),
            queued_bytes=sum(neighbour.queued_bytes for neighbour in snapshot.neighbours),
            origin=self._supply.estimate(),
            lead_seconds=self._neighbourhood.lead_seconds(self.playhead.position),
            starting=self.attendance.is_picture_awaited,
            seeking=self.playhead.start_seconds is not None,
            resuming=self.settings.start_seconds > 0,
            paused=self.playhead.state is State.PAUSED,
            uplinks=self._lookout.look(now, snapshot),
            together=self._neighbourhood.together,
            passed=self.playhead.passed(),
        )

    def piece_verified(self, piece: int) -> None:
        """A piece is there: wake who waits for it, then decide anew."""
        self.have[piece] = self._keeping.seen[piece] = True
        self.sources[piece] = self.accounts.source_of(piece)
        data = self._supply.piece_verified(piece)
        if data is not None:  # who waits for it need not wait for the disk
            self._file.remember(piece, data)
        self.accounts.piece_done(piece, self._geometry)
        self.reading.arrived(piece)
        self._wakes.soon()

    def _more_readable(self, piece: int) -> None:
        """Some of a piece is there: while the film runs that leaves nothing to decide."""
        self.reading.arrived(piece)
        runs = self.playhead and self.playhead.state is State.PLAYING
        if not (runs and self._tick(self._clock()) is State.PLAYING):
            self._wakes.soon()

    def piece_failed(self, piece: int) -> None:
        """Some peer lied about a block: all of the piece is fetched anew."""
        self._supply.piece_failed(piece)
        self.accounts.piece_lost(piece)
        self._wakes.now()

    def block_requested(self, block: Block) -> None:
        """Count how well requests follow the plan."""
        self.accounts.block_requested(block)

    def block_arrived(self, block: Block) -> None:
        """Count what came from whom."""
        self.accounts.block_arrived(block, self._geometry)

    def piece_read(self, piece: int, data: bytes) -> None:
        """Take the answer to a read that the file could not satisfy yet."""
        self.reading.piece_read(piece, data)

    def neighbours_changed(self) -> None:
        """Someone came or went."""
        self._neighbourhood.wake()
        self._wakes.now()

    def storage_failed(self, reason: str) -> None:
        """The film cannot be stored: end with a sentence rather than spin."""
        self._failure = ViewerError(
            f"the film cannot be stored in {self.settings.folder}: {reason}; free some space there"
        )
        self._wakes.now()

    def open_reader(self, offset: int) -> Reader | None:
        """A player begins to read somewhere; None while the film's times are not known."""
        if self.timemap is None or self.attendance is None:
            return None
        self._tick(now := self._clock())
        return self.attendance.open(now, offset)

    def reader_waits(self, reader: Reader) -> None:
        """A player wants more than is there."""
        if self.attendance is not None:
            comes = self._supply.closed[self._geometry.piece_of(reader.offset)]
            self.attendance.waits(reader, self._wakes.soon if comes else None)

    def reader_left(self, reader: Reader | None) -> None:
        """A player has left, or reads on elsewhere."""
        if reader is not None and self.attendance is not None:
            self.attendance.close(reader)

    def reader_taken(self, reader: Reader | None, offset: int) -> None:
        """A player has taken the film up to a byte."""
        if reader is not None and self.attendance is not None:
            self.attendance.taken(self._clock(), reader, offset)

    def report_position(self, seconds: float, *, paused: bool = False, rate: float = 1.0) -> None:
        """A player tells where it is; about once a second, and whenever that changes.

        Raises:
            PolicyError: a number that is none.
        """
        if self.timemap is not None and self.attendance is not None:
            self.attendance.report_position(self._clock(), seconds, paused=paused, rate=rate)

    async def _look_into_container(self) -> None:
        """Make the time map from the film itself, for a .torrent that carries none."""
        film = BlockingFilm(self, asyncio.get_running_loop())
        try:
            info = await run_apart(probe, cast("BinaryIO", film))
        except FilmUnavailable:
            if self.reading.is_over:
                return  # ended before enough of it came: that is no error
            raise
        self.media = info
        self._set_timemap(timemap := self.metainfo.in_torrent(info.timemap))
        self.timemap = timemap

    @property
    def own_position(self) -> float:
        """Film time of the playhead, in seconds."""
        return 0.0 if self.playhead is None else self.playhead.position_at(self._clock())

    @property
    def is_announcing_playhead(self) -> bool:
        """Whether the position means anything yet."""
        return self.timemap is not None

    @property
    def need_seconds(self) -> float:
        """How far ahead of us someone must watch to have in time what we will need."""
        return self._policy.need_seconds

    @property
    def film_rate(self) -> float:
        """Bytes of film per second; a guess while its times are not known."""
        if self.timemap is None:
            return _PROVISIONAL_RATE
        return self.metainfo.film_bytes / self.timemap.duration

    def left_bytes(self) -> int:
        """Bytes of the film that are missing, for the tracker."""
        missing = int(np.count_nonzero(~self.have))
        return min(missing * self._geometry.piece_bytes, self.metainfo.film_bytes)

    def transferred(self) -> tuple[int, int]:
        """Payload bytes (sent to peers, received from anyone), for the tracker."""
        counters = self._swarm.counters() if self._swarm is not None else self._final_counters
        assert counters is not None
        received = counters.received_payload + sum(self.accounts.origin_payload.values())
        return counters.sent_payload, received

    def progress(self) -> dict[str, Any]:
        """Where the viewing stands, for people and programs."""
        assert self.playhead is not None
        if self._swarm is not None and self.have.all():  # who needs nothing looks if asked
            self._snapshot = self._swarm.snapshot()
        return make_progress(
            playhead=self.playhead,
            slack=self.playhead.slack(self._clock()),
            have=self.have,
            wanted=self.wanted,
            duration=None if self.timemap is None else self.timemap.duration,
            neighbours=() if self._snapshot is None else self._snapshot.neighbours,
            accounts=self.accounts,
            origin_up=self._supply.up,
            origin_error=self._supply.last_error,
            tracker_error=self._neighbourhood.last_error,
            origin_left_bytes=self._budget.allowance(self._clock()).bytes_left,
            readers=0 if self.attendance is None else self.attendance.audience.readers,
        )

    async def report(self) -> dict[str, Any]:
        """What the viewing came to, once `run` has ended. Hashes the film if it is all here."""
        assert self.playhead is not None
        assert self._final_counters is not None
        return make_report(
            metainfo=self.metainfo,
            playhead=self.playhead,
            accounts=self.accounts,
            counters=self._final_counters,
            upload_cap=self._session.settings.upload_rate,
            presence=(self._opened_at, self._left_at),
            arrived_at=self._arrived_at,
            complete=bool(self._keeping.seen.all()),
            sha256=await self._keeping.sha256(self.have),
        )
