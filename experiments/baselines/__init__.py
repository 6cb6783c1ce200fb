"""What a person would use instead: plain HTTP, stock libtorrent, and a naive client of our own.

They watch the same film from the same server and tracker, under the same caps, and their playhead
is ours, so that a stall is a stall.
"""

from experiments.baselines.create import create_baseline

__all__ = ["create_baseline"]
