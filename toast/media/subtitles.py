"""Subtitles as browsers read them: SubRip (SRT) to WebVTT, in whatever encoding they come. Pure.

The files come from strangers: size, cues and lines are bounded, and what is no text is refused.
WebVTT is that of W3C's "WebVTT: The Web Video Text Tracks Format".
"""

import codecs
import html
import re
from collections.abc import Iterator
from typing import Final

from toast.media.errors import SubtitleError

__all__ = ["MAX_SUBTITLE_BYTES", "decode_text", "to_webvtt"]

MAX_SUBTITLE_BYTES: Final = 4 * 1024 * 1024
"""Subtitles of a long film are about 200 kB."""
_MAX_CUES: Final = 50_000
_MAX_CUE_LINES: Final = 32
_MAX_LINE_CHARS: Final = 1000

_BOMS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_TIME = r"(?:(\d{1,3}):)?(\d{1,2}):(\d{1,2})(?:[,.](\d{1,3}))?"
_TIMING = re.compile(rf"\s*{_TIME}\s*-->\s*{_TIME}(?:\s.*)?", re.ASCII)
_POSITION = re.compile(r"\{\\a(n?)(\d{1,2})\}", re.ASCII)
_OVERRIDE = re.compile(r"\{\\[^{}]*\}")
_TAG = re.compile(r"</?([a-zA-Z]+)(?:\s[^<>]*)?>", re.ASCII)
_KEPT_TAGS: Final = frozenset("biu")
_TOP: Final = {"n": (7, 8, 9), "": (5, 6, 7)}  # {\an8} counts as a keypad does, {\a6} as SSA did


def to_webvtt(data: bytes) -> bytes:
    """Subtitles of either kind as WebVTT in UTF-8.

    Italics, bold and underlined stay; colours, fonts and positions other than "at the top" go.
    Cues that cannot be read are left out.

    Args:
        data: the file.

    Raises:
        SubtitleError: it is too large, no text, or holds no cue.
    """
    text = decode_text(data)
    if re.match(r"WEBVTT(?:[ \t\n]|$)", text):
        return text.encode()
    cues = list(_cues(text.split("\n")))
    if not cues:
        raise SubtitleError("there are no subtitles in this file: neither SRT nor WebVTT")
    return ("WEBVTT\n\n" + "\n\n".join(cues) + "\n").encode()


def decode_text(data: bytes) -> str:
    r"""The text of a file whose encoding nothing tells, with line breaks "\n".

    A byte order mark decides; then UTF-8, if that is what it is; then UTF-16, if every other byte
    is nearly always zero; else Windows-1252, which is what most of such files in the West are in.

    Raises:
        SubtitleError: it is too large, or no text.
    """
    if len(data) > MAX_SUBTITLE_BYTES:
        raise SubtitleError(f"this file has {len(data)} bytes: subtitles are smaller")
    text = _decode(data)
    if "\0" in text:
        raise SubtitleError("this file is no text")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _decode(data: bytes) -> str:
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding, "replace")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = None
    # UTF-16 of western letters is valid UTF-8, too: every other character is then a zero.
    for first_zero, encoding in ((1, "utf-16-le"), (0, "utf-16-be")):
        sample = data[first_zero:4096:2]
        if len(sample) >= 8 and sample.count(0) > len(sample) * 0.7:
            return data.decode(encoding, "replace")
    # Windows-1252 leaves five bytes undefined; to Latin-1 they are control characters.
    return data.decode("latin-1" if _has_undefined(data) else "cp1252") if text is None else text


def _has_undefined(data: bytes) -> bool:
    return any(byte in data for byte in (0x81, 0x8D, 0x8F, 0x90, 0x9D))


def _cues(lines: list[str]) -> Iterator[str]:
    """The cues of an SRT file. What decides is the line with the times, not blank lines."""
    timings = [(at, match) for at, line in enumerate(lines) if (match := _TIMING.fullmatch(line))]
    if len(timings) > _MAX_CUES:
        raise SubtitleError(f"this file has {len(timings)} cues: subtitles have fewer")
    ends = [*(at for at, _ in timings), len(lines)][1:]
    for (at, timing), end in zip(timings, ends, strict=True):
        begin, until = _seconds(timing.groups()[:4]), _seconds(timing.groups()[4:])
        if begin is None or until is None or until <= begin:
            continue
        body = lines[at + 1 : end]
        if end < len(lines):
            body = _without_number(body)
        text = [line for line in (line.strip() for line in body[:_MAX_CUE_LINES]) if line]
        if text:
            top = _is_at_top(text[0])
            shown = "\n".join(_cue_text(line[:_MAX_LINE_CHARS]) for line in text)
            yield f"{_clock(begin)} --> {_clock(until)}{' line:0' if top else ''}\n{shown}"


def _without_number(lines: list[str]) -> list[str]:
    """The lines before a cue, without the number of that cue."""
    if lines and lines[-1].strip().isdigit():
        return lines[:-1]
    return lines


def _is_at_top(line: str) -> bool:
    match = _POSITION.search(line)
    return match is not None and int(match.group(2)) in _TOP[match.group(1)]


def _cue_text(line: str) -> str:
    """One line with the tags that WebVTT has, closed or not; anything else is text, or gone."""
    line = _OVERRIDE.sub("", line)
    shown, at = [], 0
    for tag in _TAG.finditer(line):
        shown.append(_escaped(line[at : tag.start()]))
        name = tag.group(1).lower()
        if name in _KEPT_TAGS:
            shown.append(f"</{name}>" if tag.group().startswith("</") else f"<{name}>")
        at = tag.end()
    return "".join([*shown, _escaped(line[at:])])


def _escaped(text: str) -> str:
    # Files hold "&amp;" as well as "&": read first, so that neither is written twice.
    return html.escape(html.unescape(text), quote=False)


def _seconds(parts: tuple[str | None, ...]) -> float | None:
    hours, minutes, seconds, fraction = (part or "0" for part in parts)
    if int(minutes) > 59 or int(seconds) > 59:
        return None
    whole = int(hours) * 3600 + int(minutes) * 60 + int(seconds)
    return whole + int(fraction.ljust(3, "0")) / 1000


def _clock(seconds: float) -> str:
    milliseconds = round(seconds * 1000)
    minutes, rest = divmod(milliseconds, 60_000)
    return f"{minutes // 60:02d}:{minutes % 60:02d}:{rest // 1000:02d}.{rest % 1000:03d}"
