"""Signed links: what is made is let in, and nothing else is."""

from urllib.parse import parse_qsl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vodserver.errors import LinkError
from vodserver.http.links import LinkPolicy, needs_link, read_secrets, sign_path

OLD, NEW = b"an old secret of some length", b"a new secret of some length"
PATH = "/titles/clock/content"
NOW = 1_790_000_000


def link(secret=NEW, path=PATH, expires=NOW + 60, network=None):
    return dict(parse_qsl(sign_path(secret, path, expires, network), strict_parsing=True))


@pytest.fixture
def policy():
    return LinkPolicy((NEW, OLD), required=True)


@pytest.mark.parametrize("secret", [OLD, NEW])
def test_a_link_of_any_secret_in_use_is_good_until_it_expires(policy, secret):
    query = link(secret)

    assert policy.authorize(PATH, query, NOW, "192.0.2.7") is None
    assert policy.authorize(PATH, query, NOW + 60, None) is None
    assert "expired" in policy.authorize(PATH, query, NOW + 61, None)


@pytest.mark.parametrize(
    ("path", "changes", "word"),
    [
        (PATH, {"sig": None}, "needs a signed link"),
        (PATH, {"sig": "x"}, "not as it was made"),
        (PATH, {"sig": "x" * 43}, "not as it was made"),
        (PATH, {"sig": "\ud800é"}, "not as it was made"),
        (PATH, {"expires": str(NOW + 999)}, "not as it was made"),
        (PATH, {"expires": "-5"}, "not as it was made"),
        (PATH, {"expires": "٣"}, "not as it was made"),
        (PATH, {"expires": "9" * 5000}, "not as it was made"),
        (PATH, {"expires": None}, "not as it was made"),
        (PATH, {"net": "0.0.0.0/0"}, "not as it was made"),
        ("/titles/other/content", {}, "not as it was made"),
        ("/titles/clock/stream", {}, "not as it was made"),
    ],
)
def test_a_link_that_was_changed_is_refused(policy, path, changes, word):
    query = {name: text for name, text in (link() | changes).items() if text is not None}

    assert word in policy.authorize(path, query, NOW, None)


def test_a_link_of_another_secret_is_refused(policy):
    query = link(b"a secret that was given up long ago")

    assert policy.authorize(PATH, query, NOW, None) is not None


@pytest.mark.parametrize(
    ("network", "peer", "lets_in"),
    [
        ("192.0.2.0/24", "192.0.2.200", True),
        ("192.0.2.77/24", "192.0.2.200", True),
        ("192.0.2.0/24", "192.0.3.1", False),
        ("192.0.2.5", "192.0.2.5", True),
        ("192.0.2.5", "192.0.2.6", False),
        ("192.0.2.0/24", "::ffff:192.0.2.5", True),
        ("2001:db8::/32", "2001:db8::1", True),
        ("2001:db8::/32", "2001:db8::1%eth0", True),
        ("2001:db8::/32", "192.0.2.1", False),
        ("192.0.2.0/24", None, False),
        ("192.0.2.0/24", "nonsense", False),
    ],
)
def test_a_link_may_be_for_one_network(policy, network, peer, lets_in):
    query = link(network=network)

    assert (policy.authorize(PATH, query, NOW, peer) is None) == lets_in


@given(query=st.dictionaries(st.sampled_from(["expires", "net", "sig", "x"]), st.text()))
def test_no_query_that_was_not_made_is_let_in(query):
    policy = LinkPolicy((NEW, OLD), required=True)

    assert policy.authorize(PATH, query, NOW, "192.0.2.1") is not None


@given(
    path=st.text(),
    expires=st.integers(0, 10**11),
    network=st.one_of(st.none(), st.ip_addresses().map(str)),
)
def test_every_link_that_was_made_is_let_in(path, expires, network):
    path = f"/{path}/content"
    policy = LinkPolicy((NEW,), required=True)

    assert policy.authorize(path, link(NEW, path, expires, network), expires, network) is None


@pytest.mark.parametrize(
    ("path", "needed"),
    [
        ("/titles/clock/content", True),
        ("/titles/clock/stream", True),
        ("/titles/clock/torrent", True),
        ("/torrents/aa.torrent", True),
        ("/titles", False),
        ("/titles/clock", False),
        ("/healthz", False),
        ("/metrics", False),
    ],
)
def test_films_and_what_leads_to_them_need_a_link(policy, path, needed):
    assert needs_link(path) == needed
    assert (policy.authorize(path, {}, NOW, None) is not None) == needed
    assert LinkPolicy((NEW,)).authorize(path, {}, NOW, None) is None


def test_a_link_to_the_torrent_extends_to_the_film(policy):
    query = link(OLD, "/titles/clock/torrent", NOW + 60, "192.0.2.0/24")

    extended = dict(parse_qsl(policy.extend(PATH, query)))

    assert policy.authorize(PATH, extended, NOW, "192.0.2.1") is None
    assert policy.authorize(PATH, extended, NOW, "192.0.9.1") is not None
    assert policy.authorize(PATH, extended, NOW + 61, "192.0.2.1") is not None
    assert LinkPolicy().extend(PATH, {}) == ""


def test_an_impossible_network_is_one_clear_line():
    with pytest.raises(LinkError, match="'here' is no network"):
        sign_path(NEW, PATH, NOW, "here")


def test_links_cannot_be_required_without_a_secret():
    with pytest.raises(LinkError, match="--link-secrets"):
        LinkPolicy((), required=True)


def secret_file(tmp_path, data, mode=0o600):
    path = tmp_path / "secrets"
    path.write_bytes(data)
    path.chmod(mode)
    return path


def test_secrets_are_lines(tmp_path):
    path = secret_file(tmp_path, NEW + b"\r\n\n  " + OLD + b"  \n")

    assert read_secrets(path) == (NEW, OLD)


@pytest.mark.parametrize(
    ("data", "mode", "word"),
    [
        (NEW, 0o640, "chmod 600"),
        (NEW, 0o604, "chmod 600"),
        (b"", 0o600, "no secret"),
        (b"\n \n", 0o600, "no secret"),
        (b"short", 0o600, "shorter"),
        (NEW + b"\nshort", 0o600, "shorter"),
        (b"x" * 100_000, 0o600, "no secret"),
    ],
)
def test_a_secret_file_that_is_not_good_is_one_clear_line(tmp_path, data, mode, word):
    path = secret_file(tmp_path, data, mode)

    with pytest.raises(LinkError, match=word) as told:
        read_secrets(path)

    assert "\n" not in str(told.value)
    assert str(path) in str(told.value)


def test_what_is_no_file_is_no_secret_file(tmp_path):
    with pytest.raises(LinkError, match="cannot read"):
        read_secrets(tmp_path / "none")
    with pytest.raises(LinkError):
        read_secrets(tmp_path)
