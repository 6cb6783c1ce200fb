"""Our real server and a real nginx, held to the same tables over real sockets."""

import http.client
import sys

import pytest

from experiments.film import FilmSpec, make_film
from tests.conformance.check_ranges import Target, check_ranges, count, load_tables
from tests.interop.film_server import ask_over, film_server, nginx, nginx_version, padded

pytestmark = [pytest.mark.interop, pytest.mark.slow]

TABLES = load_tables()


@pytest.fixture(scope="module")
def film(tmp_path_factory):
    """11 s at 50 kB/s, padded so that the tables' 11 and 1000 units are whole numbers of bytes."""
    folder = tmp_path_factory.mktemp("tables")
    spec = FilmSpec(duration_seconds=11.0, bit_rate=50_000.0, width=160, height=90)
    return padded(make_film(folder / "made.mp4", spec), folder / "film.mp4", 11_000)


@pytest.fixture(scope="module")
def ours(film, tmp_path_factory):
    with film_server(tmp_path_factory.mktemp("ours"), film) as server:
        ask = ask_over(
            lambda: http.client.HTTPConnection(*server.address, timeout=10), {"film": server.path}
        )
        yield Target("vodserver", {"film": film.read_bytes()}, ask)


@pytest.fixture(scope="module")
def theirs(film, tmp_path_factory):
    """None where there is no nginx."""
    if nginx_version() is None:
        yield None
        return
    with nginx(tmp_path_factory.mktemp("ng"), film) as (ask, films):
        yield Target("nginx", films, ask)


@pytest.mark.parametrize("table", TABLES, ids=[table["suite"] for table in TABLES])
def test_our_server_passes_every_row_and_nginx_stands_beside_it(
    table, ours, theirs, figures, capsys
):
    """Each row that is possible over a socket: one film, with a date, of more than no bytes."""
    mine = check_ranges(table, ours, ours=True)
    other = check_ranges(table, theirs, ours=False) if theirs else []

    suite = table["suite"]
    figures[f"{suite}_rows_ours_passed"], figures[f"{suite}_rows_ours"] = count(mine)
    if theirs:
        figures[f"{suite}_rows_nginx_passed"], figures[f"{suite}_rows_nginx"] = count(other)
        figures["nginx_version"] = nginx_version()
    with capsys.disabled():
        sys.stdout.write("\n".join(side_by_side(suite, mine, other)) + "\n")
    assert [verdict for verdict in mine if verdict.passed is False] == []
    assert count(mine)[1] == {"go": 22, "nginx": 36, "rfc9110": 64}[suite]
    if theirs and suite == "nginx":  # it passes its own tests, or the table is wrong
        assert count(other) == (45, 45)


def side_by_side(suite, mine, other):
    """Who deviates in which row, in lines; rows that both pass alike are only counted."""
    yield f"\n{suite}: ours {'{} of {}'.format(*count(mine))} rows"
    if not other:
        yield "  nginx is not installed (Debian package nginx-light): nothing beside it"
        return
    yield f"  nginx {'{} of {}'.format(*count(other))} rows; where one fails or both differ:"
    for own, foreign in zip(mine, other, strict=True):
        alike = own.passed and foreign.passed and own.expected == foreign.expected
        if alike or (own.passed is None and foreign.passed is not False):
            continue
        words = {True: "pass", False: "FAIL", None: "cannot be asked"}
        verdicts = [f"{words[verdict.passed]} ({verdict.got})" for verdict in (own, foreign)]
        yield f"  {own.row[:84]:84} ours {verdicts[0]:44} nginx {verdicts[1]}"
