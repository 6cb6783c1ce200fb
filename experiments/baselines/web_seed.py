"""Stock libtorrent with the VoD server as a web seed (BEP 19), in the two ways that it streams.

libtorrent takes a web seed for a peer that has everything, and calls it as soon as the film is
begun. Nothing in it asks a web seed less because peers could bring a piece in time, and nothing
limits a web seed alone. So these clients are fast, and dear for the server.
"""

from typing import Any

import libtorrent as lt
import numpy as np
from numpy.typing import NDArray

from experiments.baselines.torrent import TorrentViewer
from experiments.real.client import ClientContext
from experiments.swarms.clients import DeadlineOptions, create_options
from toast.common.geometry import BLOCK_BYTES
from toast.swarm import Metainfo

__all__ = ["DeadlineViewer", "SequentialViewer", "deadlines"]

_TOP, _NORMAL = 7, 4
_REQUEST_SECONDS = 1.0


class _WebSeedViewer(TorrentViewer):
    """A viewer with the server as a web seed.

    libtorrent asks it for up to 16 MiB at once, and its manual says that this should be related to
    the line. Where a line has a cap, a request is for a second of it: of larger ones most is
    brought by peers meanwhile, and comes twice.
    """

    def _settings(self) -> dict[str, Any]:
        rate = self.context.viewer.link.download_rate
        request = {} if rate is None else {"urlseed_max_request_bytes": _request_bytes(rate)}
        return super()._settings() | request

    def _ask_for(self, params: Any, film: Metainfo) -> None:
        params.url_seeds = list(film.origins)


def _request_bytes(rate: float) -> int:
    """The most to ask of a web seed at once, for a line of so many bytes per second."""
    most = int(lt.default_settings()["urlseed_max_request_bytes"])
    return min(most, max(BLOCK_BYTES, round(rate * _REQUEST_SECONDS)))


class SequentialViewer(_WebSeedViewer):
    """Pieces in order (`sequential_download`), and those of the first picture before all others.

    The latter is what clients do that preview films ("download first and last pieces first" of
    qBittorrent): of a film whose index stands at its end nothing can be shown otherwise. Here it is
    known exactly which pieces they are.
    """

    def _ask_for(self, params: Any, film: Metainfo) -> None:
        super()._ask_for(params, film)
        params.flags |= lt.torrent_flags.sequential_download
        needed_at = self.timemap.due_of_pieces(film.geometry)
        params.piece_priorities = np.where(needed_at <= 0, _TOP, _NORMAL).tolist()


class DeadlineViewer(_WebSeedViewer):
    """Deadlines (`set_piece_deadline`) on the next missing pieces: when each will be played.

    libtorrent's own way to stream. As its author advises, neither sequential download nor
    priorities are set beside it (arvidn/libtorrent#84), and the deadlines are enough to fill the
    line (#4408): as soon as a piece has come, the next missing one gets its deadline, so that
    their list is never empty, at which libtorrent would drop what it has asked for. What has no
    deadline comes rarest first in what is left of the line.
    """

    def __init__(self, context: ClientContext) -> None:
        super().__init__(context)
        options = create_options(context.scenario.client, **context.scenario.client_options)
        assert isinstance(options, DeadlineOptions)
        self._options = options
        self._given: set[int] = set()

    def _decide(self, now: float) -> float:
        assert self.playhead is not None
        slack = self.playhead.slack(now)
        for piece, milliseconds in deadlines(slack, self.have, self._options.pieces):
            if piece not in self._given:
                self._given.add(piece)
                self._handle.set_piece_deadline(piece, milliseconds)
        return super()._decide(now)


def deadlines(
    slack: NDArray[np.float64], have: NDArray[np.bool_], pieces: int
) -> list[tuple[int, int]]:
    """The next missing pieces, and the milliseconds until each is to be there.

    Args:
        slack: float64[P], seconds until each is due; +inf behind the playhead.
        have: bool[P], what is here.
        pieces: how many.
    """
    wanted = np.flatnonzero(~have & np.isfinite(slack))
    wanted = wanted[np.argsort(slack[wanted], kind="stable")][:pieces]
    return [(piece, max(0, round(1000 * slack[piece]))) for piece in wanted.tolist()]
