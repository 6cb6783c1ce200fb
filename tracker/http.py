"""The tracker on HTTP: `/announce`, `/scrape`, and for its operator pages and counters."""

import json
import logging
from collections.abc import Callable, Mapping
from email.utils import formatdate
from typing import Final

from tracker import codec, pages
from tracker.errors import HttpError, RequestError
from tracker.http_codec import encode_response, parse_request
from tracker.service import Service
from tracker.swarm import family_of, key_of

__all__ = ["HttpAnswers"]

_LOG: Final = logging.getLogger("tracker")
_PLAIN: Final = b"text/plain"


class HttpAnswers:
    """Answers request heads.

    Args:
        service: who answers announces and scrapes.
        clock: seconds, for the service.
        statistics: what `/status` shows.

    Attributes:
        routes: path -> what answers it.
    """

    def __init__(
        self,
        service: Service,
        clock: Callable[[], float],
        statistics: Callable[[], Mapping[str, float]],
    ) -> None:
        self._service = service
        self._clock = clock
        self._statistics = statistics
        self._date, self._date_until = b"", float("-inf")
        self.routes: dict[bytes, Callable[[bytes, bytes], tuple[bytes, bytes]]] = {
            b"/announce": self._announce,
            b"/scrape": self._scrape,
            b"/": self._page,
            b"/status": self._status,
            b"/metrics": self._metrics,
            b"/healthz": self._health,
        }

    def respond(self, head: bytes | None, address: bytes) -> tuple[bytes, bool]:
        """The answer to one request head (None: too long), and whether the connection stays."""
        status, keep_open = 200, False
        try:
            if head is None:
                raise HttpError(431)  # noqa: TRY301  (the answer is made below, as of all errors)
            request = parse_request(head)
            route = self.routes.get(request.path)
            if route is None:
                raise HttpError(404)  # noqa: TRY301  (as above)
            content_type, body = route(request.query, address)
            keep_open = request.keep_open
        except HttpError as error:
            status, content_type, body = error.status, _PLAIN, f"{error.status} {error}\n".encode()
        answer = encode_response(
            status, body, content_type=content_type, keep_open=keep_open, date=self._now()
        )
        return answer, keep_open

    def _now(self) -> bytes:
        now = self._clock()
        if now >= self._date_until:
            self._date, self._date_until = formatdate(usegmt=True).encode(), now + 1.0
        return self._date

    def _announce(self, query: bytes, address: bytes) -> tuple[bytes, bytes]:
        return self._answer(self._service.announce, query, address)

    def _scrape(self, query: bytes, address: bytes) -> tuple[bytes, bytes]:
        return self._answer(self._service.scrape, query, address)

    def _answer(
        self, make_body: Callable[[bytes, bytes, float], bytes], query: bytes, address: bytes
    ) -> tuple[bytes, bytes]:
        # Status 200 also for a failure: clients read the reason only there (BEP 3 knows no other).
        try:
            return _PLAIN, make_body(query, address, self._clock())
        except RequestError as error:
            self._service.counters.failures += 1
            if (log := self._service.log) is not None:
                family, key = family_of(address), key_of(address, 0)
                log.add((self._clock(), family, key, "http", str(error), None, False))
            return _PLAIN, codec.encode_failure(str(error), error.retry)
        except Exception:  # noqa: BLE001  (a defect of ours: its traceback is for the operator)
            _LOG.exception("an answer failed")
            self._service.counters.failures += 1
            return _PLAIN, codec.encode_failure("the tracker failed to answer; try again later")

    def _page(self, _query: bytes, _address: bytes) -> tuple[bytes, bytes]:
        return b"text/html; charset=utf-8", pages.for_people(self._statistics())

    def _status(self, _query: bytes, _address: bytes) -> tuple[bytes, bytes]:
        return b"application/json", json.dumps(self._statistics()).encode()

    def _metrics(self, _query: bytes, _address: bytes) -> tuple[bytes, bytes]:
        return b"text/plain; version=0.0.4", pages.for_prometheus(self._statistics())

    def _health(self, _query: bytes, _address: bytes) -> tuple[bytes, bytes]:
        return _PLAIN, b"ok\n"
