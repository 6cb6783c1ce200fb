"""One film being watched: the only place where policy, swarm, origin and media meet."""

from toast.viewer.assembly import assemble_viewer, viewer_http
from toast.viewer.attendance import Pace
from toast.viewer.errors import FilmUnavailable, ViewerError
from toast.viewer.poster import FilmPoster
from toast.viewer.reader import FilmReader
from toast.viewer.settings import Behaviour, ViewerSettings
from toast.viewer.source import Source, fetch_metainfo, resolve_source
from toast.viewer.sources import PieceSource
from toast.viewer.viewer import Viewer

__all__ = [
    "Behaviour",
    "FilmPoster",
    "FilmReader",
    "FilmUnavailable",
    "Pace",
    "PieceSource",
    "Source",
    "Viewer",
    "ViewerError",
    "ViewerSettings",
    "assemble_viewer",
    "fetch_metainfo",
    "resolve_source",
    "viewer_http",
]
