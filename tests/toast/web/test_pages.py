"""The page is served whole, to itself alone, and asks nothing of anybody else."""

import re
import tomllib
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from toast.web import PAGE_FILES, add_page

ROOT = Path(__file__).parents[3]
TEXTS = {name: file.content.decode("utf-8") for name, file in PAGE_FILES.items()}


@pytest.fixture
async def client():
    app = web.Application()
    add_page(app)
    async with TestClient(TestServer(app)) as client:
        yield client


async def test_the_page_is_at_the_root_and_its_files_beside_it(client):
    page = await client.get("/")
    assert page.status == 200
    assert page.content_type == "text/html"
    for path in re.findall(r'(?:src|href)="(/app/[^"]+)"', await page.text()):
        assert (await client.get(path)).status == 200, path


@pytest.mark.parametrize("name", sorted(PAGE_FILES))
async def test_a_file_is_served_as_what_it_is_and_kept_no_longer_than_it_is_true(client, name):
    first = await client.get(f"/app/{name}")
    assert first.status == 200
    assert await first.read() == PAGE_FILES[name].content
    assert first.headers["Content-Type"] == f"{PAGE_FILES[name].content_type}; charset=utf-8"
    assert first.headers["Cache-Control"] == "no-cache"
    assert first.headers["X-Content-Type-Options"] == "nosniff"

    again = await client.get(f"/app/{name}", headers={"If-None-Match": first.headers["ETag"]})
    assert (again.status, await again.read()) == (304, b"")
    assert again.headers["ETag"] == first.headers["ETag"]
    changed = await client.get(f"/app/{name}", headers={"If-None-Match": '"another"'})
    assert changed.status == 200


async def test_the_policy_forbids_everything_that_is_not_ours(client):
    answer = await client.get("/")
    policy = dict(
        part.split(" ", 1) for part in answer.headers["Content-Security-Policy"].split("; ")
    )
    assert policy.pop("default-src") == "'none'"
    own = {"script-src", "style-src", "img-src", "media-src", "connect-src"}
    assert {name for name, sources in policy.items() if sources == "'self'"} == own
    assert {sources for name, sources in policy.items() if name not in own} == {"'none'"}


async def test_head_is_answered_like_get_without_a_body(client):
    answer = await client.head("/app/app.js")
    assert answer.status == 200
    assert answer.headers["Content-Length"] == str(len(PAGE_FILES["app.js"].content))


@pytest.mark.parametrize("name", ["none.js", "..%2Fpages.py", "%2E%2E%2F__init__.py", ".", "a%00b"])
async def test_what_is_not_a_file_of_the_page_is_not_served(client, name):
    assert (await client.get(f"/app/{name}")).status == 404


def test_the_page_names_no_other_server_and_no_code_in_its_markup():
    """Besides the names of XML namespaces, which nobody fetches, and of what people may type."""
    for name, text in TEXTS.items():
        addresses = set(re.findall(r"https?://[^\s\"'`<)]+", text))
        assert addresses <= {"http://www.w3.org/2000/svg", "http://…,"}, name
    assert (
        re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=", TEXTS["index.html"]) is None
    )
    assert [name for name, text in TEXTS.items() if re.search(r"innerHTML|\beval\(", text)] == []


def test_every_module_that_is_imported_exists_and_every_file_is_used():
    used = {"index.html"}
    for text in TEXTS.values():
        used |= set(re.findall(r'from "\./([\w.]+)"', text))
        used |= set(re.findall(r'(?:src|href)="/app/([\w.]+)"', text))
    assert used == set(PAGE_FILES)


def test_a_module_of_the_page_can_be_read_in_one_sitting():
    assert {name for name, text in TEXTS.items() if len(text.splitlines()) > 500} == set()


def test_the_page_is_part_of_what_is_installed():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    assert project["tool"]["setuptools"]["package-data"]["toast.web"] == ["static/*"]
