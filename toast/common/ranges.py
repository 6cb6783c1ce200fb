"""Answering a request for parts of a film: the rules of RFC 9110 for one representation.

Pure: a method and header fields in, a plan out. The VoD server and the viewer's gateway share it,
so that both answer every player alike. Sections in the comments are those of RFC 9110.

To send a plan: answer with `plan.status` and `plan.headers` (Content-Length among them), then

    for part in plan.parts:
        send(part.head)
        send(film[part.start : part.end])
    send(plan.tail)

This holds for every plan: one that has no content has no parts, and one that is not multipart has
one part without a head, and no tail. Who asks with `multipart=False` (the default) need not know
of parts: there `film[plan.start : plan.end]` is the content. Give `content_type` and the headers
hold Content-Type too, which for a multipart answer is not that of the film; do not set it again.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import formatdate
from typing import Final

from toast.common.multipart import Framing, Part
from toast.common.preconditions import MAX_FIELD_CHARS, if_range_holds, precondition_status

__all__ = ["MAX_FIELD_CHARS", "MAX_RANGES", "Part", "RangePlan", "plan_range"]

MAX_RANGES: Final = 32
"""Most ranges of one request that are answered one by one: each may cost a disk a seek."""

_SPEC = re.compile(r"(\d*)-(\d*)", re.ASCII)


@dataclass(frozen=True, slots=True)
class RangePlan:
    """What to answer, under this status.

    Attributes:
        status: 200, 206, 304, 412 or 416.
        start: first byte of the film to send; of a multipart answer, the lowest of all parts.
        end: one past the last byte to send, or past the highest of all parts; equal to `start`
            where the answer has no content.
        headers: the fields that the rules decide: Accept-Ranges, Content-Length, Content-Range,
            ETag, Last-Modified, and Content-Type if it was told. On HEAD, Content-Length is that
            of the GET.
        parts: the slices to send, in this order, each after its head.
        tail: what to send after the last part.
    """

    status: int
    start: int
    end: int
    headers: Mapping[str, str] = field(default_factory=dict)
    parts: tuple[Part, ...] = ()
    tail: bytes = b""


def plan_range(
    method: str,
    headers: Mapping[str, str],
    *,
    length: int,
    etag: str,
    last_modified: float | None = None,
    content_type: str | None = None,
    multipart: bool = False,
    boundary: str | None = None,
    max_ranges: int = MAX_RANGES,
    gap: int | None = None,
) -> RangePlan:
    """Plan the answer to a GET or HEAD of one representation.

    A malformed Range field is ignored, and so is a wasteful one: one that asks for more ranges
    than `max_ranges` or, overlapping itself, for more bytes than there are. Section 14.2 allows to
    ignore or to refuse those. Ignored, they are answered with the whole, which everybody may have
    by asking for it: nothing is gained by the abuse, and an honest client still gets its bytes.

    Ranges that touch, or whose gap costs less to send than the head of another part, are joined
    (15.3.7.2). So a multipart answer is never longer than the film, one head and the tail.

    Args:
        method: the request method, as sent.
        headers: the request's fields; names in their usual spelling, or a mapping that does not
            care about case. A field sent on several lines is joined with commas beforehand.
        length: bytes of the representation, >= 0.
        etag: its strong entity tag, with the quotes.
        last_modified: when it last changed (unix seconds), or None if that is not known.
        content_type: its media type, or None if the caller adds that field itself.
        multipart: whether several ranges may be answered with multipart/byteranges; without, they
            are answered with the whole, as section 14.2 allows.
        boundary: of the multipart answer; by default derived from `etag` (see `Framing`).
        max_ranges: most satisfiable ranges of one request; 0 ignores every Range field.
        gap: most bytes between two ranges that are sent to join them; by default those that a
            part's head would cost. 0 joins those that touch or overlap.

    Returns:
        The plan; never an error, whatever the fields hold.

    Raises:
        ValueError: the boundary given holds what a boundary must not hold.
    """
    validators = {"Accept-Ranges": "bytes", "ETag": etag}
    if last_modified is not None:
        validators["Last-Modified"] = formatdate(last_modified, usegmt=True)
    refusal = precondition_status(method, headers, etag=etag, last_modified=last_modified)
    if refusal is not None:
        return RangePlan(refusal, 0, 0, validators)
    typed = {} if content_type is None else {"Content-Type": content_type}
    described = validators | typed | {"Content-Length": str(length)}
    if method == "HEAD":  # 14.2: Range is defined for GET alone
        return RangePlan(200, 0, 0, described)
    whole = RangePlan(200, 0, length, described, (Part(0, length),) if length else ())
    ranged = method == "GET" and if_range_holds(
        headers.get("If-Range"), etag=etag, last_modified=last_modified
    )
    asked = headers.get("Range") if ranged else None
    slices = _slices(asked, length, most=max_ranges, several=multipart)
    if slices is None:
        return whole
    if not slices:  # 15.5.17; the tag stays useful to whoever wants to ask again
        unsatisfied = {"Content-Range": f"bytes */{length}", "Content-Length": "0"}
        return RangePlan(416, 0, 0, validators | unsatisfied)
    if len(slices) > 1:
        framing = Framing(length=length, etag=etag, content_type=content_type, boundary=boundary)
        slices = _join(slices, framing.overhead if gap is None else gap)
        if len(slices) > 1:
            return _several(slices, framing, validators)
    (start, end), *_ = slices
    partial = {
        "Content-Range": f"bytes {start}-{end - 1}/{length}",
        "Content-Length": str(end - start),
    }
    return RangePlan(206, start, end, validators | typed | partial, (Part(start, end),))


def _slices(
    asked: str | None, length: int, *, most: int, several: bool
) -> list[tuple[int, int]] | None:
    """The slices [start, end) that a Range field asks for and that there are; None to ignore it."""
    # An empty film has no byte that a range could name: the whole of it satisfies everyone.
    if asked is None or length == 0 or most == 0:
        return None
    specs = _parse(asked)
    if not specs or (len(specs) > 1 and not several):
        return None
    slices = [found for found in (_resolve(spec, length) for spec in specs) if found is not None]
    wasteful = len(slices) > most or sum(end - start for start, end in slices) > length
    return None if wasteful else slices


def _several(
    slices: list[tuple[int, int]], framing: Framing, validators: Mapping[str, str]
) -> RangePlan:
    """The multipart answer; it has no Content-Range of its own (15.3.7.2)."""
    parts = framing.parts(slices)
    size = sum(len(part.head) + part.end - part.start for part in parts) + len(framing.tail)
    fields = {"Content-Type": framing.content_type, "Content-Length": str(size)}
    lowest = min(part.start for part in parts)
    highest = max(part.end for part in parts)
    return RangePlan(206, lowest, highest, {**validators, **fields}, parts, framing.tail)


def _parse(asked: str) -> list[tuple[int | None, int | None]]:
    """The (first, last) that a Range field asks for; none if the field is to be ignored."""
    if len(asked) > MAX_FIELD_CHARS:
        return []
    unit, _, rest = asked.partition("=")
    if unit.strip(" \t").lower() != "bytes":  # 14.1: units know no case
        return []
    specs: list[tuple[int | None, int | None]] = []
    for item in rest.split(","):
        text = item.strip(" \t")
        if not text:  # 5.6.1.2: empty elements mean nothing
            continue
        match = _SPEC.fullmatch(text)
        if match is None:
            return []
        first, last = (int(digits) if digits else None for digits in match.groups())
        nothing = first is None and last is None
        backwards = first is not None and last is not None and last < first
        if nothing or backwards:  # 14.1.1: invalid, and with it the whole set
            return []
        specs.append((first, last))
    return specs


def _resolve(spec: tuple[int | None, int | None], length: int) -> tuple[int, int] | None:
    """The bytes [start, end) that a spec names (14.1.2); None if it cannot be satisfied."""
    first, last = spec
    if first is None:
        start, end = length - min(last or 0, length), length
    else:
        start, end = first, length if last is None else min(last + 1, length)
    return (start, end) if start < end else None


def _join(slices: list[tuple[int, int]], gap: int) -> list[tuple[int, int]]:
    """Slices with those joined that overlap, touch or lie at most a gap apart.

    Each keeps the place of the first request that went into it (15.3.7.2).
    """
    joined: list[tuple[int, int, int]] = []  # start, end, place in the request
    for place, (start, end) in sorted(enumerate(slices), key=lambda item: item[1]):
        if joined and start <= joined[-1][1] + gap:
            begin, reached, earlier = joined[-1]
            joined[-1] = (begin, max(reached, end), min(earlier, place))
        else:
            joined.append((start, end, place))
    joined.sort(key=lambda item: item[2])
    return [(start, end) for start, end, _ in joined]
