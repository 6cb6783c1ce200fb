"""The .torrent of a title: what was hashed at ingest, with the addresses of today."""

from collections.abc import Sequence

from bencode2 import bdecode, bencode

from vodserver.store.catalog import Title

__all__ = ["compose_torrent"]


def compose_torrent(
    title: Title, *, trackers: Sequence[str], content_url: str, blocks_url: str | None = None
) -> bytes:
    """Compose a title's .torrent (BEP 3).

    Args:
        title: the title.
        trackers: announce URLs, best first, each a tier of its own (BEP 12).
        content_url: where the film is served over HTTP (BEP 19).
        blocks_url: where the hashes of its blocks are, if they are anywhere.

    Returns:
        The file. Its `info` is byte for byte what the title's info-hash is of: bencoding is
        canonical, so decoding and encoding it again changes nothing.
    """
    torrent: dict[bytes, object] = {
        b"created by": b"Toast VoD server",
        b"creation date": int(title.added),
        b"info": bdecode(title.info),
        b"toast": bdecode(title.timemap),
        b"url-list": content_url.encode(),
    }
    if blocks_url is not None and title.block_roots:
        torrent[b"block hashes"] = {b"roots": title.block_roots, b"url": blocks_url.encode()}
    if trackers:
        torrent[b"announce"] = trackers[0].encode()
        torrent[b"announce-list"] = [[url.encode()] for url in trackers]
    return bencode(torrent)
