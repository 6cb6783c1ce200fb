"""A film in the words of the API."""

from typing import Any

import numpy as np

from toast.daemon.film import Film
from toast.viewer import PieceSource

__all__ = ["describe_film"]


def describe_film(film: Film) -> dict[str, Any]:
    """The film as the API shows it, without its URLs."""
    record, live = film.record, film.live
    received = record.bytes_from_peers + record.bytes_from_seed + record.bytes_from_origin
    return {
        "id": record.id,
        "name": record.name,
        "title": film.title,
        "size_bytes": record.size_bytes,
        "duration_seconds": record.duration_seconds,
        "state": film.state,
        "error": record.error,
        "position_seconds": round(record.position_seconds, 3),
        "watched": record.watched,
        "behaviour": record.behaviour,
        "priority": record.priority,
        "added_at": record.added_at,
        "pieces": record.pieces,
        "pieces_have": record.pieces_have,
        "buffer_seconds": live.get("buffer_seconds", 0.0),
        "down_rate": round(live.get("down_rate", 0.0)),
        "up_rate": round(live.get("up_rate", 0.0)),
        "neighbours": live.get("neighbours", 0),
        "readers": film.readers,
        "stalls": record.stalls,
        "bytes_from_peers": record.bytes_from_peers,
        "bytes_from_seed": record.bytes_from_seed,
        "bytes_from_origin": record.bytes_from_origin,
        "uploaded_bytes": record.uploaded_bytes,
        "offload": round(record.bytes_from_peers / received, 4) if received else None,
        "video_codec": record.video_codec,
        "audio_codec": record.audio_codec,
        "width": record.width,
        "height": record.height,
        "ejected_pieces": int(np.count_nonzero(film.sources == PieceSource.EJECTED)),
    }
