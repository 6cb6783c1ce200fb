"""Conditions beyond those of the planner's table: methods, malformed lists, strict dates."""

import pytest

from toast.common.preconditions import MAX_FIELD_CHARS, if_range_holds, precondition_status

ETAG = '"film"'
CHANGED = 1_000_000_000.75
CHANGED_DATE = "Sun, 09 Sep 2001 01:46:40 GMT"


def status(method="GET", **headers):
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    return precondition_status(method, fields, etag=ETAG, last_modified=CHANGED)


@pytest.mark.parametrize("method", ["PUT", "POST", "DELETE"])
def test_what_changes_things_is_refused_where_what_reads_them_is_told_that_it_has_them(method):
    assert status(method, If_None_Match=ETAG) == 412
    assert status(method, If_None_Match="*") == 412
    assert status(method, If_Modified_Since=CHANGED_DATE) is None  # 13.1.3: of reading alone
    assert status(method, If_Match='"other"') == 412


@pytest.mark.parametrize(
    "tags",
    [
        ETAG,
        f"W/{ETAG}",
        f'"a",{ETAG}',
        f'"a", "b" ,\t{ETAG} , "c"',
        f",, {ETAG},,",
        f'"a,b",{ETAG}',  # a comma within quotes parts nothing
        '"\xe9", "film"',
        " * ",
    ],
)
def test_lists_that_name_ours(tags):
    assert status(If_None_Match=tags) == 304


@pytest.mark.parametrize(
    "tags",
    [
        "",
        ",",
        "film",
        '"a", "b"',
        '"film',
        f"x{ETAG}",
        f"w/{ETAG}",  # 8.8.3: W/ knows case
        f"{ETAG}x",
        f'{ETAG} "b"',
        f"{ETAG}, *",
        '"FILM"',
        '"a b"',
        ETAG + "," * MAX_FIELD_CHARS,
    ],
)
def test_lists_that_do_not_name_ours_or_are_none(tags):
    assert status(If_None_Match=tags) is None
    assert status(If_Match=tags) == 412


@pytest.mark.parametrize(
    "date",
    [
        CHANGED_DATE,
        "Sunday, 09-Sep-01 01:46:40 GMT",
        "Sun Sep  9 01:46:40 2001",
        f"\t{CHANGED_DATE} ",
    ],
)
def test_the_three_forms_of_a_date(date):
    assert if_range_holds(date, etag=ETAG, last_modified=CHANGED)
    assert status(If_Modified_Since=date) == 304
    assert status(If_Unmodified_Since=date) is None


@pytest.mark.parametrize(
    "date",
    [
        "Sun, 09 Sep 2001 03:46:40 +0200",
        "Sun, 09 Sep 2001 01:46:40",
        "09 Sep 2001 01:46:40 GMT",
        "sun, 09 sep 2001 01:46:40 gmt",
        "Sun, 9 Sep 2001 01:46:40 GMT",
        "Sun, 09 Sep 2001 01:46:40 GMT, Sun, 09 Sep 2001 01:46:40 GMT",
        "Sun, 31 Feb 2001 01:46:40 GMT",
        "Sun, 09 Sep 2001 25:46:40 GMT",
        "Sun, 09 Sep 0000 01:46:40 GMT",
        "1000000000",
        CHANGED_DATE + " " * MAX_FIELD_CHARS,
    ],
)
def test_what_is_no_date_of_http_is_no_date(date):
    assert not if_range_holds(date, etag=ETAG, last_modified=CHANGED)
    assert status(If_Modified_Since=date) is None
    assert status(If_Unmodified_Since=date) is None


def test_the_two_kinds_of_validators_are_not_mixed_up():
    assert not if_range_holds(ETAG, etag='"other"', last_modified=CHANGED)
    assert not if_range_holds(CHANGED_DATE, etag=ETAG, last_modified=None)
