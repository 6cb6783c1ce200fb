import pytest

from tracker.messages import address_group, is_loopback, pack_address


@pytest.mark.parametrize(
    ("text", "packed"),
    [
        ("192.0.2.7", bytes([192, 0, 2, 7])),
        ("::1", b"\0" * 15 + b"\1"),
        ("2001:db8::5", bytes.fromhex("20010db8000000000000000000000005")),
        ("::ffff:192.0.2.7", bytes([192, 0, 2, 7])),
        ("fe80::1%eth0", bytes.fromhex("fe800000000000000000000000000001")),
        ("", None),
        ("viewer.example", None),
        ("192.0.2", None),
        ("0.0.0.0", None),
        ("::", None),
        ("224.0.0.1", None),
        ("ff02::1", None),
    ],
)
def test_addresses_are_packed_in_one_form_and_useless_ones_refused(text, packed):
    assert pack_address(text) == packed


@pytest.mark.parametrize(
    ("text", "loopback"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("128.0.0.1", False),
        ("::2", False),
        ("2001:db8::1", False),
    ],
)
def test_loopback_is_the_whole_of_127_and_one_ipv6_address(text, loopback):
    assert is_loopback(pack_address(text)) is loopback


def test_ipv4_hosts_are_counted_alone_and_ipv6_hosts_by_their_64():
    assert address_group(pack_address("192.0.2.1")) != address_group(pack_address("192.0.2.2"))
    assert address_group(pack_address("2001:db8::1")) == address_group(pack_address("2001:db8::2"))
    assert address_group(pack_address("2001:db8:0:1::1")) != address_group(
        pack_address("2001:db8:0:2::1")
    )
