"""The libtorrent adapter: one session, films in it, steering, and the announcer.

Nothing here decides what to download: plans come from `toast.policy` and leave as priorities;
alerts come back as events. Nothing else in the project imports libtorrent for downloading.
"""

from toast.swarm.announcer import Announcer, Peer
from toast.swarm.contents import Contents, TorrentFile
from toast.swarm.errors import MetainfoError, SwarmError
from toast.swarm.facts import Block, Counters, Neighbour, Snapshot, SwarmEvents
from toast.swarm.film import FilmSwarm
from toast.swarm.layout import Layout
from toast.swarm.metainfo import Metainfo, file_url, parse_metainfo
from toast.swarm.session import ANY_HOST, SessionSettings, SwarmSession, Utp
from toast.swarm.storage import FilmFile

__all__ = [
    "ANY_HOST",
    "Announcer",
    "Block",
    "Contents",
    "Counters",
    "FilmFile",
    "FilmSwarm",
    "Layout",
    "Metainfo",
    "MetainfoError",
    "Neighbour",
    "Peer",
    "SessionSettings",
    "Snapshot",
    "SwarmError",
    "SwarmEvents",
    "SwarmSession",
    "TorrentFile",
    "Utp",
    "file_url",
    "parse_metainfo",
]
