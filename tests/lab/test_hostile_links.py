"""Links that are forged, bent, old or for others, against the real server that wants good ones."""

import http.client
import json
import time
import urllib.parse

import pytest

from tests.interop.conftest import vodserver
from tests.interop.film_server import film_server
from vodserver.http.links import sign_path

pytestmark = [pytest.mark.lab, pytest.mark.slow]

SECRETS = ("first-secret-of-the-server", "second-secret-of-the-server")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("links")


def write_secrets(path, *secrets):
    path.write_text("\n".join(secrets) + "\n")
    path.chmod(0o600)
    return path


@pytest.fixture(scope="module")
def server(folder, small_film):
    secrets = write_secrets(folder / "secrets", *SECRETS)
    with film_server(folder, small_film, "--require-signed", "--link-secrets", secrets) as server:
        yield server


def sign(server, *, secret=SECRETS[0], part="content", network=None, seconds=3600):
    """A link to the film or another part of its title: path and query."""
    path = server.path.removesuffix("content") + part
    return f"{path}?{sign_path(secret.encode(), path, int(time.time()) + seconds, network)}"


def ask(server, target, **fields):
    """Status and content of one request."""
    connection = http.client.HTTPConnection(*server.address, timeout=10)
    try:
        headers = {name.replace("_", "-"): value for name, value in fields.items()}
        connection.request("GET", target, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def test_the_link_that_the_program_prints_is_good(server, folder, small_film):
    words = ("link", "small", "--store", folder / "store", "--public-url", server.url)
    how = ("--part", "content", "--link-secrets", folder / "secrets", "--json")

    link = urllib.parse.urlsplit(json.loads(vodserver(*words, *how))["url"])

    assert ask(server, f"{link.path}?{link.query}") == (200, small_film.read_bytes())


@pytest.mark.parametrize("secret", SECRETS)
def test_a_good_link_brings_the_film_whole_and_in_ranges(server, small_film, secret):
    """Of the secret that signs, and of an older one that still verifies."""
    target = sign(server, secret=secret)
    data = small_film.read_bytes()

    assert ask(server, target) == (200, data)
    assert ask(server, target, Range="bytes=100-199") == (206, data[100:200])
    status, body = ask(server, target, Range="bytes=0-9,5000-5009")
    assert status == 206
    assert data[5000:5010] in body


@pytest.mark.parametrize("fields", [{}, {"Range": "bytes=0-99"}, {"Range": "bytes=0-9,9000-9009"}])
def test_no_bent_link_brings_a_byte(server, small_film, fields):
    """Also not by the shortcut that plain ranges take: nothing of the film is in any answer."""
    good = sign(server)
    path, _, query = good.partition("?")
    values = dict(urllib.parse.parse_qsl(query))
    signature = values["sig"]
    flipped = ("B" if signature[0] == "A" else "A") + signature[1:]
    bent = {
        "no link": path,
        "an empty query": f"{path}?",
        "no signature": f"{path}?expires={values['expires']}",
        "an empty signature": with_values(path, values, sig=""),
        "another signature": with_values(path, values, sig=flipped),
        "a cut signature": with_values(path, values, sig=signature[:-1]),
        "a longer signature": with_values(path, values, sig=signature + "A" * 5000),
        "a signature that is no text": f"{path}?expires={values['expires']}&sig=%ff%00%fe",
        "a later expiry": with_values(path, values, expires=str(int(values["expires"]) + 1)),
        "the same expiry, otherwise": with_values(path, values, expires="0" + values["expires"]),
        "an expiry that is no number": with_values(path, values, expires="9e9"),
        "a negative expiry": with_values(path, values, expires="-1"),
        "an endless expiry": with_values(path, values, expires="9" * 5000),
        "a network that was not signed": with_values(path, values, net="127.0.0.0/8"),
        "a stranger's secret": sign(server, secret="some-other-servers-secret"),
        "for another thing": f"{path}?{sign(server, part='torrent').partition('?')[2]}",
        "for another network": sign(server, network="192.0.2.0/24"),
        "an escaped path": good.replace("/content", "/%63ontent%2f"),
        "the first of two": f"{path}?sig={flipped}&{query}",
    }
    data = small_film.read_bytes()

    for what, target in bent.items():
        status, body = ask(server, target, **fields)
        assert 400 <= status < 500, what
        assert data[:10] not in body, what
        assert b"Traceback" not in body, what


def test_an_old_link_was_good_once(server):
    status, body = ask(server, sign(server, seconds=-2))

    assert status in {403, 410}
    assert b"expired" in body


def test_a_link_for_the_client_s_own_network_is_good(server):
    assert ask(server, sign(server, network="127.0.0.0/8"))[0] == 200


def with_values(path, values, **changes):
    return f"{path}?{urllib.parse.urlencode(values | changes)}"
