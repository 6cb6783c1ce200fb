"""Peers that no viewer wants to meet, on real sockets.

They speak BEP 3 and nothing else, claim to have the whole film, and then are slow, fall silent,
lie, or vanish. Written apart from the viewer and from libtorrent, so that what they do to a viewer
is theirs and not a fault that both share.
"""

from experiments.adversaries.conducts import Conduct, Poisoner, conduct_names, create_conduct
from experiments.adversaries.crowd import Churn, Crowd
from experiments.adversaries.peer import Peer, SharedFilm

__all__ = [
    "Churn",
    "Conduct",
    "Crowd",
    "Peer",
    "Poisoner",
    "SharedFilm",
    "conduct_names",
    "create_conduct",
]
