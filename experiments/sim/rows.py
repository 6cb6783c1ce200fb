"""What one viewing came to, as the figures want it."""

from typing import TYPE_CHECKING

from experiments.swarms.result import ViewerRow
from experiments.swarms.watched import shown_bytes

if TYPE_CHECKING:
    from experiments.sim.viewer import SimViewer

__all__ = ["row_of"]


def row_of(viewer: "SimViewer", end: float) -> ViewerRow:
    """The row of a viewer in a run that ends then, seconds."""
    playing, cut = viewer.playing, viewer.world.cut
    viewer.uplink.advance()
    played = shown_bytes(cut.timemap, playing.watched(end))
    stalled = 0.0
    is_over = playing.ended or playing.broken_off
    if not (playing.running or is_over or playing.awaiting):
        stalled = end - playing.halted_at
    return ViewerRow(
        number=viewer.number,
        arrived_at=viewer.who.arrives_seconds,
        departed_at=end if viewer.departed_at is None else viewer.departed_at,
        start_seconds=playing.start_seconds,
        stalls=playing.stalls,
        stall_seconds=playing.stall_seconds + stalled,
        stalled_at=playing.stalled_at,
        played_bytes=played,
        bytes_from_peers=viewer.from_peers,
        bytes_from_seed=viewer.from_seed,
        bytes_from_origin=viewer.from_origin,
        bytes_wasted=viewer.wasted,
        bytes_regretted=viewer.regretted,
        bytes_uploaded=round(viewer.uplink.sent_bytes),
        upload_rate=viewer.uplink.rate,
        origin_bytes_by_reason=dict(sorted(viewer.by_reason.items())),
    )
