"""A title as a catalog may have it, whose film nobody ever saw."""

from vodserver.store.catalog import Extent, Title


def film(title_id="film", **changes):
    values = {
        "id": title_id,
        "name": "A film",
        "folder": f"folder-of-{title_id}",
        "film_bytes": 150,
        "duration": 6.5,
        "piece_bytes": 16384,
        "extent_bytes": 100,
        "info_hash": f"hash of {title_id}",
        "sha256": "00",
        "info": b"d4:name1:xe",
        "timemap": b"de",
        "media": {"container": "mp4", "audio_codec": None},
        "added": 5.25,
        "extents": (Extent(0, 100, (0, 1), b"12345678"), Extent(1, 50, (1, 0), b"87654321")),
    }
    return Title(**values | changes)
