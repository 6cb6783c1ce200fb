"""`/titles/ID/blocks`: the hashes of a title's blocks, in ranges."""

import dataclasses

import pytest
from bencode2 import bdecode

from tests.vodserver.conftest import flip_byte
from toast.common.blockhashes import HASH_BYTES, check, leaves_span
from toast.common.geometry import BLOCK_BYTES
from vodserver.http.links import sign_path
from vodserver.store.blocks import blocks_path, geometry_of
from vodserver.store.events import BlocksBad

URL = "/titles/clock/blocks"
FAR = 4_000_000_000


@pytest.fixture
def hashes(pristine):
    return blocks_path(pristine.path, pristine.title.folder).read_bytes()


async def test_all_of_them(store, serving, connect, hashes, pristine):
    answer = await (await connect(await serving(store))).ask(URL)

    assert (answer.status, answer.body) == (200, hashes)
    assert answer["ETag"] == f'"{pristine.title.info_hash}-blocks"'
    assert answer["Accept-Ranges"] == "bytes"
    assert answer["Content-Type"] == "application/octet-stream"


async def test_ranges_of_them(store, serving, connect, hashes):
    client = await connect(await serving(store))

    answer = await client.ask(URL, "Range: bytes=32-95")
    assert (answer.status, answer.body) == (206, hashes[32:96])
    assert answer["Content-Range"] == f"bytes 32-95/{len(hashes)}"
    answer = await client.ask(URL, "Range: bytes=-5")
    assert (answer.status, answer.body) == (206, hashes[-5:])
    answer = await client.ask(URL, f"Range: bytes={len(hashes)}-")
    assert (answer.status, answer.body) == (416, b"")
    answer = await client.ask(URL, "Range: bytes=0-0, 1000-1001")
    assert answer["Content-Type"].startswith("multipart/byteranges")
    assert answer.body.count(b"Content-Range: bytes ") == 2


async def test_head_and_conditions(store, serving, connect, hashes):
    client = await connect(await serving(store))

    head = await client.ask(URL, method="HEAD")
    assert (head.status, head["Content-Length"]) == (200, str(len(hashes)))
    assert (await client.ask(URL, f"If-None-Match: {head['ETag']}")).status == 304
    assert (await client.ask(URL, 'If-Match: "another"')).status == 412
    other = await client.ask(URL, "Range: bytes=0-31", 'If-Range: "another"')
    assert (other.status, other.body) == (200, hashes)
    assert (await client.ask(URL, method="POST")).status == 405


async def test_a_piece_can_be_verified_with_what_the_torrent_says(
    store, serving, connect, pristine
):
    """As a viewer does it: roots and URL from the .torrent, hashes of a piece from the URL."""
    server = await serving(store)
    client = await connect(server)
    torrent = bdecode((await client.ask("/titles/clock/torrent")).body)
    offered = torrent[b"block hashes"]
    film, full = geometry_of(pristine.title), pristine.title.piece_bytes // BLOCK_BYTES
    assert offered[b"url"] == f"{server.public_url}{URL}".encode()

    for piece in (0, film.pieces - 1):
        start, end = leaves_span(film, piece)
        answer = await client.ask(URL, f"Range: bytes={start}-{end - 1}")
        root = offered[b"roots"][piece * HASH_BYTES : (piece + 1) * HASH_BYTES]
        assert check(answer.body, root, full)


async def test_a_title_without_them_is_served_and_does_not_offer_them(store, serving, connect):
    store.include(dataclasses.replace(store.titles()[0], block_roots=b"", block_sums=b""))
    client = await connect(await serving(store))

    answer = await client.ask(URL)
    assert (answer.status, answer.body) == (
        404,
        b"the hashes of this title's blocks are not made yet\n",
    )
    assert b"block hashes" not in bdecode((await client.ask("/titles/clock/torrent")).body)
    assert b'"blocks": null' in (await client.ask("/titles/clock")).body
    assert (await client.ask("/titles/clock/content", "Range: bytes=0-9")).status == 206


async def test_what_is_rotten_is_not_sent_but_made_again(home, serving, connect):
    flip_byte(blocks_path(home.path, home.title.folder), 3)
    with home.open() as store:
        told = []
        store.subscribe(told.append)
        answer = await (await connect(await serving(store))).ask(URL, "Range: bytes=64-95")

        assert (answer.status, answer["Retry-After"]) == (503, "10")
        assert b"are not what was written" in answer.body
        assert told == [BlocksBad(store.titles()[0])]


async def test_they_need_a_signed_link_where_films_do(store, serving, connect, tmp_path, hashes):
    """And the link to them in a .torrent holds as long as the one by which that was had."""
    secrets = tmp_path / "secrets"
    secrets.write_text("a secret of some length\n")
    secrets.chmod(0o600)
    server = await serving(store, require_signed=True, link_secrets=secrets)
    client = await connect(server)

    assert (await client.ask(URL)).status == 403
    query = sign_path(b"a secret of some length", "/titles/clock/torrent", FAR)
    torrent = bdecode((await client.ask(f"/titles/clock/torrent?{query}")).body)
    link = torrent[b"block hashes"][b"url"].decode().removeprefix(server.public_url)
    assert f"expires={FAR}" in link
    assert (await client.ask(link)).body == hashes
    assert (await client.ask(link.replace("blocks", "content"))).status == 403


async def test_under_an_egress_cap_they_come_whole(store, serving, connect, hashes):
    server = await serving(store, egress_rate=2_000_000.0)
    answer = await (await connect(server)).ask(URL)
    assert answer.body == hashes
