"""Answering a request for a part of a film: the rules of RFC 9110 for one representation.

Pure: a method and header fields in, a plan out. The VoD server and the viewer's gateway share it,
so that both answer every player alike. Sections in the comments are those of RFC 9110.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC
from email.utils import formatdate, parsedate_to_datetime
from typing import Final

__all__ = ["MAX_FIELD_CHARS", "RangePlan", "plan_range"]

MAX_FIELD_CHARS: Final = 1024
"""A longer field is ignored: no honest player needs it, and reading it costs us time."""

_SPEC = re.compile(r"(\d*)-(\d*)", re.ASCII)
_ETAG = re.compile(r'(W/)?"[\x21\x23-\x7e\x80-\xff]*"')


@dataclass(frozen=True, slots=True)
class RangePlan:
    """What to answer: bytes [start, end) of the film under this status.

    Attributes:
        status: 200, 206, 304, 412 or 416.
        start: first byte of the film to send.
        end: one past the last byte to send; equal to `start` where the answer has no content.
        headers: the fields that the rules decide: Accept-Ranges, Content-Length, Content-Range,
            ETag, Last-Modified. On HEAD, Content-Length is that of the GET.
    """

    status: int
    start: int
    end: int
    headers: Mapping[str, str] = field(default_factory=dict)


def plan_range(
    method: str,
    headers: Mapping[str, str],
    *,
    length: int,
    etag: str,
    last_modified: float | None = None,
) -> RangePlan:
    """Plan the answer to a GET or HEAD of one representation.

    More than one range is answered with the whole, as section 14.2 allows; so is a malformed one.

    Args:
        method: the request method, as sent.
        headers: the request's fields; names in their usual spelling, or a mapping that does not
            care about case. A field sent on several lines is joined with commas beforehand.
        length: bytes of the representation, >= 0.
        etag: its strong entity tag, with the quotes.
        last_modified: when it last changed (unix seconds), or None if that is not known.

    Returns:
        The plan; never an error, whatever the fields hold.
    """
    validators = {"Accept-Ranges": "bytes", "ETag": etag}
    if last_modified is not None:
        validators["Last-Modified"] = formatdate(last_modified, usegmt=True)
    refusal = _precondition(headers, etag, last_modified)
    if refusal is not None:
        return RangePlan(refusal, 0, 0, validators)
    whole = RangePlan(200, 0, length, validators | {"Content-Length": str(length)})
    if method == "HEAD":  # 14.2: Range is defined for GET alone
        return RangePlan(200, 0, 0, whole.headers)
    asked = headers.get("Range")
    # An empty film has no byte that a range could name: the whole of it satisfies everyone.
    if method != "GET" or asked is None or length == 0:
        return whole
    spec = _single_spec(asked)
    if spec is None or not _if_range_holds(headers.get("If-Range"), etag, last_modified):
        return whole
    start, end = _resolve(spec, length)
    if start >= end:  # 15.5.17; the tag stays useful to whoever wants to ask again
        unsatisfied = {"Content-Range": f"bytes */{length}", "Content-Length": "0"}
        return RangePlan(416, 0, 0, validators | unsatisfied)
    partial = {
        "Content-Range": f"bytes {start}-{end - 1}/{length}",
        "Content-Length": str(end - start),
    }
    return RangePlan(206, start, end, validators | partial)


def _single_spec(asked: str) -> tuple[int | None, int | None] | None:
    """The one (first, last) that a Range field asks for; None if it is to be ignored."""
    if len(asked) > MAX_FIELD_CHARS:
        return None
    unit, _, rest = asked.partition("=")
    specs = [part for part in (item.strip(" \t") for item in rest.split(",")) if part]  # 5.6.1.2
    if unit.strip(" \t").lower() != "bytes" or len(specs) != 1:  # 14.1: units know no case
        return None
    match = _SPEC.fullmatch(specs[0])
    if match is None:
        return None
    first, last = (int(digits) if digits else None for digits in match.groups())
    nothing = first is None and last is None
    backwards = first is not None and last is not None and last < first
    return None if nothing or backwards else (first, last)  # 14.1.1: invalid, hence ignored


def _resolve(spec: tuple[int | None, int | None], length: int) -> tuple[int, int]:
    """The bytes [start, end) that a spec names (14.1.2); empty if it cannot be satisfied."""
    first, last = spec
    if first is None:
        suffix = min(last or 0, length)
        return length - suffix, length
    return first, length if last is None else min(last + 1, length)


def _precondition(headers: Mapping[str, str], etag: str, last_modified: float | None) -> int | None:
    """The status that a conditional field forces, in the order of 13.2.2; None to go on."""
    match = headers.get("If-Match")
    if match is not None:
        if not _lists(match, etag, weak=False):  # 13.1.1: strong comparison
            return 412
    elif last_modified is not None:
        unmodified = _date(headers.get("If-Unmodified-Since"))
        if unmodified is not None and int(last_modified) > unmodified:
            return 412
    none_match = headers.get("If-None-Match")
    if none_match is not None:
        return 304 if _lists(none_match, etag, weak=True) else None  # 13.1.2: weak comparison
    if last_modified is not None:
        modified = _date(headers.get("If-Modified-Since"))
        if modified is not None and int(last_modified) <= modified:
            return 304
    return None


def _lists(tags: str, etag: str, *, weak: bool) -> bool:
    """Whether a list of entity tags (or `*`) names ours."""
    if tags.strip() == "*":
        return True
    if len(tags) > MAX_FIELD_CHARS:
        return False
    found = (match.group(0) for match in _ETAG.finditer(tags))
    return any((tag.removeprefix("W/") if weak else tag) == etag for tag in found)


def _if_range_holds(value: str | None, etag: str, last_modified: float | None) -> bool:
    """Whether the part that the client already has belongs to what we have (13.1.5)."""
    if value is None:
        return True
    if _ETAG.fullmatch(value.strip()):
        return value.strip() == etag  # strong: a weak tag never equals our strong one
    date = _date(value)
    return date is not None and last_modified is not None and date == int(last_modified)


def _date(value: str | None) -> int | None:
    """An HTTP date as unix seconds; None if there is none or it cannot be read (13.1.3)."""
    if value is None or len(value) > MAX_FIELD_CHARS:
        return None
    try:
        moment = parsedate_to_datetime(value.strip())
        if moment.tzinfo is None:  # asctime has no zone; 5.6.7 says that it is GMT
            moment = moment.replace(tzinfo=UTC)
        return int(moment.timestamp())
    except (ValueError, OverflowError, TypeError, IndexError):
        return None
