"""Resident memory of swarms, for each peer: `memory.py PEERS PEERS_PER_SWARM`, as JSON."""

import json
import sys
from pathlib import Path
from resource import getpagesize

import numpy as np

from tracker.messages import Event
from tracker.settings import TrackerSettings
from tracker.state import Swarms

FIRST_ADDRESS = 0x0B000000
SETTINGS = TrackerSettings(
    max_peers=10_000_000, max_peers_per_torrent=1_000_000, max_torrents=10**6
)


def resident() -> int:
    """Bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * getpagesize()


def main() -> None:
    """Fill the swarms, each peer at an address of its own, one in ten with the whole film."""
    peers, size = int(sys.argv[1]), int(sys.argv[2])
    swarms = Swarms(SETTINGS, np.random.default_rng(1))
    hashes = [number.to_bytes(20, "big") for number in range(peers // size)]
    before = resident()
    for number in range(peers):
        swarms.announce_packed(
            hashes[number % len(hashes)],
            0,
            (FIRST_ADDRESS + number) << 16 | 6881,
            number.to_bytes(20, "big"),
            0.0,
            complete=number % 10 == 0,
            event=Event.STARTED,
            numwant=0,
            playhead=float(number % 5000) if "playheads" in sys.argv else None,
        )
    after = resident()
    figures = {
        "peers": swarms.peers,
        "swarms": swarms.torrents,
        "bytes_per_peer": (after - before) / peers,
        "process_bytes_per_peer": after / peers,
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
