"""What titles are called: by people, and in URLs."""

import re
import unicodedata
from collections.abc import Container
from typing import Final

from vodserver.errors import FilmError

__all__ = ["clean_name", "title_id"]

_MAX_NAME: Final = 200


def clean_name(name: str) -> str:
    """A name that can stand in a line, a table and a file name.

    Raises:
        FilmError: nothing of it can.
    """
    unprintable = {"Cc", "Cf", "Cs"}  # controls, invisible marks, halves of characters
    kept = "".join(
        c
        for c in " ".join(name.split())
        if c not in "/\\" and unicodedata.category(c) not in unprintable
    )
    cleaned = " ".join(kept.split()).strip(".")[:_MAX_NAME].strip()
    if not cleaned:
        raise FilmError(f"the name {name!r} cannot be used: give another with --name")
    return cleaned


def title_id(name: str, taken: Container[str]) -> str:
    """A short id for URLs, made of the name; numbered if the name is taken."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    base = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:48].strip("-") or "film"
    if base not in taken:
        return base
    number = 2
    while f"{base}-{number}" in taken:
        number += 1
    return f"{base}-{number}"
