"""Several ranges in one request: which parts, in which order, framed how."""

import asyncio
from email.parser import BytesParser
from email.policy import HTTP

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toast.common.multipart import Framing
from toast.common.ranges import MAX_FIELD_CHARS, MAX_RANGES, plan_range

ETAG = '"film"'
LENGTH = 10_000


def plan(asked, **options):
    options = {"length": LENGTH, "etag": ETAG, "multipart": True} | options
    return plan_range("GET", {"Range": asked}, **options)


def slices(answer):
    return [(part.start, part.end) for part in answer.parts]


def sent(answer, film):
    """The content as the module's docstring says to send it."""
    body = b"".join(part.head + film[part.start : part.end] for part in answer.parts)
    return body + answer.tail


def read_parts(content_type, body):
    """The parts of a multipart body, by Python's own parser of mail: (headers, content)."""
    head = f"Content-Type: {content_type}\r\n\r\n".encode()
    message = BytesParser(policy=HTTP.clone(max_line_length=None)).parsebytes(head + body)
    assert not message.defects
    assert message.is_multipart()
    return [(part, part.get_payload(decode=True)) for part in message.get_payload()]


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("bytes=0-9,1000-1009", [(0, 10), (1000, 1010)]),
        ("bytes=1000-1009,0-9", [(1000, 1010), (0, 10)]),  # as asked, not as they lie
        ("bytes=-10,0-0", [(9990, 10_000), (0, 1)]),
        ("bytes=0-9, ,\t5000- ,", [(0, 10), (5000, 10_000)]),
        ("bytes=0-9,20000-,1000-1009", [(0, 10), (1000, 1010)]),  # what is not there is left out
        ("bytes=0-9,-0,1000-1009", [(0, 10), (1000, 1010)]),
        ("bytes=5000-5009,0-9,5010-5019", [(5000, 5020), (0, 10)]),  # the place of the first
        ("bytes=2000-2009,0-9,1000-1009", [(2000, 2010), (0, 10), (1000, 1010)]),
    ],
)
def test_several_ranges_become_parts_in_the_order_asked(asked, expected):
    answer = plan(asked)

    assert answer.status == 206
    assert slices(answer) == expected
    assert (answer.start, answer.end) == (
        min(start for start, _ in expected),
        max(end for _, end in expected),
    )
    assert "Content-Range" not in answer.headers
    assert answer.headers["Content-Type"].startswith("multipart/byteranges; boundary=")


@pytest.mark.parametrize(
    ("asked", "start", "end"),
    [
        ("bytes=0-9,10-19", 0, 20),  # they touch
        ("bytes=10-19,0-9", 0, 20),
        ("bytes=0-9,5-14", 0, 15),  # they overlap
        ("bytes=0-99,10-19", 0, 100),  # one holds the other
        ("bytes=0-9,30-39", 0, 40),  # the gap is cheaper than a head
        ("bytes=0-9,20000-", 0, 10),  # one is left
        ("bytes=-0,-5", 9995, 10_000),
        ("bytes=0-0,2-2,1-1", 0, 3),
        ("bytes=0-4999,5000-9999", 0, 10_000),
    ],
)
def test_what_comes_down_to_one_range_is_a_plain_206(asked, start, end):
    answer = plan(asked)

    assert (answer.status, answer.start, answer.end) == (206, start, end)
    assert slices(answer) == [(start, end)]
    assert answer.parts[0].head == answer.tail == b""
    assert answer.headers["Content-Range"] == f"bytes {start}-{end - 1}/{LENGTH}"
    assert answer.headers["Content-Length"] == str(end - start)
    assert "Content-Type" not in answer.headers


@pytest.mark.parametrize(
    "asked",
    [
        "bytes=0-,1-,2-,3-",
        "bytes=0-,0-0",
        "bytes=-10000,-1",
        "bytes=0-9,5-4",  # one malformed range spoils the set
        "bytes=0-9,a-b",
        "bytes=0-9 20-29",
        "bytes=" + ",".join(f"{200 * n}-{200 * n}" for n in range(MAX_RANGES + 1)),
        "bytes=0-9,1000-1009" + "," * MAX_FIELD_CHARS,
    ],
)
def test_wasteful_and_malformed_sets_are_ignored(asked):
    answer = plan(asked)

    assert (answer.status, slices(answer)) == (200, [(0, LENGTH)])


def test_as_many_ranges_as_are_allowed_are_answered():
    spans = [(200 * n, 200 * n + 1) for n in range(MAX_RANGES)]

    answer = plan("bytes=" + ",".join(f"{start}-{start}" for start, _ in spans) + ",99999-")

    assert slices(answer) == spans


@pytest.mark.parametrize("asked", ["bytes=10000-,20000-", "bytes=-0,10000-", "bytes=-0,-0"])
def test_a_set_without_a_satisfiable_range_is_416(asked):
    answer = plan(asked)

    assert (answer.status, answer.parts, answer.tail) == (416, (), b"")
    assert answer.headers["Content-Range"] == f"bytes */{LENGTH}"


def test_without_multipart_several_ranges_are_the_whole():
    assert plan("bytes=0-9,1000-1009", multipart=False).status == 200


def test_ranges_can_be_switched_off():
    assert plan("bytes=0-9", max_ranges=0).status == 200


def test_a_gap_is_bridged_exactly_as_long_as_that_is_cheaper():
    framing = Framing(length=LENGTH, etag=ETAG, content_type=None)

    bridged = plan(f"bytes=0-9,{10 + framing.overhead}-9999")
    apart = plan(f"bytes=0-9,{11 + framing.overhead}-9999")

    assert len(bridged.parts) == 1
    assert len(apart.parts) == 2
    assert len(apart.parts[1].head) <= framing.overhead
    assert len(plan("bytes=0-9,11-19", gap=0).parts) == 2
    assert len(plan("bytes=0-9,10-19", gap=0).parts) == 1


def test_the_frame_is_that_of_the_standard():
    answer = plan("bytes=0-1,7000-7001", content_type="video/mp4", boundary="X")

    assert sent(answer, b"ab" * 5000) == (
        b"--X\r\nContent-Type: video/mp4\r\nContent-Range: bytes 0-1/10000\r\n\r\nab"
        b"\r\n--X\r\nContent-Type: video/mp4\r\nContent-Range: bytes 7000-7001/10000\r\n\r\nab"
        b"\r\n--X--\r\n"
    )
    assert answer.headers["Content-Type"] == "multipart/byteranges; boundary=X"


def test_the_media_type_is_the_film_s_unless_the_answer_is_multipart():
    typed = {"content_type": "video/webm"}

    assert plan("bytes=0-9", **typed).headers["Content-Type"] == "video/webm"
    assert plan("", **typed).headers["Content-Type"] == "video/webm"
    assert "Content-Type" not in plan("bytes=99999-", **typed).headers
    head = plan_range("HEAD", {}, length=9, etag=ETAG, content_type="video/webm")
    assert head.headers["Content-Type"] == "video/webm"


def test_the_boundary_is_the_same_for_a_film_and_another_for_another():
    first = plan("bytes=0-9,1000-1009").headers["Content-Type"]

    assert plan("bytes=5-6,3000-").headers["Content-Type"] == first
    assert plan("bytes=0-9,1000-1009", etag='"other"').headers["Content-Type"] != first


@pytest.mark.parametrize("boundary", ["", "a b", 'a"', "a\r\nX: y", "a,b", "é", "x" * 71])
def test_a_boundary_that_could_break_the_frame_is_refused(boundary):
    with pytest.raises(ValueError, match="boundary"):
        plan("bytes=0-1,7000-7001", boundary=boundary)


def test_single_answers_can_be_sent_as_parts_too():
    assert slices(plan("bytes=3-7")) == [(3, 8)]
    assert slices(plan("")) == [(0, LENGTH)]
    assert plan("", length=0).parts == ()
    assert plan_range("HEAD", {}, length=9, etag=ETAG).parts == ()


_positions = st.one_of(st.integers(0, 3000), st.integers(0, 10**20))
_spec = st.one_of(
    st.builds("{}-{}".format, _positions, _positions),
    st.builds(lambda start, size: f"{start}-{start + size}", _positions, st.integers(0, 300)),
    st.builds("{}-".format, _positions),
    st.builds("-{}".format, _positions),
    st.sampled_from(["", " ", "-", "x-y", "5"]),
)


@given(
    asked=st.lists(_spec, min_size=1, max_size=12).map(lambda specs: "bytes=" + ",".join(specs)),
    film=st.integers(0, 3000).flatmap(lambda size: st.binary(min_size=size, max_size=size)),
    gap=st.sampled_from([None, 0]),
    content_type=st.sampled_from([None, "video/mp4"]),
)
def test_any_set_of_ranges_is_answered_with_slices_that_an_independent_parser_reads(
    asked, film, gap, content_type
):
    """Every byte asked for and there is in the answer, in order, each once, framed and counted."""
    answer = plan(asked, length=len(film), gap=gap, content_type=content_type)
    body = sent(answer, film)

    assert len(body) == int(answer.headers["Content-Length"])
    if answer.status == 200:
        assert body == film
        return
    if answer.status == 416:
        assert body == b""
        return
    assert answer.status == 206
    wanted = wanted_slices(asked, len(film))
    covered = {at for part in answer.parts for at in range(part.start, part.end)}
    assert len(covered) == sum(part.end - part.start for part in answer.parts)  # none twice
    assert all(at in covered for start, end in wanted for at in range(start, end))
    if gap == 0:  # and no other
        assert covered == {at for start, end in wanted for at in range(start, end)}
    # The parts come in the order in which their first members were asked for.
    places = [
        next(place for place, (start, _) in enumerate(wanted) if part.start <= start < part.end)
        for part in answer.parts
    ]
    assert places == sorted(places)
    if len(answer.parts) == 1:
        assert "Content-Range" in answer.headers
        return
    if gap is None:
        assert len(body) <= len(film) + len(answer.parts[0].head) + len(answer.tail)
    read = read_parts(answer.headers["Content-Type"], body)
    assert len(read) == len(answer.parts)
    for part, (headers, content) in zip(answer.parts, read, strict=True):
        assert headers["Content-Range"] == f"bytes {part.start}-{part.end - 1}/{len(film)}"
        assert headers["Content-Type"] == content_type
        assert content == film[part.start : part.end]


def wanted_slices(asked, length):
    """What a valid Range field names, read in another way than the planner's."""
    found = []
    for item in asked.removeprefix("bytes=").split(","):
        first, _, last = item.strip().partition("-")
        if not item.strip():
            continue
        if first == "":
            span = range(length)[max(0, length - int(last)) :]
        else:
            span = range(length)[int(first) : int(last) + 1 if last else None]
        if span:
            found.append((span.start, span.stop))
    return found


async def test_aiohttp_s_client_reads_it_too():
    film = bytes(n % 251 for n in range(LENGTH))
    answer = plan("bytes=0-999,5000-5999,-500", content_type="video/mp4")
    stream = aiohttp.StreamReader(_NoProtocol(), 2**16, loop=asyncio.get_running_loop())
    stream.feed_data(sent(answer, film))
    stream.feed_eof()

    reader = aiohttp.MultipartReader({"Content-Type": answer.headers["Content-Type"]}, stream)

    read = []
    while (part := await reader.next()) is not None:
        read.append((part.headers["Content-Range"], bytes(await part.read())))
    assert read == [
        ("bytes 0-999/10000", film[:1000]),
        ("bytes 5000-5999/10000", film[5000:6000]),
        ("bytes 9500-9999/10000", film[9500:]),
    ]


class _NoProtocol:
    """Where a stream that is all there already would pause its reading."""

    _reading_paused = False

    def pause_reading(self):
        pass

    def resume_reading(self, **_):
        pass
