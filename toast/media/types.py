"""Media types by file name. Pure: the machine's own tables differ, and lack what films come in."""

from pathlib import PurePath
from typing import Final

__all__ = ["FILM_SUFFIXES", "film_type"]

_TYPES: Final = {
    ".mp4": "video/mp4",
    ".m4v": "video/mp4",
    ".mov": "video/quicktime",
    ".mkv": "video/x-matroska",
    ".webm": "video/webm",
    ".ts": "video/mp2t",
    ".m2ts": "video/mp2t",
    ".mts": "video/mp2t",
    ".mpg": "video/mpeg",
    ".mpeg": "video/mpeg",
    ".vob": "video/mpeg",
    ".avi": "video/x-msvideo",
    ".flv": "video/x-flv",
    ".wmv": "video/x-ms-wmv",
    ".ogv": "video/ogg",
    ".ogm": "video/ogg",
    ".3gp": "video/3gpp",
}

FILM_SUFFIXES: Final = frozenset(_TYPES)
"""Endings of the names of film files, in small letters, with their dot."""


def film_type(name: str) -> str:
    """The media type of a film's file name; video/mp4 where it says nothing."""
    return _TYPES.get(PurePath(name).suffix.lower(), "video/mp4")
