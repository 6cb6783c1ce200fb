"""SRT to WebVTT: what a browser is given, whatever the file is."""

import codecs

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toast.media.errors import SubtitleError
from toast.media.subtitles import MAX_SUBTITLE_BYTES, decode_text, to_webvtt

SRT = """1
00:00:01,000 --> 00:00:02,500
Grüße <i>an</i> alle

2
00:01:00,000 --> 01:00:00,001
zwei
Zeilen
"""
VTT = """WEBVTT

00:00:01.000 --> 00:00:02.500
Grüße <i>an</i> alle

00:01:00.000 --> 01:00:00.001
zwei
Zeilen
"""


def converted(text):
    return to_webvtt(text.encode()).decode()


def cue(text):
    """The text of the one cue of an SRT file with this text."""
    head, _, shown = converted(f"1\n00:00:01,000 --> 00:00:02,000\n{text}\n").partition("\n\n")
    assert head == "WEBVTT"
    timing, _, shown = shown.partition("\n")
    assert timing.startswith("00:00:01.000 --> 00:00:02.000")
    return shown.removesuffix("\n")


@pytest.mark.parametrize(
    "data",
    [
        SRT.encode(),
        codecs.BOM_UTF8 + SRT.encode(),
        SRT.replace("\n", "\r\n").encode(),
        SRT.replace("\n", "\r").encode(),
        SRT.encode("cp1252"),
        SRT.encode("utf-16"),
        codecs.BOM_UTF16_BE + SRT.encode("utf-16-be"),
        SRT.encode("utf-16-le"),
        SRT.encode("utf-16-be"),
        SRT.rstrip("\n").encode(),
        ("\n\n" + SRT).encode(),
    ],
    ids=str,
)
def test_every_encoding_and_line_break_gives_the_same(data):
    assert to_webvtt(data).decode() == VTT


def test_webvtt_stays_what_it_is_but_for_its_encoding():
    assert to_webvtt(codecs.BOM_UTF8 + VTT.encode()).decode() == VTT
    assert to_webvtt(VTT.encode("utf-16")).decode() == VTT
    assert to_webvtt(b"WEBVTT") == b"WEBVTT"


def test_bytes_that_windows_1252_lacks_are_still_read():
    assert decode_text(b"caf\xe9 \x81") == "café \x81"
    assert decode_text(b"\x93caf\xe9\x94") == "\u201ccafé\u201d"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<b>a</b> <U>b</U>", "<b>a</b> <u>b</u>"),
        ('<font color="#ff0000">red</font>', "red"),
        ("a < b & c > d", "a &lt; b &amp; c &gt; d"),
        ("&amp; &lt;i&gt;", "&amp; &lt;i&gt;"),
        ("{\\b1}bold{\\b0}", "bold"),
        ("a --> b", "a --&gt; b"),
        ("<script>x</script>", "x"),
        ("<c.red onclick=x>y</c>", "&lt;c.red onclick=x&gt;y"),
        ("line\n\nafter a gap", "line\nafter a gap"),
        ("  padded  ", "padded"),
    ],
)
def test_what_is_shown(text, shown):
    assert cue(text) == shown


@pytest.mark.parametrize(
    ("mark", "top"),
    [("{\\an8}", True), ("{\\an2}", False), ("{\\a6}", True), ("{\\a2}", False), ("", False)],
)
def test_a_cue_at_the_top_stays_there(mark, top):
    text = converted(f"1\n00:00:01,000 --> 00:00:02,000\n{mark}up\n")
    assert ("00:00:02.000 line:0\nup" in text) is top


@pytest.mark.parametrize(
    ("line", "timing"),
    [
        ("0:0:1.5 --> 0:0:2", "00:00:01.500 --> 00:00:02.000"),
        ("00:01,25 --> 00:02,007", "00:00:01.250 --> 00:00:02.007"),
        ("100:00:00,000-->100:00:01,000", "100:00:00.000 --> 100:00:01.000"),
        ("00:00:01,000 --> 00:00:02,000 X1:40 X2:600", "00:00:01.000 --> 00:00:02.000"),
    ],
)
def test_times_as_people_write_them(line, timing):
    assert converted(f"{line}\nx\n") == f"WEBVTT\n\n{timing}\nx\n"


@pytest.mark.parametrize("line", ["00:00:02,000 --> 00:00:01,000", "00:61:00,0 --> 00:62:00,0"])
def test_a_cue_with_impossible_times_is_left_out(line):
    assert converted(f"{line}\ngone\n\n{SRT}") == VTT


def test_a_number_that_is_spoken_stays():
    """Only the line right before the next cue's times is that cue's number."""
    text = converted(
        "1\n00:00:01,000 --> 00:00:02,000\n10\n\n2\n00:00:03,000 --> 00:00:04,000\n9\n"
    )
    assert text.split("\n")[3::3] == ["10", "9"]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "no subtitles"),
        (b"just words\n", "no subtitles"),
        (b"\x7fELF\x02\x01\0\0" * 40, "no text"),
        (b"\0" * 100, "no text"),
        (b"x" * (MAX_SUBTITLE_BYTES + 1), "smaller"),
        (b"00:01 --> 00:02\nx\n" * 50_001, "cues"),
    ],
)
def test_what_are_no_subtitles_is_said_in_one_line(data, words):
    with pytest.raises(SubtitleError, match=words) as error:
        to_webvtt(data)
    assert "\n" not in str(error.value)


def test_a_cue_is_bounded():
    text = converted("1\n00:00:01,000 --> 00:00:02,000\n" + ("x" * 5000 + "\n") * 100)
    assert len(text) < 33 * 1001 + 100


@settings(deadline=None, max_examples=80)
@given(st.binary(max_size=300) | st.text(max_size=200).map(lambda text: text.encode()))
def test_any_bytes_are_subtitles_or_an_error(data):
    try:
        shown = to_webvtt(data)
    except SubtitleError:
        return
    assert shown.decode().startswith("WEBVTT")


@settings(deadline=None, max_examples=80)
@given(st.text(alphabet="<>/biuc&;-{}\\an8 x\n01:,", max_size=80))
def test_no_text_opens_a_tag_or_a_cue_of_its_own(text):
    """Tags other than <b> <i> <u> never come through, and every cue has times that were given."""
    shown = converted(f"1\n00:00:01,000 --> 00:00:02,000\nfirst {text}\n")
    body = "\n".join(line for line in shown.split("\n") if " --> " not in line)
    for tag in ("<b>", "<i>", "<u>", "</b>", "</i>", "</u>"):
        body = body.replace(tag, "")
    assert "<" not in body
    assert "-->" not in body
