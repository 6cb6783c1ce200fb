"""The planner against the tables: the standard's rules, and what other servers are held to."""

import re
from itertools import pairwise
from pathlib import Path

import pytest

from tests.conformance.check_ranges import Answer, Target, check_ranges, count, load_tables
from toast.common.ranges import MAX_FIELD_CHARS, MAX_RANGES, plan_range

TABLES = {table["suite"]: table for table in load_tables()}
CHANGED = 1_000_000_000.0
LONG_AGO = 23_349_600.0  # 28 September 1970, 06:00:00
ROWS = {"go": 24, "nginx": 49, "rfc9110": 64}


def planner(table, unit, *, gap):
    """The planner as one that answers, with films of some size and settings as the tables ask."""
    film = bytes((n * n + n // 251) % 256 for n in range(table["length"] * unit))
    places = {
        "film": (film, {"last_modified": CHANGED}),
        "undated": (film, {"last_modified": None}),
        "dated": (film, {"last_modified": LONG_AGO}),
        "most-2": (film, {"max_ranges": 2}),
        "most-0": (film, {"max_ranges": 0}),
        "empty": (b"", {}),
    }

    def ask(place, method, fields):
        content, options = places[place]
        headers = {}
        for name, value in fields:
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
        plan = plan_range(
            method,
            headers,
            length=len(content),
            etag='"film"',
            content_type="video/mp4",
            multipart=True,
            gap=gap,
            **options,
        )
        body = b"".join(part.head + content[part.start : part.end] for part in plan.parts)
        named = {name.lower(): value for name, value in plan.headers.items()}
        return Answer(plan.status, named, body + plan.tail)

    films = {place: content for place, (content, _) in places.items()}
    return Target("planner", films, ask, is_server=False)


@pytest.mark.parametrize(("unit", "gap"), [(1, 0), (500, None)])
@pytest.mark.parametrize("suite", ROWS)
def test_the_planner_passes_every_row(suite, unit, gap):
    """At one byte a unit no gap is bridged: there every gap costs less than a head."""
    verdicts = check_ranges(TABLES[suite], planner(TABLES[suite], unit, gap=gap), ours=True)

    assert [verdict for verdict in verdicts if verdict.passed is False] == []
    passed, tried = count(verdicts)
    assert passed == tried == {"go": 24, "nginx": 45, "rfc9110": 61}[suite]


def test_where_we_do_otherwise_than_nginx_the_table_says_why():
    """Its own expectation fails there: a divergence that is none any more must leave the table."""
    table = TABLES["nginx"]
    strict = check_ranges(table, planner(table, 1, gap=0), ours=False)
    diverging = [request for request in table["request"] if "ours" in request]

    assert all(len(request["rows"]) == 1 and request["why"] for request in diverging)
    assert sum(verdict.passed is False for verdict in strict) == len(diverging) == 4


def test_a_table_can_fail():
    """One who ignores every Range field fails each row that asks for a part."""
    table = TABLES["go"]
    good = planner(table, 100, gap=None)
    lazy = Target("lazy", good.film, lambda place, method, _: good.ask(place, method, []))

    verdicts = check_ranges(table, lazy, ours=True)

    assert count(verdicts) == (4, 24)
    assert [v.passed for v in verdicts if "bytes=0-,1-" in v.row or "no Range" in v.row] == [
        True,
        True,
    ]
    assert all(earlier.row != later.row for earlier, later in pairwise(verdicts))


def test_the_page_about_ranges_says_what_the_code_does():
    page = (Path(__file__).parents[3] / "docs" / "http_ranges.md").read_text("utf-8")

    assert f"more than {MAX_RANGES} satisfiable ranges" in page
    assert f"beyond {MAX_FIELD_CHARS} characters" in page
    for request in TABLES["nginx"]["request"]:
        if "ours" in request:
            assert f"`{request['range']}`" in page
    for suite, rows in ROWS.items():
        assert sum(len(request["rows"]) for request in TABLES[suite]["request"]) == rows
        assert re.search(rf"\b{rows}\b", page)
