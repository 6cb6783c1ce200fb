"""Reading .torrent files, which come from strangers, and are bounded and checked here."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import libtorrent as lt

from toast.common.errors import UsageError
from toast.common.geometry import Geometry
from toast.common.timemap import TimeMap
from toast.swarm.errors import MetainfoError

__all__ = ["MAX_METAINFO_BYTES", "BlockHashes", "Metainfo", "parse_metainfo"]

_DIGEST_BYTES = 32  # SHA-256

MAX_METAINFO_BYTES = 16 * 1024 * 1024
"""A torrent with 16 KiB pieces of a 13 GB film; anything larger is an attack or a mistake."""


@dataclass(frozen=True, slots=True)
class Metainfo:
    """What a .torrent says about one film.

    Attributes:
        name: the film's file name, without any folder.
        geometry: its cut into pieces and blocks.
        info_hash: SHA-1 of the info dictionary, 20 bytes (BEP 3).
        piece_hashes: SHA-1 of each piece.
        origins: URLs of the whole film at VoD servers (BEP 19 `url-list`).
        trackers: announce URLs, in the order given.
        timemap: byte <-> film time, if the .torrent carries one.
        info: libtorrent's own parsed form.
        block_hashes: where the hashes of single blocks are, if the .torrent says so.
        torrent: the .torrent itself.
        discoverable: whether its peers may be looked for beyond its trackers: it is not private
            (BEP 27), and not of a VoD server of ours, whose tracker knows better who has what.
    """

    name: str
    geometry: Geometry
    info_hash: bytes
    piece_hashes: tuple[bytes, ...]
    origins: tuple[str, ...]
    trackers: tuple[str, ...]
    timemap: TimeMap | None
    info: Any
    block_hashes: "BlockHashes | None" = None
    torrent: bytes = field(default=b"", repr=False)
    discoverable: bool = False


@dataclass(frozen=True, slots=True)
class BlockHashes:
    """Where the SHA-256 of each 16 KiB block can be had, and what they must amount to.

    Attributes:
        roots: 32 bytes for each piece: Merkle root of its blocks' hashes (as BEP 52 makes it).
        url: of a file of 32 bytes for each block, in order.
    """

    roots: bytes
    url: str

    def root(self, piece: int) -> bytes:
        """The root of one piece, 32 bytes."""
        return self.roots[piece * _DIGEST_BYTES : (piece + 1) * _DIGEST_BYTES]


def parse_metainfo(data: bytes) -> Metainfo:
    """Read a .torrent.

    Raises:
        MetainfoError: it is no .torrent, not of one film file, or not of a kind that we can play.
    """
    if len(data) > MAX_METAINFO_BYTES:
        raise MetainfoError(f"this .torrent has {len(data)} bytes; a film's has a few hundred kB")
    try:
        top = lt.bdecode(data)
        info = lt.torrent_info(data)
    except (RuntimeError, ValueError, UnicodeDecodeError) as error:
        raise MetainfoError(f"this is not a .torrent file ({error})") from error
    if not isinstance(top, dict) or not info.is_valid():
        raise MetainfoError("this is not a .torrent file")
    if not info.info_hashes().has_v1():
        raise MetainfoError("this .torrent is BitTorrent v2 only; a v1 or hybrid one is needed")
    files = info.files()
    if files.num_files() != 1:
        raise MetainfoError(
            f"this .torrent holds {files.num_files()} files; only that of one film can be played"
        )
    try:
        geometry = Geometry(film_bytes=info.total_size(), piece_bytes=info.piece_length())
        timemap = _timemap(top.get(b"toast"), geometry.film_bytes)
    except UsageError as error:
        raise MetainfoError(f"this .torrent is not usable: {error}") from error
    name = Path(files.file_name(0)).name
    if not name or name in {".", ".."}:
        raise MetainfoError("this .torrent gives its film no usable file name")
    return Metainfo(
        name=name,
        geometry=geometry,
        info_hash=info.info_hashes().v1.to_bytes(),
        piece_hashes=tuple(info.hash_for_piece(piece) for piece in range(geometry.pieces)),
        origins=tuple(url for url in _strings(top.get(b"url-list")) if _is_http(url)),
        trackers=tuple(tracker.url for tracker in info.trackers()),
        timemap=timemap,
        info=info,
        discoverable=not info.priv() and b"toast" not in top,
        block_hashes=_block_hashes(top.get(b"block hashes"), geometry.pieces),
        torrent=data,
    )


def _block_hashes(value: Any, pieces: int) -> BlockHashes | None:
    """What does not fit is left out: blocks are then shown when their piece is complete."""
    if not isinstance(value, dict):
        return None
    roots, url = value.get(b"roots"), value.get(b"url")
    if not isinstance(roots, bytes) or len(roots) != pieces * _DIGEST_BYTES:
        return None
    if not isinstance(url, bytes) or not _is_http(text := url.decode("utf-8", "replace")):
        return None
    return BlockHashes(roots, text)


def _timemap(value: Any, film_bytes: int) -> TimeMap | None:
    if value is None:
        return None
    timemap = TimeMap.from_bencodable(value)
    if timemap.film_bytes != film_bytes:
        raise UsageError(
            f"its time map is of a film of {timemap.film_bytes} bytes, the film has {film_bytes}"
        )
    return timemap


def _strings(value: Any) -> list[str]:
    """`url-list` is one string or a list of them (BEP 19); what is neither is left out."""
    values = value if isinstance(value, list) else [value]
    return [item.decode("utf-8", "replace") for item in values if isinstance(item, bytes)]


def _is_http(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and bool(parts.hostname)
