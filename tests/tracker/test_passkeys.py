import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracker.errors import RequestError, TrackerError
from tracker.passkeys import Passkeys

SECRET = b"sixteen bytes or more"


def test_a_passkey_names_its_viewer():
    passkeys = Passkeys(SECRET)
    assert passkeys.check(passkeys.give("alice").encode()) == "alice"
    assert passkeys.give("alice").startswith("alice.")
    assert Passkeys(SECRET).give("alice") == passkeys.give("alice")


@pytest.mark.parametrize(
    "wrong",
    [None, b"", b".", b"alice", b"alice.", b"bob.0123456789abcdef0123456789abcdef", b"\xff.x"],
)
def test_others_are_refused_for_good(wrong):
    with pytest.raises(RequestError, match="passkey") as refusal:
        Passkeys(SECRET).check(wrong)
    assert refusal.value.retry == "never"


@given(junk=st.binary(max_size=80))
def test_nothing_made_up_passes(junk):
    with pytest.raises(RequestError):
        Passkeys(SECRET).check(junk)


def test_a_passkey_is_not_good_for_another_name_or_under_another_secret():
    signature = Passkeys(SECRET).give("alice").rpartition(".")[2]
    for passkeys, key in ((Passkeys(SECRET), f"bob.{signature}"), (Passkeys(b"x" * 16), "alice")):
        with pytest.raises(RequestError):
            passkeys.check(key.encode())


def test_secrets_and_names_have_their_form():
    with pytest.raises(TrackerError, match="16 bytes"):
        Passkeys(b"short")
    for name in ("", "a b", "x" * 65, "a.b", "a\n"):
        with pytest.raises(TrackerError, match="no name"):
            Passkeys(SECRET).give(name)
