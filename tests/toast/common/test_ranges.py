"""The range rules of RFC 9110, as a table and against any input."""

from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toast.common.ranges import MAX_FIELD_CHARS, plan_range

ETAG = '"film"'
CHANGED = 1_000_000_000.75
CHANGED_DATE = "Sun, 09 Sep 2001 01:46:40 GMT"
LATER_DATE = "Sun, 09 Sep 2001 01:46:41 GMT"
EARLIER_DATE = "Sun, 09 Sep 2001 01:46:39 GMT"


def plan(headers=None, *, method="GET", length=100, last_modified=CHANGED, multipart=False):
    return plan_range(
        method,
        headers or {},
        length=length,
        etag=ETAG,
        last_modified=last_modified,
        multipart=multipart,
    )


@pytest.mark.parametrize(
    ("asked", "start", "end"),
    [
        ("bytes=0-0", 0, 1),
        ("bytes=0-9", 0, 10),
        ("bytes=10-", 10, 100),
        ("bytes=99-99", 99, 100),
        ("bytes=99-", 99, 100),
        ("bytes=0-", 0, 100),
        ("bytes=-1", 99, 100),
        ("bytes=-100", 0, 100),
        ("bytes=-101", 0, 100),  # a longer suffix is the whole
        ("bytes=50-1000", 50, 100),  # the last byte is clamped
        ("bytes=5-" + "9" * 400, 5, 100),
        ("BYTES=0-9", 0, 10),  # unit names know no case
        ("Bytes=0-9", 0, 10),
        ("bytes=0-9,", 0, 10),  # empty list elements
        ("bytes=,0-9", 0, 10),
        ("bytes=, ,0-9 ,,", 0, 10),
        ("bytes= 0-9 ", 0, 10),
        ("bytes=\t0-9", 0, 10),
        ("bytes=007-0009", 7, 10),
    ],
)
def test_one_satisfiable_range_is_answered_with_it(asked, start, end):
    answer = plan({"Range": asked})

    assert (answer.status, answer.start, answer.end) == (206, start, end)
    assert answer.headers["Content-Range"] == f"bytes {start}-{end - 1}/100"
    assert answer.headers["Content-Length"] == str(end - start)
    assert answer.headers["ETag"] == ETAG
    assert answer.headers["Last-Modified"] == CHANGED_DATE
    assert answer.headers["Accept-Ranges"] == "bytes"


@pytest.mark.parametrize(
    "asked",
    ["bytes=100-", "bytes=100-200", "bytes=-0", "bytes=" + "9" * 300 + "-", "bytes=100-,"],
)
def test_a_range_outside_the_film_is_416_and_tells_the_size(asked):
    answer = plan({"Range": asked})

    assert (answer.status, answer.start, answer.end) == (416, 0, 0)
    assert answer.headers["Content-Range"] == "bytes */100"
    assert answer.headers["Content-Length"] == "0"


@pytest.mark.parametrize(
    "asked",
    [
        "",
        "bytes",
        "bytes=",
        "bytes=,",
        "bytes=-",
        "bytes=5",
        "bytes=a-b",
        "bytes=5-4",
        "bytes=--5",
        "bytes=1-2-3",
        "bytes=+1-2",
        "bytes=1 - 2",
        "bytes=0x0-0x9",
        "bytes=\u0661-\u0662",  # digits, but not ASCII's
        "bytes 0-9",
        "bytes:0-9",
        "items=0-9",
        "seconds=0-9",
        "=0-9",
        "0-9",
        "bytes=0-9;10-19",
        "bytes=" + "0" * MAX_FIELD_CHARS + "-9",
        "bytes=0-9,20-29",  # several ranges: the whole is a lawful answer
        "bytes=0-9,200-",
    ],
)
def test_what_is_not_one_range_of_bytes_is_ignored(asked):
    answer = plan({"Range": asked})

    assert (answer.status, answer.start, answer.end) == (200, 0, 100)
    assert "Content-Range" not in answer.headers
    assert answer.headers["Content-Length"] == "100"


@pytest.mark.parametrize("asked", ["bytes=0-9", "bytes=100-", "bytes=-0", "nonsense"])
@pytest.mark.parametrize("method", ["HEAD", "POST", "PUT", "get"])
def test_only_get_has_ranges(method, asked):
    answer = plan({"Range": asked}, method=method)

    assert answer.status == 200
    assert "Content-Range" not in answer.headers
    assert answer.headers["Content-Length"] == "100"


def test_head_has_the_length_of_the_get_and_no_content():
    answer = plan(method="HEAD")

    assert (answer.start, answer.end) == (0, 0)
    assert answer.headers == plan().headers


@pytest.mark.parametrize("asked", ["bytes=0-", "bytes=-5", "bytes=0-0", "bytes=7-9"])
def test_every_range_of_an_empty_film_is_the_whole_of_it(asked):
    answer = plan({"Range": asked}, length=0)

    assert (answer.status, answer.start, answer.end) == (200, 0, 0)


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        (ETAG, True),
        (f" {ETAG} ", True),
        ('"other"', False),
        (f"W/{ETAG}", False),  # strong comparison: a weak tag never matches
        ("film", False),
        ("*", False),
        (f'{ETAG}, "other"', False),
        (CHANGED_DATE, True),
        ("Sunday, 09-Sep-01 01:46:40 GMT", True),  # the two obsolete forms must be read
        ("Sun Sep  9 01:46:40 2001", True),
        (LATER_DATE, False),  # exactly, not "not later"
        (EARLIER_DATE, False),
        ("yesterday", False),
        ("", False),
    ],
)
@pytest.mark.parametrize("asked", ["bytes=0-9", "bytes=100-"])
def test_if_range_gives_the_whole_unless_it_matches_exactly(condition, holds, asked):
    """Also when the range could not be satisfied: then it is 200 and not 416."""
    answer = plan({"Range": asked, "If-Range": condition})

    expected = plan({"Range": asked}) if holds else plan()
    assert answer == expected


def test_a_date_matches_nothing_where_the_date_of_change_is_unknown():
    headers = {"Range": "bytes=0-9", "If-Range": CHANGED_DATE}

    assert plan(headers, last_modified=None).status == 200
    assert "Last-Modified" not in plan(last_modified=None).headers


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"If-Match": ETAG}, 200),
        ({"If-Match": "*"}, 200),
        ({"If-Match": f'"a", {ETAG}'}, 200),
        ({"If-Match": '"a", "b"'}, 412),
        ({"If-Match": f"W/{ETAG}"}, 412),
        ({"If-Match": ETAG + "," * MAX_FIELD_CHARS}, 412),
        ({"If-None-Match": ETAG}, 304),
        ({"If-None-Match": f"W/{ETAG}"}, 304),
        ({"If-None-Match": f'"a" , {ETAG}'}, 304),
        ({"If-None-Match": "*"}, 304),
        ({"If-None-Match": '"a"'}, 200),
        ({"If-Modified-Since": CHANGED_DATE}, 304),
        ({"If-Modified-Since": LATER_DATE}, 304),
        ({"If-Modified-Since": EARLIER_DATE}, 200),
        ({"If-Modified-Since": "never"}, 200),
        ({"If-Unmodified-Since": CHANGED_DATE}, 200),
        ({"If-Unmodified-Since": EARLIER_DATE}, 412),
        ({"If-Unmodified-Since": "never"}, 200),
        # the order of 13.2.2: what comes earlier decides, what it replaces is not looked at
        ({"If-Match": ETAG, "If-Unmodified-Since": EARLIER_DATE}, 200),
        ({"If-Match": '"a"', "If-None-Match": ETAG}, 412),
        ({"If-None-Match": '"a"', "If-Modified-Since": LATER_DATE}, 200),
        ({"If-Match": ETAG, "If-None-Match": ETAG}, 304),
    ],
)
def test_conditions_in_their_order(headers, status, method):
    answer = plan(headers, method=method)

    assert answer.status == status
    assert answer.headers["ETag"] == ETAG


@pytest.mark.parametrize("asked", ["bytes=0-9", "bytes=100-"])
def test_conditions_come_before_the_range(asked):
    assert plan({"Range": asked, "If-None-Match": ETAG}).status == 304
    assert plan({"Range": asked, "If-Match": '"a"'}).status == 412


def test_a_stale_copy_is_never_confirmed_without_a_date():
    assert plan({"If-Modified-Since": LATER_DATE}, last_modified=None).status == 200
    assert plan({"If-Unmodified-Since": EARLIER_DATE}, last_modified=None).status == 200


_numbers = st.one_of(st.just(""), st.integers(0, 300).map(str), st.integers(0, 10**30).map(str))
_specs = st.builds("{}-{}".format, _numbers, _numbers)
_ranges = st.one_of(
    st.text(max_size=40),
    st.builds(
        "{}={}".format,
        st.sampled_from(["bytes", "BYTES", "bits", ""]),
        st.lists(st.one_of(_specs, st.text(max_size=5)), max_size=4).map(",".join),
    ),
)
_conditions = st.one_of(
    st.none(),
    st.text(max_size=40),
    st.sampled_from([ETAG, "W/" + ETAG, '"x"', "*", CHANGED_DATE, LATER_DATE, EARLIER_DATE]),
    st.integers(-(10**10), 10**11).map(lambda t: formatdate(t, usegmt=True) if t >= 0 else str(t)),
)


@given(
    method=st.sampled_from(["GET", "HEAD", "POST", "X"]),
    asked=st.one_of(st.none(), _ranges),
    conditions=st.fixed_dictionaries(
        dict.fromkeys(
            ("If-Range", "If-Match", "If-None-Match", "If-Modified-Since", "If-Unmodified-Since"),
            _conditions,
        )
    ),
    length=st.integers(0, 300),
    dated=st.booleans(),
    multipart=st.booleans(),
)
def test_any_request_gets_slices_the_whole_or_a_right_refusal(
    *, method, asked, conditions, length, dated, multipart
):
    headers = {name: value for name, value in conditions.items() if value is not None}
    if asked is not None:
        headers["Range"] = asked
    film = bytes(n % 251 for n in range(length))

    answer = plan(
        headers,
        method=method,
        length=length,
        last_modified=CHANGED if dated else None,
        multipart=multipart,
    )

    body = film[answer.start : answer.end]
    assert 0 <= answer.start <= answer.end <= length
    if len(answer.parts) > 1:
        assert (answer.status, method, multipart) == (206, "GET", True)
        assert all(0 <= part.start < part.end <= length for part in answer.parts)
        framed = sum(len(part.head) + part.end - part.start for part in answer.parts)
        assert framed + len(answer.tail) == int(answer.headers["Content-Length"])
        return
    assert body == b"".join(film[part.start : part.end] for part in answer.parts)
    assert answer.tail == b""
    if answer.status == 206:
        assert method == "GET"
        first, last = answer.headers["Content-Range"][6:].split("/")[0].split("-")
        assert answer.headers["Content-Range"].endswith(f"/{length}")
        assert body == film[int(first) : int(last) + 1]
        assert len(body) == int(answer.headers["Content-Length"]) > 0
    elif answer.status == 200:
        assert int(answer.headers["Content-Length"]) == length
        assert body == (b"" if method == "HEAD" else film)
    else:
        assert answer.status in {304, 412, 416}
        assert body == b""
        if answer.status == 416:
            assert method == "GET"
            assert answer.headers["Content-Range"] == f"bytes */{length}"
        else:
            assert "Content-Range" not in answer.headers
            assert "Content-Length" not in answer.headers


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(1, 10**6))
def test_a_range_is_python_s_slice(first, last, length):
    answer = plan({"Range": f"bytes={first}-{last}"}, length=length)

    start, stop, _ = slice(first, last + 1).indices(length)
    if last < first:
        assert answer.status == 200
    elif start >= stop:
        assert answer.status == 416
    else:
        assert (answer.status, answer.start, answer.end) == (206, start, stop)
