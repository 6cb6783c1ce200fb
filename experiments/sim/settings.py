"""Numbers of the world around the viewers: those of libtorrent, of the tracker and of the lab."""

from dataclasses import dataclass
from typing import Self

__all__ = ["SimSettings"]

_CLOSE_LOOK = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SimSettings:
    """How the world behaves, and how closely it is looked at. Times in seconds."""

    refresh_seconds: float = 1.0
    """Longest time between two decisions of a viewer that misses pieces (the real one's: 1.0)."""
    gather_seconds: float = 0.25
    """Events that come closer together than this lead to one decision, unless a picture waits or
    the server must be asked at a certain moment. Deciding is most of what a simulation costs."""
    least_seconds: float = 0.02
    """Two decisions of one viewer are never closer together."""
    choose_seconds: float = 1.0
    """How often neighbours are chosen by one to whom nobody sends."""
    rest_seconds: float = 10.0
    """The same for one who is sent something: the policies do not leave who sends. Each event leads
    to a choice, too. The real viewer chooses once a second in any case."""
    stale_seconds: float = 0.0
    """A position that is told, or chosen by, is that of a look at the playhead so long ago at the
    most. The real viewer tells where it is at that moment."""
    stale_complete_seconds: float = 0.0
    """The same for a viewer that has everything."""
    announce_seconds: float = 30.0
    """The tracker's interval."""
    lonely_seconds: float = 5.0
    """The same for a viewer without neighbours."""
    answer_peers: int = 50
    """Most peers in an answer of the tracker."""
    known_seconds: float = 90.0
    """Whom no tracker has named for so long is forgotten."""
    patience_seconds: float = 1.0
    """How long a newcomer waits for neighbours before it gives up hope in them."""
    connect_seconds: float = 2.5
    """Who has not answered by then is not there; until then there is hope."""
    eager_seconds: float = 0.4
    """Who has not answered by then is not relied on."""
    retry_seconds: float = 30.0
    """Until somebody who was not there is called again."""
    dial_seconds: float = 1.0
    """libtorrent opens connections once in so long, but for those of the very first moment."""
    exchange_seconds: float = 60.0
    """How often neighbours tell each other of others, where peer exchange is on."""
    unchoke_seconds: float = 15.0
    """From one round of choking to the next: libtorrent's default."""
    optimistic_rounds: int = 2
    """Rounds that somebody unchoked by chance stays so."""
    optimistic_share: float = 0.2
    """Share of the slots that is given by chance: one at least."""
    first_requests: int = 4
    """Blocks asked of a new neighbour at once; one more for each that comes (slow start)."""
    least_requests: int = 2
    """Blocks in a request queue at the least."""
    most_requests: int = 500
    """Blocks in a request queue at the most."""
    run_share: float = 0.5
    """Blocks that are asked for together, and come as one event, as a share of a request queue."""
    server_seconds: float = 0.002
    """From a request's arrival at the VoD server to the first byte of its answer."""
    line_rate: float = 125e6
    """Most that one answer of the VoD server gets, bytes/second: a gigabit line."""
    patience_factor: float = 4.0
    """A run is ended after so many times its length, whoever still waits for pictures."""

    @classmethod
    def fitting(cls, viewers: int, pieces: int) -> Self:
        """So close a look as the size of a run allows.

        A decision costs more than all that a viewer does with a few pieces. In a large run viewers
        decide when a picture waits, when the server must be asked and when their neighbours change,
        and else every 3 s. What a viewer plans to ask for lasts no longer than some 4 s: looked at
        every 5 s, its neighbours idle, and 90 viewers of half an hour lose 10 points of offload.

        Args:
            viewers: how many watch.
            pieces: how many the film has.
        """
        if viewers * pieces <= _CLOSE_LOOK:
            return cls()
        return cls(refresh_seconds=3.0, gather_seconds=3.0, rest_seconds=30.0, run_share=1.0)
