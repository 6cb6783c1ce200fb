"""Addresses as people write them, and the options that become settings of a session."""

import click
import pytest
from click.testing import CliRunner

from toast.cli.network import NetworkOptions, listen_address, network_options
from toast.common.errors import UsageError
from toast.swarm import SessionSettings, Utp


@pytest.mark.parametrize(
    "case",
    [
        ("127.0.0.1", ("127.0.0.1", 0)),
        ("127.0.0.1:6881", ("127.0.0.1", 6881)),
        ("0.0.0.0:0", ("0.0.0.0", 0)),
        ("::1", ("::1", 0)),
        ("[::1]:6881", ("::1", 6881)),
        ("*", ("*", 0)),
        ("*:6881", ("*", 6881)),
    ],
)
def test_listen_addresses(case):
    text, wanted = case
    assert listen_address(text) == wanted


@pytest.mark.parametrize(
    "text",
    ["127.0.0.1:", "127.0.0.1:x", "127.0.0.1:-1", "127.0.0.1:65536", "*:", "*:x", "*.1", ""],
)
def test_listen_addresses_that_are_none(text):
    with pytest.raises(UsageError, match="is not an address"):
        listen_address(text)


def parsed(*words):
    made = []

    @click.command()
    @network_options
    def command(**options):
        made.append(NetworkOptions.parse(**options))

    result = CliRunner().invoke(command, words)
    assert result.exit_code == 0, result.output
    return made[0]


def test_without_options_it_is_as_the_session_s_settings_say():
    options, settings = parsed(), SessionSettings()
    for name in ("listen_host", "listen_port", "utp", "port_mapping", "discovery"):
        assert getattr(options, name) == getattr(settings, name)


def test_each_option_is_heard():
    words = ("--listen", "[::1]:7", "--utp", "only", "--no-port-mapping", "--no-discovery")
    assert parsed(*words) == NetworkOptions("::1", 7, Utp.ONLY, port_mapping=False, discovery=False)
