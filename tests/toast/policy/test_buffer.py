import pytest

from tests.conformance.check_picker import make_view
from toast.policy.buffer import buffer_names, create_buffer
from toast.policy.errors import PolicyError


def test_unlimited_keeps_everything():
    decision = create_buffer("unlimited").decide(make_view("111", "***", playhead=2), 10**12)

    assert decision.eject.size == 0
    assert not decision.suspend


def test_names():
    assert buffer_names() == ("unlimited",)
    with pytest.raises(PolicyError, match="there is no buffer"):
        create_buffer("tiny")
