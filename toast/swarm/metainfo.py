"""Reading .torrent files, which come from strangers, and are bounded and checked here."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import libtorrent as lt
import numpy as np
from numpy.typing import NDArray

from toast.common.errors import UsageError
from toast.common.geometry import Geometry
from toast.common.timemap import TimeMap
from toast.swarm.contents import Contents, TorrentFile, read_contents
from toast.swarm.errors import MetainfoError

__all__ = ["MAX_METAINFO_BYTES", "BlockHashes", "Metainfo", "file_url", "parse_metainfo"]

_SHA1_BYTES = 20
_DIGEST_BYTES = 32  # SHA-256

MAX_METAINFO_BYTES = 16 * 1024 * 1024
"""A torrent with 16 KiB pieces of a 13 GB film; anything larger is an attack or a mistake."""


@dataclass(frozen=True, slots=True)
class Metainfo:
    """What a .torrent says about one film.

    Attributes:
        name: the film's file name, without any folder.
        geometry: the torrent's cut into pieces and blocks; the film is all of it, or a part.
        info_hash: SHA-1 of the info dictionary, 20 bytes (BEP 3).
        piece_hashes: SHA-1 of each piece.
        origins: URLs of the whole film at VoD servers (BEP 19 `url-list`).
        trackers: announce URLs, in the order given.
        timemap: byte of the torrent <-> film time, if the .torrent carries one.
        info: libtorrent's own parsed form.
        block_hashes: where the hashes of single blocks are, if the .torrent says so.
        torrent: the .torrent itself.
        discoverable: whether its peers may be looked for beyond its trackers: it is not private
            (BEP 27), and not of a VoD server of ours, whose tracker knows better who has what.
        contents: the files, if it is a torrent of several.
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
    contents: Contents | None = None

    @property
    def film_start(self) -> int:
        """The film's first byte, in the torrent's bytes."""
        return 0 if self.contents is None else self.contents.film.start

    @property
    def film_bytes(self) -> int:
        """The film's size."""
        return self.geometry.film_bytes if self.contents is None else self.contents.film.size

    def in_torrent(self, timemap: TimeMap) -> TimeMap:
        """A map of the film, in the bytes of the torrent that the film may be a part of."""
        return timemap.within(self.film_start, self.geometry.film_bytes)

    def wanted(self, *, subtitles: bool = True) -> NDArray[np.bool_]:
        """bool[pieces]: those that hold something of the film, or of the subtitles with it."""
        wanted = np.zeros(self.geometry.pieces, dtype=np.bool_)
        spans = [(self.film_start, self.film_start + self.film_bytes)]
        if self.contents is not None and subtitles:
            spans += [(file.start, file.end) for file in self.contents.subtitles]
        for start, end in spans:
            pieces = self.geometry.pieces_of(start, end)
            wanted[pieces.start : pieces.stop] = True
        return wanted

    def choose(self, film: str) -> "Metainfo":
        """The same torrent with another of its files as the film.

        Args:
            film: its path or name.

        Raises:
            MetainfoError: there is no such file.
        """
        return parse_metainfo(self.torrent, film=film)


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


def parse_metainfo(data: bytes, *, film: str | None = None) -> Metainfo:
    """Read a .torrent.

    Args:
        data: the .torrent.
        film: path or name of the file to play, of several; None: the largest film.

    Raises:
        MetainfoError: it is no .torrent, holds no film, or is not of a kind that we can play.
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
    contents = read_contents(top[b"info"], film)
    try:
        geometry = Geometry(film_bytes=info.total_size(), piece_bytes=info.piece_length())
        timemap = _timemap(top.get(b"toast"), contents, geometry)
    except UsageError as error:
        raise MetainfoError(f"this .torrent is not usable: {error}") from error
    name = Path(info.files().file_name(0)).name if contents is None else contents.film.path.name
    if not name or name in {".", ".."}:
        raise MetainfoError("this .torrent gives its film no usable file name")
    if contents is None and film not in {None, name}:
        raise MetainfoError(f"this .torrent holds no file '{film}'")
    return Metainfo(
        name=name,
        geometry=geometry,
        info_hash=info.info_hashes().v1.to_bytes(),
        piece_hashes=_piece_hashes(top[b"info"][b"pieces"]),
        origins=tuple(
            _content_url(url, name, contents)
            for url in _strings(top.get(b"url-list"))
            if _is_http(url)
        ),
        trackers=tuple(tracker.url for tracker in info.trackers()),
        timemap=timemap,
        info=info,
        discoverable=not info.priv() and b"toast" not in top,
        block_hashes=_block_hashes(top.get(b"block hashes"), geometry.pieces),
        torrent=data,
        contents=contents,
    )


def _piece_hashes(joined: bytes) -> tuple[bytes, ...]:
    # libtorrent has checked that there is one for each piece; asked for each, it takes its time.
    return tuple(joined[at : at + _SHA1_BYTES] for at in range(0, len(joined), _SHA1_BYTES))


def file_url(origin: str, contents: Contents, file: TorrentFile) -> str:
    """The URL of a file beside the film, given the film's own."""
    film = "/".join(quote(part, safe="") for part in contents.film.path.parts)
    return origin.removesuffix(film) + "/".join(quote(part, safe="") for part in file.path.parts)


def _content_url(url: str, name: str, contents: Contents | None) -> str:
    """The film's URL: what ends in a slash is a folder in which the torrent's files lie (BEP 19).

    A torrent of several files is always in one.
    """
    if contents is None:
        return url + quote(name, safe="") if urlsplit(url).path.endswith("/") else url
    parts = (contents.name, *contents.film.path.parts)
    return url.removesuffix("/") + "/" + "/".join(quote(part, safe="") for part in parts)


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


def _timemap(value: Any, contents: Contents | None, geometry: Geometry) -> TimeMap | None:
    """The film's time map, in the torrent's bytes."""
    if value is None:
        return None
    timemap = TimeMap.from_bencodable(value)
    film_bytes = geometry.film_bytes if contents is None else contents.film.size
    if timemap.film_bytes != film_bytes:
        if contents is not None:
            return None  # of another one of the films in it
        raise UsageError(
            f"its time map is of a film of {timemap.film_bytes} bytes, the film has {film_bytes}"
        )
    if contents is None:
        return timemap
    return timemap.within(contents.film.start, geometry.film_bytes)


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
