"""A little world for the viewer's tests: films of random bytes, their torrents, stock peers."""

import asyncio
import contextlib
import hashlib
import os
from dataclasses import dataclass, field
from pathlib import Path

import libtorrent as lt
import numpy as np

from toast.common import blockhashes
from toast.common.geometry import BLOCK_BYTES
from toast.swarm import Metainfo, parse_metainfo

PIECE = 64 * 1024
PATIENCE = 10.0
"""Seconds after which something that was waited for counts as not coming."""


def random_film(size: int, seed: int = 1) -> bytes:
    return np.random.default_rng(seed).bytes(size)


def sha1_pieces(film: bytes, piece_bytes: int) -> list[bytes]:
    return [
        hashlib.sha1(film[start : start + piece_bytes]).digest()
        for start in range(0, len(film), piece_bytes)
    ]


def make_torrent(
    film: bytes,
    *,
    name: str = "film.mp4",
    piece_bytes: int = PIECE,
    timemap=None,
    origins=(),
    trackers=(),
    hashes_url=None,
) -> bytes:
    """A v1 single-file .torrent, made by libtorrent, with our keys outside `info`."""
    files = lt.file_storage()
    files.add_file(name, len(film))
    maker = lt.create_torrent(files, piece_bytes, lt.create_torrent.v1_only)
    for piece, digest in enumerate(sha1_pieces(film, piece_bytes)):
        maker.set_hash(piece, digest)
    for tier, url in enumerate(trackers):
        maker.add_tracker(url, tier)
    top = maker.generate()
    if origins:
        top[b"url-list"] = [url.encode() for url in origins]
    if timemap is not None:
        top[b"toast"] = timemap.to_bencodable()
    if hashes_url is not None:
        starts = range(0, len(film), piece_bytes)
        full = piece_bytes // BLOCK_BYTES
        top[b"block hashes"] = {
            b"roots": b"".join(
                blockhashes.root(blockhashes.leaves(film[start : start + piece_bytes]), full)
                for start in starts
            ),
            b"url": hashes_url.encode(),
        }
    return lt.bencode(top)


def make_metainfo(film: bytes, **options) -> Metainfo:
    return parse_metainfo(make_torrent(film, **options))


def flipped(film: bytes, offset: int) -> bytes:
    """The film with one byte of it another."""
    return film[:offset] + bytes([film[offset] ^ 0x40]) + film[offset + 1 :]


@dataclass
class Recorder:
    """Keeps what a FilmSwarm tells, in order; waits for what is to come."""

    events: list[tuple] = field(default_factory=list)

    def __post_init__(self):
        self._changed = asyncio.Event()

    def _note(self, *event):
        self.events.append(event)
        self._changed.set()

    def piece_verified(self, piece):
        self._note("verified", piece)

    def piece_failed(self, piece):
        self._note("failed", piece)

    def block_requested(self, block):
        self._note("requested", block)

    def block_arrived(self, block):
        self._note("arrived", block)

    def piece_read(self, piece, data):
        self._note("read", piece, data)

    def neighbours_changed(self):
        self._note("neighbours")

    def storage_failed(self, reason):
        self._note("storage", reason)

    def of(self, kind: str) -> list[tuple]:
        return [event[1:] for event in self.events if event[0] == kind]

    async def until(self, condition, *, seconds: float = PATIENCE):
        """Wait until the condition on this recorder holds; return what it returned."""
        async with asyncio.timeout(seconds):
            while not (result := condition(self)):
                self._changed.clear()
                await self._changed.wait()
        return result


class StockPeer:
    """An ordinary libtorrent client that claims to have the whole film in `content`.

    It is not one of ours: it checks nothing, sends what lies on its disk, and honours a cap on
    what it sends.
    """

    def __init__(
        self,
        torrent: bytes,
        content: bytes,
        folder: Path,
        host: str,
        *,
        upload: int = 0,
        fingerprint: str = "-LT20F0-",
    ) -> None:
        self._session = lt.session(
            {
                "listen_interfaces": f"{host}:0",
                "outgoing_interfaces": host,
                "allow_multiple_connections_per_ip": True,
                "enable_dht": False,
                "enable_lsd": False,
                "enable_upnp": False,
                "enable_natpmp": False,
                "enable_outgoing_utp": False,
                "enable_incoming_utp": False,
                "peer_fingerprint": fingerprint,
                "tick_interval": 50,
                "unchoke_slots_limit": 20,
                "upload_rate_limit": upload,
            }
        )
        rule = lt.ip_filter()  # loopback is not spared the cap
        rule.add_rule("0.0.0.0", "255.255.255.255", 1 << lt.session.global_peer_class_id)
        self._session.set_peer_class_filter(rule)
        params = lt.add_torrent_params()
        params.ti = lt.torrent_info(torrent)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / params.ti.files().file_name(0)).write_bytes(content)
        params.save_path = str(folder)
        params.trackers = []
        params.url_seeds = []
        # Not seed_mode: that would hash each piece before its first upload, and catch a lie.
        params.have_pieces = [True] * params.ti.num_pieces()
        params.verified_pieces = params.have_pieces
        flags = lt.torrent_flags
        params.flags = flags.override_trackers | flags.override_web_seeds
        self.handle = self._session.add_torrent(params)
        self.address = (host, self._session.listen_port())

    def sent(self) -> int:
        """Payload bytes sent so far."""
        return self.handle.status(0).total_payload_upload

    async def close(self) -> None:
        self.handle = None
        holder = [self._session]
        del self._session
        await asyncio.to_thread(holder.clear)


@contextlib.asynccontextmanager
async def stock_peer(*arguments, **options):
    peer = StockPeer(*arguments, **options)
    try:
        yield peer
    finally:
        await peer.close()


def write_sparse(path: Path, size: int, parts: dict[int, bytes]) -> None:
    """A file of holes but for the parts, given by their offsets."""
    with path.open("wb") as file:
        file.truncate(size)
        for offset, data in parts.items():
            os.pwrite(file.fileno(), data, offset)


def make_season(
    files: dict[str, bytes], *, piece_bytes: int = PIECE, timemap=None, origins=()
) -> bytes:
    """A v1 .torrent `season` of several files, by their paths; for `origins` see BEP 19."""
    content = b"".join(files.values())
    info = {
        b"name": b"season",
        b"piece length": piece_bytes,
        b"pieces": b"".join(sha1_pieces(content, piece_bytes)),
        b"files": [
            {b"length": len(data), b"path": [part.encode() for part in path.split("/")]}
            for path, data in files.items()
        ],
    }
    top = {b"info": info}
    if origins:
        top[b"url-list"] = [url.encode() for url in origins]
    if timemap is not None:
        top[b"toast"] = timemap.to_bencodable()
    return lt.bencode(top)
