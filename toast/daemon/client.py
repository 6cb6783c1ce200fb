"""A client of a running daemon, for the command line. Blocking."""

import json
import urllib.error
import urllib.request
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from toast.daemon.auth import read_token
from toast.daemon.errors import DaemonError, NoSuchFilm, StateError, UnreachableError

__all__ = ["Client"]

_SECONDS = 60.0
_MOST_ANSWER_BYTES = 64 * 1024 * 1024
_MOST_TORRENT_BYTES = 16 * 1024 * 1024


class Client:
    """Asks the daemon that uses a state folder.

    Args:
        state: the folder.

    Raises:
        UnreachableError: no daemon has ever run there.
        StateError: its token cannot be read.
    """

    def __init__(self, state: Path) -> None:
        try:
            with (state / "url").open(encoding="ascii") as file:
                self.url = file.read(200).strip()
        except (OSError, ValueError) as error:
            raise UnreachableError(
                f"no daemon has run with {state}: start one with 'toast daemon', or name its"
                " --state"
            ) from error
        if urlsplit(self.url).scheme != "http":
            raise StateError(f"{state / 'url'} holds no address: restart the daemon")
        self._token = read_token(state)
        # Never through a proxy: the daemon is on this machine.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    @property
    def page_url(self) -> str:
        """The page's address with the token, which a browser needs once."""
        return f"{self.url}/?{urlencode({'token': self._token})}"

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """What the API answers, from JSON; None if it answers without a body.

        Args:
            method: of HTTP.
            path: below `/api/v1`.
            body: what to send as JSON; bytes are sent as a .torrent.

        Raises:
            UnreachableError: no daemon answers.
            DaemonError: it refuses, and says why.
        """
        data, kind = None, "application/json"
        if isinstance(body, bytes):
            data, kind = body, "application/x-bittorrent"
        elif body is not None:
            data = json.dumps(body).encode()
        request = urllib.request.Request(  # noqa: S310 - its scheme was looked at
            f"{self.url}/api/v1{path}",
            data=data,
            method=method,
            headers={"Authorization": f"Bearer {self._token}", "Content-Type": kind},
        )
        try:
            with self._opener.open(request, timeout=_SECONDS) as answer:
                text = answer.read(_MOST_ANSWER_BYTES)
        except urllib.error.HTTPError as error:
            with error:
                raise DaemonError(_reason(error.read(4096), error.code)) from None
        except (OSError, HTTPException) as error:
            raise UnreachableError(
                f"no daemon answers at {self.url}: start one with 'toast daemon'"
            ) from error
        try:
            return json.loads(text) if text else None
        except ValueError as error:
            raise UnreachableError(f"what answers at {self.url} is no Toast daemon") from error

    def add(self, source: str, *, mode: str, behaviour: str | None = None) -> Any:
        """Add a film; a file is read here, so that the daemon need not be able to.

        Raises:
            DaemonError: the daemon refuses, or the file cannot be read.
        """
        options = {"mode": mode} | ({} if behaviour is None else {"behaviour": behaviour})
        if source.startswith("magnet:") or "://" in source:
            return self.ask("POST", "/films", {"source": source, **options})
        try:
            with Path(source).open("rb") as file:
                torrent = file.read(_MOST_TORRENT_BYTES + 1)
        except OSError as error:
            raise DaemonError(f"{source} cannot be read: {error.strerror}") from error
        if len(torrent) > _MOST_TORRENT_BYTES:
            raise DaemonError(f"{source} is too large to be a .torrent")
        return self.ask("POST", f"/films?{urlencode(options)}", torrent)

    def find(self, name: str) -> dict[str, Any]:
        """The film that a person means: by the beginning of its id, or a part of its name.

        Raises:
            NoSuchFilm: none, or more than one.
        """
        films: list[dict[str, Any]] = self.ask("GET", "/films")["films"]
        wanted = name.casefold()
        exact = [film for film in films if wanted in {film["id"], film["name"].casefold()}]
        found = exact or [
            film
            for film in films
            if film["id"].startswith(wanted) or wanted in film["name"].casefold()
        ]
        if len(found) == 1:
            return found[0]
        if not found:
            raise NoSuchFilm(f"there is no film '{name}': see 'toast list'")
        names = ", ".join(f"{film['name']} ({film['id'][:8]})" for film in found[:5])
        raise NoSuchFilm(f"'{name}' may be {names}: write more of it, or its id")

    def film_path(self, film: dict[str, Any]) -> str:
        """Path of a film in the API."""
        return f"/films/{quote(film['id'], safe='')}"


def _reason(body: bytes, status: int) -> str:
    try:
        return str(json.loads(body)["error"])
    except (ValueError, KeyError, TypeError):
        return f"the daemon answers {status}"
