"""Our own viewer as a client of a run: what `toast watch` runs, in a process that it shares."""

import asyncio
from typing import Any

from experiments.bound import Behaviour
from experiments.real.client import ClientContext
from experiments.real.sharing import is_right, put_link
from experiments.real.wiring import session_settings, viewer_settings
from experiments.swarms.result import ViewerRow
from experiments.swarms.watched import shown_bytes
from toast.policy.playhead import State
from toast.swarm import SwarmSession
from toast.viewer import Viewer, assemble_viewer, resolve_source

__all__ = ["ToastClient"]

_LOOK_SECONDS = 1.0


class ToastClient:
    """One real viewer.

    Args:
        context: what it is given.
    """

    def __init__(self, context: ClientContext) -> None:
        self._context = context
        self._viewer: Viewer | None = None
        self._report: dict[str, Any] | None = None
        self._arrived_at = 0.0
        self._stopped = False
        self._was_right: bool | None = None
        self._sought: list[tuple[float, float]] = []

    async def run(self) -> None:
        """Watch, as `toast watch` does.

        Raises:
            ToastError: the film cannot be watched.
        """
        context, scenario = self._context, self._context.scenario
        loop = asyncio.get_running_loop()
        settings = session_settings(scenario, context.viewer.link, context.listen_host)
        session = SwarmSession(settings)
        try:
            await session.wait_listening()
            source = await resolve_source(context.source, http=context.http, session=session)
            viewer = assemble_viewer(
                source,
                settings=viewer_settings(scenario, context.folder),
                session=session,
                http=context.http,
                rng=context.rng,
            )
            self._arrived_at = loop.time() - context.began_at
            await viewer.open()
            self._viewer = viewer
            if self._stopped:
                viewer.stop()
            await self._watch(viewer, session)
            self._report = await viewer.report()
        finally:
            await session.close()

    async def _watch(self, viewer: Viewer, session: SwarmSession) -> None:
        sharing = asyncio.create_task(self._share(viewer, session))
        try:
            await viewer.run()
        finally:
            sharing.cancel()
            await asyncio.gather(sharing, return_exceptions=True)
        if sharing.done() and not sharing.cancelled():
            sharing.result()

    async def _share(self, viewer: Viewer, session: SwarmSession) -> None:
        """Who seeds for long keeps no copy of its own: see `experiments.real.sharing`."""
        context = self._context
        if context.scenario.behaviour is not Behaviour.SEEDING:
            return
        if context.film is None or context.sha256 is None:
            return
        while not viewer.have.all():  # noqa: ASYNC110 - the viewer is not to be changed for this
            await asyncio.sleep(_LOOK_SECONDS)
        own = context.folder / viewer.metainfo.name
        self._was_right = await asyncio.to_thread(is_right, own, context.sha256)
        if self._was_right:
            put_link(own, context.film)
            for handle in session.native.get_torrents():
                handle.flush_cache()  # closes its files: the memory is free only then

    def stop(self) -> None:
        """End the viewing."""
        self._stopped = True
        if self._viewer is not None:
            self._viewer.stop()

    def seek(self, seconds: float) -> None:
        """Jump to a film time."""
        if self._viewer is None or self.has_played:
            return
        before = self.position_seconds
        self._viewer.report_position(seconds)
        self._sought.append((before, self.position_seconds))

    @property
    def position_seconds(self) -> float:
        """Film time of its playhead."""
        return 0.0 if self._viewer is None else self._viewer.own_position

    @property
    def has_played(self) -> bool:
        """Whether its playhead has reached the end of the film."""
        playhead = None if self._viewer is None else self._viewer.playhead
        return playhead is not None and playhead.state is State.ENDED

    @property
    def received(self) -> tuple[int, int]:
        """Film bytes so far: (from other viewers, from anyone)."""
        if self._viewer is None:
            return 0, 0
        accounts = self._viewer.accounts
        others = accounts.from_seed + accounts.from_origin
        return accounts.from_peers, accounts.from_peers + others

    def row(self) -> ViewerRow:
        """What it came to."""
        report = self._report
        assert report is not None, "it has not ended yet"
        right = self._was_right
        if right is None:
            is_whole = self.has_played and (report["complete"] or not self._sought)
            right = self._context.sha256 in {None, report["sha256"]} or not is_whole
        return ViewerRow(
            number=self._context.viewer.number,
            arrived_at=self._arrived_at,
            departed_at=self._arrived_at + report["presence_seconds"],
            start_seconds=report["start_seconds"],
            stalls=report["stalls"],
            stall_seconds=report["stall_seconds"],
            stalled_at=self._stalled_at(),
            played_bytes=self._played_bytes(),
            bytes_from_peers=report["bytes_from_peers"],
            bytes_from_seed=report["bytes_from_seed"],
            bytes_from_origin=report["bytes_from_origin"],
            bytes_wasted=report["bytes_wasted"],
            bytes_regretted=report["bytes_regretted"],
            bytes_uploaded=report["bytes_uploaded"],
            upload_rate=self._context.viewer.link.upload_rate,
            origin_bytes_by_reason=report["origin_payload_by_reason"],
            is_right=right,
        )

    def _stalled_at(self) -> list[float]:
        playhead = None if self._viewer is None else self._viewer.playhead
        began_at = self._context.began_at
        return [] if playhead is None else [at - began_at for at in playhead.stalled_at]

    def _played_bytes(self) -> int:
        """Distinct bytes that its playhead has passed."""
        assert self._viewer is not None
        timemap = self._viewer.timemap
        if timemap is None:
            return 0
        begins = [0.0, *(to for _, to in self._sought)]
        ends = [*(left for left, _ in self._sought), self.position_seconds]
        if self.has_played:
            ends[-1] = timemap.duration
        return shown_bytes(timemap, zip(begins, ends, strict=True))
