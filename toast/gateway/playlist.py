"""Extended M3U playlists: what desktop players open a film with. Pure.

The words are those that players read: #EXTINF, #PLAYLIST, and a hint at files of subtitles, which
is a comment to players that do not take it. It is no HTTP Live Streaming (RFC 8216).
"""

from collections.abc import Sequence

__all__ = ["make_playlist"]


def make_playlist(
    *,
    title: str,
    duration_seconds: float | None,
    film_url: str,
    subtitle_urls: Sequence[str] = (),
) -> str:
    """A playlist of one film.

    Args:
        title: what the player shows; line breaks in it are taken out.
        duration_seconds: its length; None if it is not known.
        film_url: where it is.
        subtitle_urls: where its subtitles are, the preferred ones first.
    """
    name = " ".join("".join(c if c.isprintable() else " " for c in title).split())
    seconds = -1 if duration_seconds is None else round(duration_seconds)
    lines = ["#EXTM3U", f"#PLAYLIST:{name}", f"#EXTINF:{seconds},{name}"]
    if subtitle_urls:
        # VLC's words for it, parted by '#'; VLC 3 itself heeds them on its command line only.
        lines.append(f"#EXTVLCOPT:input-slave={'#'.join(subtitle_urls)}")
    return "\n".join([*lines, film_url, ""])
