"""Conditional requests of RFC 9110, section 13: whether what a client has is what we have.

Pure, and for one representation whose entity tag is strong. Sections in the comments are those of
RFC 9110.
"""

import re
from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Final

__all__ = ["MAX_FIELD_CHARS", "if_range_holds", "precondition_status"]

MAX_FIELD_CHARS: Final = 2048
"""A longer field is taken for one that says nothing: no honest player needs it, and reading it
costs us time."""

_TAG = re.compile(r'(?:W/)?"[\x21\x23-\x7e\x80-\xff]*"')
_LISTED_TAG = re.compile(rf"[ \t,]*({_TAG.pattern})[ \t]*(?=,|$)")
_DAY = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_WEEKDAY = "(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day"
_MONTH = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_YEAR = r"[1-9]\d{3}"  # a smaller one would be read as the short form of a later
_TIME = r"\d\d:\d\d:\d\d"
# 5.6.7: one form to write and two that are obsolete but must be read; all three know case.
_DATE = re.compile(
    rf"{_DAY}, \d\d {_MONTH} {_YEAR} {_TIME} GMT"
    rf"|{_WEEKDAY}, \d\d-{_MONTH}-\d\d {_TIME} GMT"
    rf"|{_DAY} {_MONTH} [ \d]\d {_TIME} {_YEAR}",
    re.ASCII,
)


def precondition_status(
    method: str, headers: Mapping[str, str], *, etag: str, last_modified: float | None
) -> int | None:
    """The status that a conditional field forces, in the order of section 13.2.2.

    Args:
        method: the request method, as sent.
        headers: the request's fields, each joined to one line.
        etag: our strong entity tag, with the quotes.
        last_modified: when it last changed (unix seconds), or None if that is not known.

    Returns:
        304 or 412, or None to go on as if there were no condition.
    """
    reads = method in {"GET", "HEAD"}
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
        if not _lists(none_match, etag, weak=True):  # 13.1.2: weak comparison
            return None
        return 304 if reads else 412
    if reads and last_modified is not None:
        modified = _date(headers.get("If-Modified-Since"))
        if modified is not None and int(last_modified) <= modified:
            return 304
    return None


def if_range_holds(value: str | None, *, etag: str, last_modified: float | None) -> bool:
    """Whether the part that a client already has belongs to what we have (section 13.1.5).

    A date must be exactly ours. It counts as strong (8.8.2.2) because a film never changes under
    its entity tag, so that no second holds two versions of it.
    """
    if value is None:
        return True
    if len(value) > MAX_FIELD_CHARS:
        return False
    value = value.strip(" \t")
    if _TAG.fullmatch(value):
        return value == etag  # strong: a weak tag never equals our strong one
    date = _date(value)
    return date is not None and last_modified is not None and date == int(last_modified)


def _lists(tags: str, etag: str, *, weak: bool) -> bool:
    """Whether a list of entity tags (or `*`) names ours; a malformed list names nothing."""
    if len(tags) > MAX_FIELD_CHARS:
        return False
    tags = tags.strip(" \t")
    if tags == "*":
        return True
    found, at = False, 0
    while at < len(tags):
        match = _LISTED_TAG.match(tags, at)
        if match is None:
            return found and not tags[at:].strip(" \t,")  # 5.6.1.2: empty elements mean nothing
        tag = match.group(1)
        found |= (tag.removeprefix("W/") if weak else tag) == etag
        at = match.end()
    return found


def _date(value: str | None) -> int | None:
    """An HTTP date as unix seconds; None if there is none or it cannot be read (13.1.3)."""
    if value is None or len(value) > MAX_FIELD_CHARS:
        return None
    value = value.strip(" \t")
    if _DATE.fullmatch(value) is None:
        return None
    try:
        moment = parsedate_to_datetime(value)
        if moment.tzinfo is None:  # asctime has no zone; 5.6.7 says that it is GMT
            moment = moment.replace(tzinfo=UTC)
        return int(moment.timestamp())
    except (ValueError, OverflowError, TypeError, IndexError):
        return None
