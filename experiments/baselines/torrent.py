"""A viewer in a swarm by stock libtorrent: it finds peers, chokes and asks as it does by itself.

Set is only what every viewer of the laboratory has: a cap that holds on loopback too, an address of
its own, a clock fine enough for even rates, and nothing but tracker and peer exchange to find peers
by. All else is as libtorrent comes.
"""

import asyncio
import hashlib
from abc import abstractmethod
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import libtorrent as lt

from experiments.baselines.giving import Credits, Giver
from experiments.baselines.viewing import Baseline, Receipts
from experiments.errors import LabError
from experiments.real.client import ClientContext
from toast.swarm import Counters, Metainfo, SessionSettings, SwarmSession
from toast.swarm.facts import OPERATOR_PREFIX

__all__ = ["TorrentViewer"]

_FLAGS = lt.torrent_flags
# What our viewers' session changes for the sake of their policies.
_AS_IT_COMES = (
    "auto_sequential",
    "close_redundant_connections",
    "connections_limit",
    "min_reconnect_time",
    "peer_connect_timeout",
    "piece_timeout",
    "request_queue_time",
    "request_timeout",
    "suggest_mode",
    "unchoke_slots_limit",
    "whole_pieces_threshold",
)


class TorrentViewer(Baseline):
    """A viewing with libtorrent; what it wants, and when, is for those who inherit from it."""

    def __init__(self, context: ClientContext) -> None:
        super().__init__(context)
        self._session: SwarmSession | None = None
        self._handle: Any = None
        self._credits: Credits | None = None
        self._servers: set[tuple[str, int | None]] = set()
        self._counters = Counters()

    async def _join(self, film: Metainfo) -> None:
        link = self.context.viewer.link
        self._credits = Credits(film.geometry)
        self._session = SwarmSession(
            SessionSettings(
                listen_host=self.context.listen_host,
                upload_rate=link.upload_rate,
                download_rate=link.download_rate,
            )
        )
        await self._session.wait_listening()
        self._session.native.apply_settings(self._settings())
        if link.upload_rate == 0:
            self._session.limit(upload_rate=0.0, download_rate=link.download_rate)
        self.context.folder.mkdir(parents=True, exist_ok=True)
        params = lt.add_torrent_params()
        params.ti = lt.torrent_info(film.info)
        params.save_path = str(self.context.folder)
        params.flags = _FLAGS.override_web_seeds | _FLAGS.duplicate_is_error
        params.url_seeds = []
        self._ask_for(params, film)
        self._servers = {_address(url) for url in params.url_seeds}
        self._handle = self._session.native.add_torrent(params)
        self._session.register(self._handle, self)

    def _settings(self) -> dict[str, Any]:
        """The settings of libtorrent that are not our viewer's."""
        defaults = lt.default_settings()
        return {name: defaults[name] for name in _AS_IT_COMES}

    @abstractmethod
    def _ask_for(self, params: Any, film: Metainfo) -> None:
        """Say in libtorrent's parameters how the film is to be got."""

    async def _leave(self) -> None:
        if self._handle is not None and self._session is not None:
            self._session.deliver()
            self._counters = self._count()
            self._session.unregister(self._handle)
            self._session.native.remove_torrent(self._handle)
            self._handle = None
        if self._session is not None:
            await self._session.close()

    def _count(self) -> Counters:
        if self._handle is None:
            return self._counters
        status = self._handle.status(0)
        return Counters(
            sent=status.total_upload,
            redundant=status.total_redundant_bytes,
            failed=status.total_failed_bytes,
        )

    def receipts(self) -> Receipts:
        """What it got and gave so far."""
        if self._credits is None:
            return Receipts()
        counters, came = self._count(), self._credits.bytes_of
        return Receipts(
            peers=came[Giver.PEER],
            seed=came[Giver.SEED],
            origin=came[Giver.ORIGIN],
            wasted=counters.redundant + counters.failed,
            uploaded=counters.sent,
        )

    async def _is_film_right(self) -> bool:
        film = self.film
        assert film is not None
        path = self.context.folder / film.info.files().file_path(0)
        return await asyncio.to_thread(_is_right, path, film, self.have.nonzero()[0].tolist())

    # -- libtorrent's alerts -----------------------------------------------------------------------

    def on_alert(self, alert: Any) -> None:
        """Take note of what libtorrent tells."""
        assert self._credits is not None
        match alert:
            case lt.piece_finished_alert():
                self._credits.done(alert.piece_index)
                self._got(alert.piece_index)
            case lt.block_downloading_alert():
                self._credits.asked(alert.piece_index, alert.block_index, self._giver(alert))
            case lt.block_finished_alert():
                if not self.have[alert.piece_index]:
                    self._credits.came(alert.piece_index, alert.block_index, self._giver(alert))
            case lt.hash_failed_alert():
                self._credits.lost(alert.piece_index)
                self._failed(alert.piece_index)
            case lt.torrent_checked_alert():
                self._checked()
            case lt.file_error_alert() | lt.torrent_error_alert():
                self._fail(LabError(f"the film cannot be stored: {alert.error.message()}"))

    def _checked(self) -> None:
        """Libtorrent has looked at its files, and takes pieces from now on."""

    def _failed(self, piece: int) -> None:
        """A piece was wrong; libtorrent gets it anew."""

    def _giver(self, alert: Any) -> Giver:
        host, port = alert.endpoint
        if port == 0 or (str(host), port) in self._servers:  # 0: put in its place by us
            return Giver.ORIGIN
        if alert.pid.to_bytes().startswith(OPERATOR_PREFIX):
            return Giver.SEED
        return Giver.PEER


def _address(url: str) -> tuple[str, int | None]:
    parts = urlsplit(url)
    return parts.hostname or "", parts.port


def _is_right(path: Path, film: Metainfo, pieces: list[int]) -> bool:
    """Whether these pieces of a file are the film's."""
    geometry = film.geometry
    if not pieces:
        return True
    with path.open("rb") as file:
        for piece in pieces:
            file.seek(geometry.piece_start(piece))
            data = file.read(geometry.piece_size(piece))
            if hashlib.sha1(data, usedforsecurity=False).digest() != film.piece_hashes[piece]:
                return False
    return True
