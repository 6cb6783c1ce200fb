"""What a worker is told: nothing is lost on the way, and limits are divided."""

import dataclasses
import json
from pathlib import Path

import pytest

from vodserver.errors import ChannelError
from vodserver.settings import ServeSettings
from vodserver.workers.terms import Terms, share_of

TERMS = Terms(
    settings=ServeSettings(
        host="::1",
        public_url="https://films.example",
        trackers=("http://a/announce", "udp://b:1/announce"),
        egress_rate=1e6,
        link_secrets=Path("/keys/secrets"),
        tls_cert=Path("/keys/cert.pem"),
        tls_key=Path("/keys/key.pem"),
        access_log="-",
        require_signed=True,
    ),
    store=Path("/store"),
    disks={0: Path("/disk 0"), 3: Path("/dísk3")},
    bad=frozenset({("folder", 4, 0)}),
)


def test_terms_arrive_as_they_were_sent():
    assert Terms.from_json(json.loads(json.dumps(TERMS.to_json()))) == TERMS


def test_every_path_among_the_settings_arrives_as_one():
    fields = {f.name for f in dataclasses.fields(ServeSettings) if "Path" in str(f.type)}
    settings = dataclasses.replace(TERMS.settings, **dict.fromkeys(fields, Path("/x")))
    terms = dataclasses.replace(TERMS, settings=settings)

    assert fields
    assert Terms.from_json(json.loads(json.dumps(terms.to_json()))) == terms


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"settings": {}},
        TERMS.to_json() | {"disks": [1]},
        TERMS.to_json() | {"settings": {"trackers": [], "colour": 1}},
    ],
)
def test_what_are_no_terms_is_refused(values):
    with pytest.raises(ChannelError):
        Terms.from_json(values)


def test_limits_of_the_server_are_divided_and_those_of_a_connection_are_not():
    whole = ServeSettings(
        workers=3,
        http_connections=10,
        client_connections=2,
        egress_rate=9e6,
        held_bytes=3000,
        streams_limit=7,
    )
    share = share_of(whole, 3, 4711)

    assert (share.port, share.http_connections, share.client_connections) == (4711, 4, 1)
    assert (share.egress_rate, share.held_bytes) == (3e6, 1000)
    changed = {"port", "http_connections", "client_connections", "egress_rate", "held_bytes"}
    changed.add("workers")
    for field in dataclasses.fields(whole):
        if field.name not in changed:
            assert getattr(share, field.name) == getattr(whole, field.name)


def test_no_limit_stays_none():
    share = share_of(ServeSettings(client_connections=None), 4, 1)

    assert (share.client_connections, share.egress_rate) == (None, None)
