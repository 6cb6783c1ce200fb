import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toast.policy.errors import PolicyError
from toast.policy.neighbours import (
    Ahead,
    Candidate,
    NeighbourSettings,
    company,
    create_neighbours,
    is_worth_calling,
    neighbours_names,
)


def at(name):
    return (name, 6881)


def someone(name, position=None, *, complete=False, operator=False):
    return Candidate(at(name), position, complete, operator)


SEED = someone("seed", None, complete=True, operator=True)


def choose(policy, people, *, own=100.0, connected=(), useful=(), need=5.0, seed=0):
    chosen = policy.choose(
        own,
        people,
        {at(name) for name in connected},
        {at(name): 1e5 for name in useful},
        need,
        np.random.default_rng(seed),
    )
    return [host for host, _ in chosen]


class TestAhead:
    policy = Ahead(ahead=2, complete=1)

    def test_the_closest_ahead_are_chosen(self):
        people = [someone("d", 400), someone("b", 120), someone("c", 150), someone("late", 50)]

        assert choose(self.policy, people) == ["b", "c"]

    def test_as_many_as_told(self):
        people = [someone(c, 110 + i) for i, c in enumerate("abcdef")]

        assert choose(Ahead(ahead=1), people) == ["a"]
        assert choose(Ahead(NeighbourSettings(ahead=4, complete=0)), people) == [
            "a",
            "b",
            "c",
            "d",
        ]

    def test_who_is_hardly_ahead_has_nothing_that_comes_in_time(self):
        people = [someone("hardly", 101), someone("nearly", 104), someone("well", 160)]

        assert choose(self.policy, people) == ["well", "nearly"]

    def test_a_viewer_with_the_whole_film_is_taken_besides(self):
        people = [someone("a", 120), someone("b", 130), someone("done", 500, complete=True)]

        assert choose(self.policy, people) == ["a", "b", "done"]
        assert choose(Ahead(ahead=2, complete=0), people) == ["a", "b"]

    def test_where_nobody_is_ahead_those_who_are_done_take_all_places(self):
        people = [someone("late", 50), *(someone(c, 900, complete=True) for c in "uvwxyz")]

        chosen = choose(self.policy, people)
        assert len(chosen) == 3
        assert set(chosen) <= set("uvwxyz")
        assert len({choose(self.policy, people, seed=s)[0] for s in range(60)}) == 6

    def test_who_is_too_close_keeps_no_place(self):
        people = [someone("close", 101), someone("well", 110)]

        chain = Ahead(ahead=1, complete=0)
        assert choose(chain, people, connected=["close"], useful=["close"]) == ["well"]
        assert choose(chain, people, connected=["close", "well"], useful=["close"]) == []

    def test_who_sends_keeps_its_place_for_half_a_second(self):
        """Positions are not known better."""
        people = [someone("a", 104.5), someone("b", 106)]

        chain = Ahead(ahead=1, complete=0)
        assert choose(chain, people, connected=["a"], useful=["a"]) == []
        assert choose(chain, people, connected=["a"]) == ["b"]

    def test_the_position_of_who_is_done_does_not_matter(self):
        """It may have begun the film anew: it still has all of it."""
        assert choose(self.policy, [someone("done", 3, complete=True)]) == ["done"]

    def test_stock_clients_fill_what_is_left(self):
        people = [someone("stock"), someone("a", 130), SEED]

        assert choose(self.policy, people) == ["a", "stock"]

    def test_the_operator_s_seed_only_if_there_is_no_viewer_to_take_from(self):
        assert choose(self.policy, [SEED]) == ["seed"]
        assert choose(self.policy, [SEED, someone("late", 50)]) == ["seed"]
        assert choose(self.policy, [SEED, someone("a", 130)]) == ["a"]

    def test_with_the_seed_there_a_viewer_is_called_nevertheless(self):
        people = [SEED, someone("a", 130)]

        assert choose(self.policy, people, connected=["seed"], useful=["seed"]) == ["a"]
        assert choose(self.policy, people, connected=["seed", "a"]) == []

    def test_one_who_vanished_is_replaced(self):
        people = [someone("a", 120), someone("b", 130), someone("c", 140)]
        assert choose(self.policy, people, connected=["a", "b"]) == []

        assert choose(self.policy, people[1:], connected=["b"]) == ["c"]

    def test_one_who_sends_keeps_its_place_though_a_closer_one_is_there(self):
        people = [someone("new", 110), someone("a", 120), someone("b", 130)]

        assert choose(self.policy, people, connected=["a", "b"], useful=["a", "b"]) == []
        assert choose(self.policy, people, connected=["a", "b"], useful=["b"]) == ["new"]

    def test_those_behind_who_came_to_us_take_no_place(self):
        people = [someone("a", 120), someone("late", 50), someone("later", 20)]

        assert choose(self.policy, people, connected=["late", "later"]) == ["a"]

    def test_after_a_seek_back_the_old_neighbours_make_place(self):
        people = [
            someone("far", 2000),
            someone("farther", 2100),
            someone("a", 30),
            someone("b", 40),
        ]

        assert choose(self.policy, people, own=10.0, connected=["far", "farther"]) == ["a", "b"]

    def test_a_connection_to_someone_the_tracker_does_not_name_stays(self):
        assert choose(self.policy, [someone("a", 120)], connected=["stranger"]) == ["a"]

    @pytest.mark.parametrize(
        "fields", [{"ahead": 0}, {"beside": 0}, {"complete": -1}, {"colour": 1}]
    )
    def test_impossible_settings_are_refused(self, fields):
        with pytest.raises(PolicyError):
            create_neighbours("ahead", **fields)


class TestCompany:
    """Several who watch the same moment, and nobody to follow."""

    beside = tuple(someone(name, 100 + n / 10) for n, name in enumerate("abcdefgh", -4))

    def test_those_beside_us(self):
        others = [someone("late", 90), someone("far", 150), SEED, someone("x"), *self.beside]

        assert company(100.0, [*others, someone("done", 100, complete=True)]) == [*self.beside]

    @pytest.mark.parametrize(("count", "some"), [(2, False), (3, True)])
    def test_fewer_follow_each_other(self, count, some):
        assert bool(company(100.0, self.beside[:count])) is some

    @pytest.mark.parametrize(("ahead", "some"), [(1, True), (2, False)])
    def test_where_enough_are_ahead_they_are_followed(self, ahead, some):
        people = [*self.beside[:3], *(someone(f"p{n}", 105 + n) for n in range(ahead))]

        assert bool(company(100.0, people)) is some

    def test_several_of_them_are_called_whoever_is_ahead(self):
        people = [someone("ahead", 105), someone("late", 95), *self.beside]
        policy = Ahead(ahead=1, beside=4, complete=0)

        chosen = choose(policy, people)
        assert len(chosen) == 4
        assert set(chosen) <= set("abcdefgh")
        assert len({choose(policy, people, seed=s)[0] for s in range(60)}) == 8

    def test_those_who_are_there_count(self):
        policy = Ahead(ahead=1, beside=4, complete=0)

        assert choose(policy, self.beside, connected="abc")[0] in set("defgh")
        assert len(choose(policy, self.beside, connected="abc")) == 1
        assert choose(policy, self.beside, connected="abcd") == []

    def test_viewers_with_the_whole_film_are_taken_besides(self):
        people = [someone("done", 3, complete=True), *self.beside]

        assert choose(Ahead(beside=2, complete=1), people)[-1] == "done"


class TestMeshes:
    PEOPLE = (SEED, *(someone(c, float(i)) for i, c in enumerate("abcdefgh")))

    def test_everyone_is_everyone(self):
        chosen = choose(create_neighbours("everyone"), self.PEOPLE, connected=["c"])

        assert set(chosen) == {"seed", *"abdefgh"}

    def test_everyone_has_a_limit(self):
        policy = create_neighbours("everyone", limit=4)

        assert len(choose(policy, self.PEOPLE, connected=["c"])) == 3

    def test_random_fills_up_to_k(self):
        policy = create_neighbours("random", k=3)

        chosen = choose(policy, self.PEOPLE, connected=["a"])
        assert len(chosen) == 2
        assert "a" not in chosen
        assert choose(policy, self.PEOPLE, connected=["a", "b", "x"]) == []

    def test_random_is_random_and_repeats_for_a_seed(self):
        policy = create_neighbours("random", k=1)
        firsts = [choose(policy, self.PEOPLE, seed=s)[0] for s in range(200)]

        assert set(firsts) == {"seed", *"abcdefgh"}
        assert firsts == [choose(policy, self.PEOPLE, seed=s)[0] for s in range(200)]

    @pytest.mark.parametrize(("name", "field"), [("everyone", "limit"), ("random", "k")])
    def test_impossible_settings_are_refused(self, name, field):
        with pytest.raises(PolicyError, match="must be at least 1"):
            create_neighbours(name, **{field: 0})


def test_names():
    assert neighbours_names() == ("ahead", "everyone", "random")
    assert all(create_neighbours(name).name == name for name in neighbours_names())


people = st.lists(
    st.builds(
        Candidate,
        st.tuples(st.sampled_from("abcdefghij"), st.integers(1, 3)),
        st.none() | st.floats(0, 200),
        st.booleans(),
        st.booleans(),
    ),
    max_size=15,
    unique_by=lambda c: c.address,
)


@settings(derandomize=True, deadline=None)
@given(
    st.sampled_from(neighbours_names()),
    people,
    st.sets(st.tuples(st.sampled_from("abcdefghij"), st.integers(1, 3))),
    st.floats(0, 200),
    st.data(),
)
def test_every_choice_is_lawful(name, candidates, connected, own, data):
    useful = {a: data.draw(st.sampled_from([0.0, 1e5])) for a in sorted(connected)}
    policy = create_neighbours(name)

    def ask(present):
        return policy.choose(own, candidates, present, useful, 5.0, np.random.default_rng(1))

    chosen = ask(connected)
    known = {c.address: c for c in candidates}
    assert set(chosen) <= set(known)
    assert not set(chosen) & connected
    assert len(set(chosen)) == len(chosen)
    assert ask(connected | set(chosen)) == (), "what was chosen stays chosen"
    if name == "ahead" and any(not c.operator and c.complete for c in candidates):
        new = {known[a].operator for a in chosen}
        assert True not in new, "no operator's byte where a viewer has the film"


@pytest.mark.parametrize(
    ("whole", "operator", "worth"),
    [(False, False, True), (True, False, False), (True, True, False)],
)
def test_two_who_need_nothing_are_not_worth_a_call(whole, operator, worth):
    someone = Candidate(("127.0.0.1", 1), None, complete=whole, operator=operator)
    assert is_worth_calling(someone, complete=True) is worth
    assert is_worth_calling(someone, complete=False)
