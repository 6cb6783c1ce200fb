import pytest

from toast.common.errors import UsageError
from toast.common.registry import Registry
from toast.policy.errors import PolicyError


def test_names_are_sorted_and_unknown_ones_answered_with_them():
    zoo = Registry("animal", PolicyError)
    zoo.register("zebra", lambda: "z")
    zoo.register("ant", lambda legs=6: f"a{legs}")

    assert zoo.names() == ("ant", "zebra")
    assert zoo.create("ant", legs=5) == "a5"
    with pytest.raises(PolicyError, match=r"there is no animal 'cow': choose one of ant, zebra"):
        zoo.create("cow")
    with pytest.raises(PolicyError, match=r"animal 'ant' does not take these: wings"):
        zoo.create("ant", wings=2)


def test_a_wrong_choice_of_policy_is_a_usage_error():
    assert issubclass(PolicyError, UsageError)
