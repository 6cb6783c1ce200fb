from tracker.messages import pack_address
from tracker.rates import PERIOD_SECONDS, RequestRates
from tracker.swarm import family_of


def ask(rates, text, now, port=1):
    address = pack_address(text)
    key = int.from_bytes(address, "big") << 16 | port
    return rates.admit(family_of(address), key, now)


def test_an_address_has_its_share_of_each_period_whatever_its_ports():
    rates = RequestRates(2)
    answers = [ask(rates, "198.51.100.1", 5.0, port) for port in range(3)]
    assert answers == [True, True, False]
    assert ask(rates, "198.51.100.2", 5.0)
    assert ask(rates, "198.51.100.1", 5.0 + PERIOD_SECONDS)


def test_an_ipv6_household_is_one_address():
    rates = RequestRates(1)
    assert ask(rates, "2001:db8::1", 5.0)
    assert not ask(rates, "2001:db8::2", 5.0)
    assert ask(rates, "2001:db8:0:1::1", 5.0)


def test_loopback_is_not_limited():
    rates = RequestRates(1)
    assert all(ask(rates, text, 5.0) for text in ("127.0.0.1", "::1") for _ in range(3))
