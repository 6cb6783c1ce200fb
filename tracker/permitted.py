"""The films that a tracker serves: a list in a file, or a folder of .torrents."""

import hashlib
import re
from pathlib import Path
from typing import Final

import bencode2

from tracker.errors import TrackerError

__all__ = ["read_permitted", "stamp"]

_HASH: Final = re.compile(r"[0-9A-Fa-f]{40}\Z")


def stamp(path: Path) -> object:
    """Something that is different when the list has changed; None if it is not there."""
    try:
        files = sorted(path.glob("*.torrent")) if path.is_dir() else [path]
        return [(file.name, (found := file.stat()).st_mtime_ns, found.st_size) for file in files]
    except OSError:
        return None


def read_permitted(path: Path) -> frozenset[bytes]:
    """The info-hashes of a list (40 hex digits a line, `#` comments) or of a folder of .torrents.

    Raises:
        TrackerError: it cannot be read, or a line or file is not what it should be.
    """
    try:
        if path.is_dir():
            return frozenset(_info_hash(file) for file in sorted(path.glob("*.torrent")))
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise TrackerError(f"the list of films {path} cannot be read: {error}") from error
    found = set()
    for number, line in enumerate(lines, 1):
        word = line.partition("#")[0].strip()
        if word and not _HASH.match(word):
            raise TrackerError(f"{path}, line {number}: an info-hash has 40 hex digits")
        if word:
            found.add(bytes.fromhex(word))
    return frozenset(found)


def _info_hash(file: Path) -> bytes:
    try:
        info = bencode2.bdecode(file.read_bytes())[b"info"]
        return hashlib.sha1(bencode2.bencode(info), usedforsecurity=False).digest()
    except (ValueError, TypeError, KeyError) as error:
        raise TrackerError(f"{file} is no .torrent") from error
