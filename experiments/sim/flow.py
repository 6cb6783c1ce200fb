"""One direction of a connection: requests, and the blocks that answer them, in order.

What was asked cannot be taken back: that is what makes late pieces waste. Requests stand together
in runs of blocks of one piece, half a queue long at most, and the queue is filled up when a run has
been sent. On average it is as long as it should be, and no block is an event of its own.
"""

from collections import deque
from typing import TYPE_CHECKING

from experiments.sim.cut import Cut, lowest
from experiments.sim.links import Transfer
from toast.common.geometry import BLOCK_BYTES

if TYPE_CHECKING:
    from experiments.sim.peer import Peer
    from experiments.sim.viewer import SimViewer

__all__ = ["Flow"]

Run = tuple[int, int, int]
"""A piece, the bits of some of its blocks, and their bytes."""


class Flow(Transfer):
    """What one peer sends another.

    Args:
        source: who sends.
        sink: who asks.
        cut: the film.

    Attributes:
        choked: whether no requests are taken.
        chance: whether that is so by chance (optimistic unchoke).
        run_blocks: how many blocks are asked for together.
        runs: what was asked and not sent, the first one being sent.
        queued_bytes: asked and not come.
        received_bytes: come.
        asked_at: since when something is asked without a break.
        heard_at: when something came last.
    """

    __slots__ = (
        "_blocks",
        "_cut",
        "_sized_for",
        "_slow_start",
        "_target",
        "chance",
        "choked",
        "heard_at",
        "marked",
        "queued_bytes",
        "received_bytes",
        "run_blocks",
        "runs",
        "sink",
        "source",
        "wakes",
    )

    def __init__(self, source: "Peer", sink: "SimViewer", cut: Cut) -> None:
        super().__init__(source.uplink, sink.downlink)
        self.source = source
        self.sink = sink
        self.choked = True
        self.chance = False
        self.runs: deque[Run] = deque()
        self.queued_bytes = 0
        self.received_bytes = 0
        self.heard_at = 0.0
        self.marked = (0.0, 0)
        self.wakes = False
        self._cut = cut
        self._blocks = cut.whole[0].bit_length()
        self._sized_for = 0.0
        self._slow_start = True
        self._target = self.run_blocks = 0

    def room(self) -> int:
        """How many blocks to ask for now, in runs of `run_blocks`."""
        rate = self.rate
        if self._slow_start or (rate != self._sized_for and rate > 0):
            self._size(rate or self._sized_for)
        return self._target - -(-self.queued_bytes // BLOCK_BYTES)

    def _size(self, rate: float) -> None:
        """As long a queue as fits a rate; a new one grows by a block with each that comes."""
        world = self.sink.world.settings
        target = int(self.sink.queue_seconds * rate / BLOCK_BYTES)
        first = world.first_requests + self.received_bytes // BLOCK_BYTES
        self._slow_start = first < target or rate <= 0
        target = min(target, first, world.most_requests) if rate > 0 else first
        self._target = max(target, world.least_requests)
        parts = max(1, round(self._blocks / (self._target * world.run_share)))
        self.run_blocks = -(-self._blocks // parts)
        self._sized_for = rate

    def ask(self, piece: int, blocks: int) -> None:
        """Queue a request."""
        size = self._cut.size(piece, blocks)
        now = self.sink.world.events.now
        if not self.queued_bytes:
            self.heard_at = now
        self.queued_bytes += size
        self.runs.append((piece, blocks, size))
        if not self.active and not self.wakes:
            self.wakes = True
            self.sink.world.events.at(now + self.sink.latency, Flow._begin, self)

    def _begin(self) -> None:
        """The first request has come to a source that was idle."""
        self.wakes = False
        if self.runs and not self.active and not self.choked:
            self.left = float(self.runs[0][2])
            self.uplink.start(self)

    def sent(self) -> bool:
        """A run was sent: the next one, after asking for more."""
        piece, blocks, size = self.runs.popleft()
        surplus = self.left
        self._arrive(piece, blocks, size)
        if not self.active:
            return False  # that was all the sink wanted
        self.sink.ask(self)
        if not self.runs:
            return False
        self.left = self.runs[0][2] + min(surplus, 0.0)
        return True

    def look(self) -> None:
        """Let come what has been sent by now, in whole blocks."""
        if not self.active or not self.runs:
            return
        self.uplink.advance()
        piece, blocks, size = self.runs[0]
        on_the_way = self.rate * self.source.latency
        whole = int((size - self.left - on_the_way) // BLOCK_BYTES)
        if whole <= 0:
            return
        come = lowest(blocks, whole)
        if come == blocks:
            return  # it is over this very moment
        part = self._cut.size(piece, come)
        self.runs[0] = (piece, blocks ^ come, size - part)
        self._receive((piece, come, part))

    def cancel(self) -> None:
        """Choked, or one of the two has left: what was not sent yet will not be."""
        self.look()
        if self.active:
            self.uplink.stop(self)
        runs, self.runs = self.runs, deque()
        for piece, blocks, size in runs:
            self.queued_bytes -= size
            self.sink.reopen(piece, blocks)

    def drop(self, piece: int) -> None:
        """The source has a piece no more: what is asked of it is refused, but for what is sent."""
        kept: deque[Run] = deque()
        for n, run in enumerate(self.runs):
            if run[0] == piece and not (n == 0 and self.active):
                self.queued_bytes -= run[2]
                self.sink.reopen(piece, run[1])
            else:
                kept.append(run)
        self.runs = kept

    def _arrive(self, piece: int, blocks: int, size: int) -> None:
        run = (piece, blocks, size)
        if self.source.latency > 0:
            events = self.sink.world.events
            events.at(events.now + self.source.latency, self._receive, run)
        else:
            self._receive(run)

    def _receive(self, run: Run) -> None:
        piece, blocks, size = run
        self.queued_bytes -= size
        self.received_bytes += size
        self.heard_at = self.sink.world.events.now
        self.sink.receive(self, piece, blocks, size)

    def lately(self, now: float) -> float:
        """Bytes/second that came since this was asked before, a second ago at the least."""
        at, received = self.marked
        elapsed = now - at
        if elapsed >= 1.0:
            self.marked = (now, self.received_bytes)
        return (self.received_bytes - received) / elapsed if elapsed > 0 else 0.0
