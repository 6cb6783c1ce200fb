"""The gateway is held to the same tables of ranges and preconditions as every server."""

import asyncio
import http.client

import pytest
from aiohttp import web

from tests.conformance.check_ranges import Target, check_ranges, count, load_tables
from tests.interop.film_server import ask_over
from tests.toast.gateway.films import FileSource
from toast.gateway import Door, FilmRoutes, GatewaySettings

LENGTH = 11_000
DATES = {"film": 1.7e9, "undated": None, "dated": 23_349_600.0, "empty": 1.7e9}


class Film(FileSource):
    """One of the places that the tables speak of."""

    film_name = "film.mp4"

    def __init__(self, place):
        super().__init__(b"" if place == "empty" else bytes(n % 251 for n in range(LENGTH)), 777)
        self.last_modified = DATES[place]
        self.film_id = f"{list(DATES).index(place):040x}"


@pytest.mark.parametrize("table", load_tables(), ids=lambda table: table["suite"])
async def test_every_row_that_a_film_can_show(table):
    films = {place: Film(place) for place in DATES}
    routes = FilmRoutes({film.film_id: film for film in films.values()})
    application = web.Application()
    routes.add_to(application)
    async with Door(application, host="127.0.0.1", port=0, settings=GatewaySettings()) as door:
        ask = ask_over(
            lambda: http.client.HTTPConnection("127.0.0.1", door.port, timeout=10),
            {place: routes.film_path(film) for place, film in films.items()},
        )
        target = Target("gateway", {place: film.data for place, film in films.items()}, ask)
        verdicts = await asyncio.to_thread(check_ranges, table, target, ours=True)
    assert [verdict for verdict in verdicts if verdict.passed is False] == []
    assert count(verdicts)[1] == {"go": 24, "nginx": 41, "rfc9110": 64}[table["suite"]]
