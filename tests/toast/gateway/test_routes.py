"""The films' URLs, mounted in an application that is not the gateway's."""

import contextlib
import urllib.parse
from dataclasses import dataclass

import aiohttp
import pytest
from aiohttp import web

from tests.toast.gateway.films import FILM, FileSource
from toast.common.errors import ToastError
from toast.gateway import Door, FilmRoutes, GatewaySettings, film_key

SRT = b"1\n00:00:01,000 --> 00:00:02,500\nHello <i>you</i>\n"


@dataclass
class Words:
    """Subtitles that a test made up."""

    data: bytes
    file_name: str = "a.en.srt"
    label: str = "English"
    language: str | None = "en"

    async def load(self):
        if not self.data:
            raise ToastError("a.en.srt cannot be read")
        return self.data


class House(dict):
    """Films by their ids."""

    def __init__(self, *sources):
        super().__init__({source.film_id: source for source in sources})


def film(letter="a", **fields):
    source = FileSource(FILM)
    source.film_id = letter * 40
    vars(source).update(fields)
    return source


@contextlib.asynccontextmanager
async def mounted(*sources, host="127.0.0.1"):
    """(client, routes) of an application with these films, and a page of its own."""
    routes = FilmRoutes(House(*sources), secret=b"secret")
    application = web.Application()

    async def page(_):
        return web.Response(text="the page")

    application.router.add_get("/", page)
    routes.add_to(application)
    async with (
        Door(application, host=host, port=0, settings=GatewaySettings()) as door,
        aiohttp.ClientSession(door.url) as client,
    ):
        yield client, routes


async def test_films_are_told_apart_and_other_routes_are_left_alone():
    one, other = film("a"), film("b")
    other.data = FILM[::-1]
    async with mounted(one, other) as (client, routes):
        for source in (one, other):
            async with client.get(routes.film_path(source)) as answer:
                assert await answer.read() == source.data
        async with client.get("/") as answer:
            assert await answer.text() == "the page"
        assert routes.bytes_sent == 2 * len(FILM)
        assert routes.readers == 0
        await routes.wait_idle()


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/films/" + "c" * 40 + "/x.mp4", "no such film"),
        ("/films/" + "a" * 40 + "/other.mp4", "this film is at /films/aaaa"),
        ("/films/" + "a" * 40 + "/..%2Fx.mp4", "this film is at"),
        ("/films/" + "a" * 40 + "/subtitles/0.vtt", "has 0 subtitles"),
        ("/films/" + "a" * 40 + "/poster.jpg", "no picture"),
        ("/films/aaa/x.mp4", "Not Found"),
        ("/films/" + "a" * 40 + "/subtitles/99999.vtt", "Not Found"),
        ("/films/" + "a" * 40 + "/subtitles/-1.vtt", "Not Found"),
    ],
)
async def test_what_is_not_there_is_a_404_that_says_so(path, words):
    async with mounted(film("a")) as (client, _), client.get(path) as answer:
        assert answer.status == 404
        assert words in await answer.text()


async def test_the_film_tells_what_a_player_or_television_asks():
    source = film(film_name='A "fïlm".mkv', content_type="video/x-matroska")
    async with (
        mounted(source) as (client, routes),
        client.get(routes.film_path(source)) as answer,
    ):
        assert answer.headers["Content-Type"] == "video/x-matroska"
        disposition = answer.headers["Content-Disposition"]
        assert disposition == "inline; filename*=UTF-8''A%20%22f%C3%AFlm%22.mkv"
        assert answer.headers["contentFeatures.dlna.org"].startswith("DLNA.ORG_OP=01")
        assert answer.headers["Cache-Control"] == "no-store"


async def test_several_ranges_come_as_parts():
    source = film()
    fields = {"Range": "bytes=0-9,1000-1009,-5"}
    async with (
        mounted(source) as (client, routes),
        client.get(routes.film_path(source), headers=fields) as answer,
    ):
        assert answer.status == 206
        reader = aiohttp.MultipartReader.from_response(answer)
        parts = [(dict(part.headers), await part.read()) async for part in reader]
    assert [data for _, data in parts] == [FILM[:10], FILM[1000:1010], FILM[-5:]]
    assert parts[1][0]["Content-Range"] == f"bytes 1000-1009/{len(FILM)}"
    assert parts[1][0]["Content-Type"] == "video/mp4"
    assert source.left == 3


async def test_each_address_has_its_methods():
    source = film(subtitles=[Words(SRT)], picture=b"jpeg")
    async with mounted(source) as (client, routes):
        for path in (
            routes.film_path(source),
            routes.playlist_path(source),
            routes.poster_path(source),
            *routes.subtitle_paths(source),
        ):
            async with client.options(path) as answer:
                assert answer.status == 204
                assert answer.headers["Allow"] == "GET, HEAD, OPTIONS"
            for method in ("POST", "PUT", "DELETE", "PATCH", "PROPFIND"):
                async with client.request(method, path) as answer:
                    assert answer.status == 405
                    assert answer.headers["Allow"] == "GET,HEAD,OPTIONS"
            async with client.head(path) as answer:
                assert answer.status == 200
                assert int(answer.headers["Content-Length"]) > 0
                assert await answer.read() == b""
    assert source.asked == []


async def test_a_playlist_opens_the_film():
    source = film(subtitles=[Words(SRT)], title="Ein Fïlm ☕ 2")
    async with mounted(source) as (client, _):
        for kind, charset in (("m3u8", "utf-8"), ("m3u", "latin-1")):
            async with client.get(f"/films/{source.film_id}/playlist.{kind}") as answer:
                assert answer.status == 200
                assert answer.content_type == "audio/x-mpegurl"
                assert answer.charset == charset
                lines = (await answer.read()).decode(charset).splitlines()
            assert lines[1].startswith("#PLAYLIST:Ein Fïlm")
            assert "#EXTINF:90,Ein Fïlm" in lines[2]
            assert lines[3].startswith("#EXTVLCOPT:input-slave=http://127.0.0.1:")
            async with client.get(lines[-1]) as answer:
                assert await answer.read() == FILM


async def test_subtitles_come_as_webvtt_and_as_found():
    source = film(subtitles=[Words(SRT), Words(b"WEBVTT\n\n", file_name="a.vtt")])
    async with mounted(source) as (client, routes):
        converted, other = routes.subtitle_paths(source)
        async with client.get(converted) as answer:
            assert answer.headers["Content-Type"] == "text/vtt; charset=utf-8"
            text = await answer.text()
            assert text == "WEBVTT\n\n00:00:01.000 --> 00:00:02.500\nHello <i>you</i>\n"
        async with client.get(converted.removesuffix(".vtt")) as answer:
            assert answer.headers["Content-Type"] == "application/x-subrip"
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
            assert await answer.read() == SRT
        async with client.get(other.removesuffix(".vtt")) as answer:
            assert answer.headers["Content-Type"].startswith("text/vtt")


@pytest.mark.parametrize("data", [b"", b"\x7fELF\0\0\0\0", b"<script>alert(1)</script>"])
async def test_subtitles_that_are_none_are_one_clear_line(data):
    source = film(subtitles=[Words(data)])
    async with (
        mounted(source) as (client, routes),
        client.get(*routes.subtitle_paths(source)) as answer,
    ):
        assert answer.status == 422
        assert len((await answer.text()).splitlines()) == 1


async def test_the_picture_comes_as_it_is():
    source = film(picture=b"\xff\xd8jpeg")
    async with (
        mounted(source) as (client, routes),
        client.get(routes.poster_path(source)) as answer,
    ):
        assert (answer.content_type, await answer.read()) == ("image/jpeg", b"\xff\xd8jpeg")


async def test_other_machines_need_the_film_s_key(own_address):
    """On an address that others can reach, a URL opens its own film and no other."""
    one, other = film("a", subtitles=[Words(SRT)], picture=b"jpeg"), film("b")
    async with mounted(one, other, host=own_address) as (client, routes):
        keyed = [
            routes.film_path(one, keyed=True),
            routes.playlist_path(one, keyed=True),
            routes.poster_path(one, keyed=True),
            *routes.subtitle_paths(one, keyed=True),
        ]
        for path in keyed:
            async with client.get(path) as answer:
                assert answer.status == 200
            bare = path.partition("?")[0]
            for wrong in ("", "?key=", "?key=" + film_key(b"secret", "b" * 40), "?key=%C3%A4"):
                async with client.get(bare + wrong) as answer:
                    assert answer.status == 403
        async with client.get(keyed[1]) as answer:
            urls = (await answer.text()).splitlines()
        key = film_key(b"secret", one.film_id)
        assert urllib.parse.urlsplit(urls[-1]).query == f"key={key}"
        assert urls[-2].endswith(f".vtt?key={key}")
        async with client.get(urls[-1]) as answer:
            assert await answer.read() == FILM
        async with client.get(f"/films/{'c' * 40}/x") as answer:
            assert answer.status == 403  # nor is it told which films there are
