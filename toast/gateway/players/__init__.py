"""Players of this machine that are opened with a film: mpv, VLC, ffplay, or any command."""

from toast.gateway.players.base import Listener, Opening, Player, SideTrack
from toast.gateway.players.choose import AUTO, choose_player, find_player
from toast.gateway.players.errors import PlayerError

__all__ = [
    "AUTO",
    "Listener",
    "Opening",
    "Player",
    "PlayerError",
    "SideTrack",
    "choose_player",
    "find_player",
]
