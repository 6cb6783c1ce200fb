"""One symbolic link for each extent: what libtorrent opens, and what is changed under it."""

import os
import shutil
from pathlib import Path
from typing import Final

__all__ = ["Links"]

_NOWHERE: Final = "nowhere"
"""Target of a link that leads nowhere: nothing of that name is ever made."""


class Links:
    """The links of all titles: `PATH/FOLDER/NUMBER`.

    libtorrent cannot be told that a file of a torrent lies elsewhere now without losing all the
    torrent's peers. A link that is replaced says the same, and it never notices.
    """

    def __init__(self) -> None:
        self._path = Path(_NOWHERE)

    def open(self, path: Path) -> None:
        """Make the directory; whatever a killed process left in it is removed.

        Args:
            path: a directory of its own.

        Raises:
            OSError: it cannot be made.
        """
        self._remove(path)
        path.mkdir(mode=0o700)
        self._path = path

    def path(self, folder: str, number: int) -> Path:
        """Where the link of an extent is."""
        return self._path / folder / f"{number:06d}"

    def extent_of(self, path: Path) -> tuple[str, int] | None:
        """Folder and number of the extent whose link this is; None if it is none."""
        if path.parent.parent != self._path or not path.name.isdecimal():
            return None
        return path.parent.name, int(path.name)

    def point(self, folder: str, number: int, target: str | None) -> None:
        """Lead a link to a file, or nowhere; whoever opens it gets the old one or the new one.

        Raises:
            OSError: the directory is full, read-only or gone.
        """
        link = self.path(folder, number)
        draft = link.with_suffix(".new")
        link.parent.mkdir(exist_ok=True)
        draft.unlink(missing_ok=True)
        draft.symlink_to(_NOWHERE if target is None else target)
        os.replace(draft, link)  # noqa: PTH105 - pathlib's replace resolves nothing either, but says less

    def drop(self, folder: str) -> None:
        """Remove the links of a title."""
        shutil.rmtree(self._path / folder, ignore_errors=True)

    def close(self) -> None:
        """Remove all."""
        self._remove(self._path)

    @staticmethod
    def _remove(path: Path) -> None:
        if path.is_symlink():
            path.unlink()  # somebody's link is not ours to follow
        elif path.exists():
            shutil.rmtree(path)
