"""Whoever answers ranges is held to the same tables: the planner, our server, anybody's server.

The tables (ranges/*.toml) speak of a film of `length` units; a target may have units of any size,
and `Range` fields are scaled to them unless they are `verbatim`. A request has `rows`, each of one
or more expectations parted by ";", or several lawful choices of those parted by " or ":

    status A B        the status is one of these;    not-status A   it is not this
    whole             200 with all of the film and no Content-Range
    slice A-B         206, one part, not multipart: units A to B, and Content-Range says so
    parts A-B C-D     206, multipart: exactly these units in this order, each part labelled
    multipart         Content-Type is multipart/byteranges
    unsatisfied       416 that tells the size
    length N          Content-Length is N units
    content-range A-B what Content-Range says
    content A-B       these units stand somewhere in the answer, or are all of a part
    empty             no content
    has X, lacks X, is X: V, same X    a field is there, is not, has this value, is as in the 200
"""

import re
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from email.parser import BytesParser
from email.policy import HTTP
from email.utils import formatdate, parsedate_to_datetime
from functools import cached_property
from pathlib import Path
from typing import Any

TABLES = Path(__file__).with_name("ranges")
_SPEC = re.compile(r"(?<![\w-])(\d*)-(\d*)(?![\w-])")


@dataclass(frozen=True)
class Answer:
    """What came: status, fields by their names in lower case, content."""

    status: int
    headers: dict[str, str]
    body: bytes

    @cached_property
    def parts(self):
        """The parts of a multipart answer, read by Python's parser of mail; else none."""
        if not self.headers.get("content-type", "").startswith("multipart/byteranges"):
            return ()
        head = f"Content-Type: {self.headers['content-type']}\r\n\r\n".encode()
        message = BytesParser(policy=HTTP.clone(max_line_length=None)).parsebytes(head + self.body)
        if message.defects or not message.is_multipart():
            return ()
        return tuple((part, part.get_payload(decode=True)) for part in message.get_payload())


Ask = Callable[[str, str, list[tuple[str, str]]], Answer]


@dataclass(frozen=True)
class Target:
    """One that answers.

    Attributes:
        name: as the table of results calls it.
        film: the film that it has, for each place (`at`) that it offers; "film" is the plain one.
        ask: (place, method, fields) -> its answer.
        is_server: whether it writes what only a server can: Date, 405.
    """

    name: str
    film: dict[str, bytes]
    ask: Ask
    is_server: bool = True


@dataclass(frozen=True)
class Verdict:
    """How one row went: None where the target does not offer what the row is about."""

    row: str
    expected: str
    passed: bool | None
    got: str


def load_tables() -> list[dict[str, Any]]:
    return [tomllib.loads(path.read_text("utf-8")) for path in sorted(TABLES.glob("*.toml"))]


def check_ranges(table: dict[str, Any], target: Target, *, ours: bool) -> list[Verdict]:
    """Hold a target to one table; if it is ours, to what the table says that we do instead."""
    verdicts = []
    for number, request in enumerate(table["request"]):
        place = request.get("at", "film")
        film = target.film.get(place)
        offered = film is not None and (target.is_server or request.get("needs") != "server")
        answer = plain = None
        if offered:
            plain = target.ask(place, "GET", [])
            unit = max(1, len(film) // table["length"])
            answer = target.ask(
                place, request.get("method", "GET"), fields_of(request, unit, plain)
            )
        said = request.get("range", "no Range"), *request.get("fields", ())
        asked = f"{request.get('method', 'GET')} {', '.join(said)}"
        for place_in_rows, row in enumerate(request["rows"]):
            expected = request["ours"] if ours and "ours" in request else row
            passed = None
            if answer is not None:
                rules = Rules(answer, plain, film, unit)
                passed = any(
                    all(rules.holds(one) for one in choice.split(";"))
                    for choice in expected.split(" or ")
                )
            verdicts.append(
                Verdict(
                    f"{table['suite']}-{number + 1}.{place_in_rows + 1} {asked}",
                    expected,
                    passed,
                    "" if answer is None else describe(answer),
                )
            )
    return verdicts


def fields_of(request: dict[str, Any], unit: int, plain: Answer) -> list[tuple[str, str]]:
    """The fields to send, for a film whose units have this size and that has these validators."""
    changed = plain.headers.get("last-modified", formatdate(0, usegmt=True))
    moment = parsedate_to_datetime(changed).timestamp()
    values = {
        "{etag}": plain.headers.get("etag", ""),
        "{modified}": changed,
        "{later}": formatdate(moment + 1, usegmt=True),
        "{earlier}": formatdate(moment - 1, usegmt=True),
    }
    lines = [f"Range: {request['range']}"] if "range" in request else []
    fields = []
    for line in lines + request.get("fields", []):
        name, _, value = line.partition(": ")
        if name == "Range" and not request.get("verbatim"):
            value = _SPEC.sub(lambda spec: scaled(spec, unit), value)
        for word, stands_for in values.items():
            value = value.replace(word, stands_for)
        fields.append((name, value))
    return fields


def scaled(spec: re.Match, unit: int) -> str:
    first, last = spec.groups()
    if not first:
        return f"-{int(last) * unit}" if last else "-"
    begin = int(first) * unit
    return f"{begin}-" if not last else f"{begin}-{(int(last) + 1) * unit - 1}"


class Rules:
    """The expectations, for one answer."""

    def __init__(self, answer: Answer, plain: Answer, film: bytes, unit: int) -> None:
        self.answer, self.plain, self.film, self.unit = answer, plain, film, unit

    def holds(self, expectation: str) -> bool:
        word, *rest = expectation.split(maxsplit=1)
        return bool(getattr(self, "_" + word.replace("-", "_"))(*rest))

    def _status(self, statuses):
        return str(self.answer.status) in statuses.split()

    def _not_status(self, status):
        return str(self.answer.status) != status

    def _whole(self):
        return (
            self.answer.status == 200
            and self.answer.body == self.film
            and self._lacks("Content-Range")
        )

    def _slice(self, span):
        return (
            self.answer.status == 206
            and self._content_range(span)
            and not self.answer.headers.get("content-type", "").startswith("multipart/")
            and self.answer.body == self._units(span)
            and self._has_right_length()
        )

    def _parts(self, spans):
        wanted = spans.split()
        return (
            self.answer.status == 206
            and self._lacks("Content-Range")
            and self._has_right_length()
            and len(self.answer.parts) == len(wanted)
            and all(
                self._labelled(span) == headers["Content-Range"]
                and headers["Content-Type"] == self.plain.headers.get("content-type")
                and content == self._units(span)
                for span, (headers, content) in zip(wanted, self.answer.parts, strict=True)
            )
        )

    def _multipart(self):
        kind = self.answer.headers.get("content-type", "")
        return re.match(r"multipart/byteranges; boundary=\S+$", kind)

    def _unsatisfied(self):
        size = f"bytes */{len(self.film)}"
        return self.answer.status == 416 and self.answer.headers.get("content-range") == size

    def _length(self, units):
        return self.answer.headers.get("content-length") == str(int(units) * self.unit)

    def _content_range(self, span):
        return self.answer.headers.get("content-range") == self._labelled(span)

    def _content(self, span):
        contents = [content for _, content in self.answer.parts] or [self.answer.body]
        return any(self._units(span) in content for content in contents)

    def _empty(self):
        return self.answer.body == b""

    def _has(self, name):
        return name.lower() in self.answer.headers

    def _lacks(self, name):
        return name.lower() not in self.answer.headers

    def _is(self, line):
        name, _, value = line.partition(": ")
        return self.answer.headers.get(name.lower()) == value

    def _same(self, name):
        return self.answer.headers.get(name.lower()) == self.plain.headers.get(name.lower())

    def _has_right_length(self):
        return int(self.answer.headers["content-length"]) == len(self.answer.body)

    def _ends(self, span):
        first, last = map(int, span.split("-"))
        return first * self.unit, (last + 1) * self.unit

    def _units(self, span):
        start, end = self._ends(span)
        return self.film[start:end]

    def _labelled(self, span):
        start, end = self._ends(span)
        return f"bytes {start}-{end - 1}/{len(self.film)}"


def describe(answer: Answer) -> str:
    """One line that says what an answer was."""
    words = [str(answer.status)]
    words += [answer.headers[name] for name in ("content-range",) if name in answer.headers]
    if answer.parts:
        words.append("parts " + ", ".join(str(head["Content-Range"]) for head, _ in answer.parts))
    return f"{' '.join(words)}, {len(answer.body)} B"


def count(verdicts: list[Verdict]) -> tuple[int, int]:
    """(rows that passed, rows that the target offers)."""
    tried = [verdict.passed for verdict in verdicts if verdict.passed is not None]
    return sum(tried), len(tried)
