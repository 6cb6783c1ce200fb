"""A folder into which people put .torrents: each becomes a film."""

import asyncio
import stat
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from toast.common.errors import ToastError
from toast.swarm.metainfo import MAX_METAINFO_BYTES

__all__ = ["WatchFolder"]

_AGAIN_SECONDS = 5.0
_SETTLED_SECONDS = 2.0
_MOST_AT_ONCE = 100


class WatchFolder:
    """Takes in every `NAME.torrent`, and renames it: to `NAME.torrent.added`, or `...refused`.

    Args:
        folder: where to look; it need not be there yet.
        add: takes a .torrent in.
        notice: is told in one line why one was refused.
        again_seconds: between two looks.
        settled_seconds: how long a file must have stayed as it is: it may still be being copied.
    """

    def __init__(
        self,
        folder: Path,
        add: Callable[[bytes], Awaitable[object]],
        notice: Callable[[str], None],
        *,
        again_seconds: float = _AGAIN_SECONDS,
        settled_seconds: float = _SETTLED_SECONDS,
    ) -> None:
        self._folder = folder
        self._add = add
        self._notice = notice
        self._again_seconds = again_seconds
        self._settled_seconds = settled_seconds

    async def run(self) -> None:
        """Look until cancelled."""
        while True:
            for path in await asyncio.to_thread(self._settled):
                await self._take(path)
            await asyncio.sleep(self._again_seconds)

    def _settled(self) -> list[Path]:
        """The files that nobody writes to any more. A folder that cannot be read has none."""
        before = time.time() - self._settled_seconds
        found: list[Path] = []
        try:
            for path in self._folder.iterdir():
                if path.suffix.lower() != ".torrent" or len(found) == _MOST_AT_ONCE:
                    continue
                facts = path.stat(follow_symlinks=False)
                if stat.S_ISREG(facts.st_mode) and facts.st_mtime <= before:
                    found.append(path)
        except OSError:
            return found
        return sorted(found)

    async def _take(self, path: Path) -> None:
        ending = "added"
        try:
            await self._add(await asyncio.to_thread(_read, path))
        except (ToastError, OSError) as error:
            ending = "refused"
            self._notice(f"{path.name} was refused: {error}")
        try:
            await asyncio.to_thread(path.rename, f"{path}.{ending}")
        except OSError as error:
            # It would be taken for a new one at each look: once a look is once every few seconds.
            self._notice(f"{path.name} cannot be renamed: {error.strerror}")


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(MAX_METAINFO_BYTES + 1)
