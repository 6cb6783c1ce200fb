"""Only this machine's players and pages get an answer."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toast.gateway.access import AccessRules

LOOPBACK = AccessRules("127.0.0.1")


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1:8080", "127.0.0.1", "localhost:1", "LOCALHOST", "[::1]:80", "127.9.8.7:5"],
)
def test_loopback_hosts_are_welcome(host):
    assert LOOPBACK.refusal([host], [], None) is None


@pytest.mark.parametrize(
    "host",
    [
        "evil.example:8080",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "evil.example@127.0.0.1",
        "192.168.1.7:8080",
        "127.0.0.1:x",
        "127.0.0.1/path",
        "[::1",
        "",
        ":80",
    ],
)
def test_a_rebound_name_or_a_broken_host_is_refused(host):
    assert LOOPBACK.refusal([host], [], None)


def test_no_host_and_two_hosts_are_refused():
    assert LOOPBACK.refusal([], [], None)
    assert LOOPBACK.refusal(["127.0.0.1", "evil.example"], [], None)


@pytest.mark.parametrize(
    ("origins", "site", "welcome"),
    [
        ([], None, True),
        ([], "none", True),
        ([], "same-origin", True),
        ([], "Cross-Site", False),
        (["http://localhost:3000"], "cross-site", True),
        (["https://127.0.0.1"], None, True),
        (["http://[::1]:9"], None, True),
        (["https://evil.example"], "same-site", False),
        (["null"], None, False),
        (["file://localhost"], None, False),
        (["http://localhost", "https://evil.example"], None, False),
    ],
)
def test_pages_of_other_sites_are_refused(origins, site, welcome):
    assert (LOOPBACK.refusal(["127.0.0.1"], origins, site) is None) is welcome


def test_a_gateway_bound_elsewhere_answers_to_that_address_too():
    home = AccessRules("192.168.1.7")
    assert home.refusal(["192.168.1.7:80"], [], None) is None
    assert home.refusal(["192.168.1.8:80"], [], None)
    assert AccessRules("0.0.0.0").refusal(["192.168.1.8:80"], [], None) is None
    assert AccessRules("0.0.0.0").refusal(["tv.example"], [], None)


def test_only_local_origins_may_read_across_origins():
    allowed = LOOPBACK.cors_headers("http://localhost:3000")
    assert allowed["Access-Control-Allow-Origin"] == "http://localhost:3000"
    assert allowed["Vary"] == "Origin"
    assert LOOPBACK.cors_headers("https://evil.example") == {}
    assert LOOPBACK.cors_headers(None) == {}


@settings(deadline=None)
@given(st.text(max_size=40), st.text(max_size=40))
def test_any_text_gets_an_answer(host, origin):
    """Neither field can raise, and what is welcomed names loopback."""
    if LOOPBACK.refusal([host], [origin], None) is None:
        assert any(word in host.lower() for word in ("127.", "localhost", "::"))
