import numpy as np
import pytest

from tests.conformance.check_picker import check_picker, make_view
from toast.policy.errors import PolicyError
from toast.policy.pickers import create_picker, make_plan, picker_names
from toast.policy.pickers.base import by_due_time
from toast.policy.view import Plan, SwarmView

NOTHING = np.empty(0, dtype=np.intp)


def plan_of(*pieces):
    return Plan(np.array(pieces, dtype=np.intp), NOTHING)


def rng(seed=0):
    return np.random.default_rng(seed)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["beta", "hybrid", "in-order", "rarest-first"])
def test_every_registered_picker_passes_the_kit(name):
    check_picker(lambda: create_picker(name))


def test_the_list_of_tested_pickers_is_complete():
    assert picker_names() == ("beta", "hybrid", "in-order", "rarest-first")


class TestTheKitItself:
    """A kit that passes everything is worth nothing: each of these breaks one rule."""

    class InOrder:
        name = "broken"

        def rank(self, view, rng):
            return by_due_time(view, view.candidates)

        def drawn(self, view):
            return np.zeros_like(view.missing)

    class IgnoresHorizon(InOrder):
        def rank(self, view, rng):
            return np.flatnonzero(view.missing & (view.availability > 0) & ~view.closed)

    class Repeats(InOrder):
        def rank(self, view, rng):
            return np.repeat(np.flatnonzero(view.candidates), 2)

    class OwnChance(InOrder):
        chance = np.random.default_rng()

        def rank(self, view, rng):
            return self.chance.permutation(np.flatnonzero(view.candidates))

    class Idle(InOrder):
        def rank(self, view, rng):
            return NOTHING

    class Vandal(InOrder):
        def rank(self, view, rng):
            ranked = np.flatnonzero(view.candidates)
            view.missing[:] = False
            return ranked

    @pytest.mark.slow
    def test_a_right_picker_passes(self):
        check_picker(self.InOrder)

    @pytest.mark.slow
    @pytest.mark.parametrize("broken", [IgnoresHorizon, Repeats, OwnChance, Idle, Vandal])
    def test_a_broken_picker_does_not(self, broken):
        with pytest.raises((AssertionError, ExceptionGroup)):
            check_picker(broken, shrink=False)


class TestRegistry:
    def test_both_spellings_are_understood(self):
        assert create_picker("in_order").name == create_picker("in-order").name == "in-order"

    @pytest.mark.parametrize("name", picker_names())
    def test_a_picker_knows_its_name(self, name):
        assert create_picker(name).name == name

    def test_an_unknown_name_is_answered_with_the_known_ones(self):
        with pytest.raises(PolicyError, match=r"no picker 'best': choose one of beta, hybrid"):
            create_picker("best")

    def test_a_wrong_parameter_is_refused(self):
        with pytest.raises(PolicyError, match="does not take these: colour"):
            create_picker("beta", colour=3)


class TestView:
    def test_candidates_in_a_picture(self):
        """0 is here, 1 is too near, 2 as well but under way, 3 nobody has, 4 is closed."""
        view = make_view("1110111", "*", in_flight="  x", closed="    x", horizon=3.0)

        assert np.flatnonzero(view.candidates).tolist() == [2, 5, 6]
        assert np.flatnonzero(view.needed).tolist() == [2, 3, 5, 6]

    def test_pieces_behind_the_playhead_come_last(self):
        view = make_view("11111", playhead=2)

        assert by_due_time(view, view.candidates).tolist() == [2, 3, 4, 0, 1]

    def test_due_times_need_not_rise_with_the_number(self):
        view = SwarmView(
            slack=np.array([0.0, 5.0, 2.0, 9.0]),
            missing=np.ones(4, bool),
            availability=np.ones(4, np.int32),
            in_flight=np.zeros(4, bool),
            closed=np.zeros(4, bool),
            horizon=1.0,
            playhead_piece=0,
            seconds_per_piece=1.0,
        )

        assert by_due_time(view, view.candidates).tolist() == [2, 1, 3]


class TestMakePlan:
    def test_top_then_open(self):
        plan = make_plan(create_picker("in-order"), make_view("111111"), rng(), top=2, open_=3)

        assert plan.top.tolist() == [0, 1]
        assert plan.open.tolist() == [2, 3, 4]

    def test_what_was_begun_goes_first_and_is_never_pushed_out(self):
        view = make_view("111111", in_flight="   xxx")
        plan = make_plan(create_picker("in-order"), view, rng(), top=2, open_=1)

        assert plan.top.tolist() == [3, 4, 5]
        assert plan.open.tolist() == [0]

    def test_what_was_begun_is_finished_inside_the_horizon(self):
        view = make_view("111111", in_flight=" x", horizon=4.0)
        plan = make_plan(create_picker("in-order"), view, rng(), top=2)

        assert plan.top.tolist() == [1, 4]

    def test_what_was_begun_is_left_when_the_origin_takes_it(self):
        view = make_view("111111", in_flight=" x", closed=" x", horizon=4.0)
        plan = make_plan(create_picker("in-order"), view, rng(), top=2)

        assert plan.top.tolist() == [4, 5]

    def test_what_was_begun_with_a_neighbour_who_left_is_not_asked_for(self):
        plan = make_plan(create_picker("in-order"), make_view("101", in_flight=" x"), rng(), top=2)

        assert plan.top.tolist() == [0, 2]

    @pytest.mark.parametrize("name", ["beta", "rarest-first"])
    def test_a_draw_is_kept_until_it_is_used(self, name):
        picker, view, chance = create_picker(name), make_view("2" * 60, "****"), rng()
        first = make_plan(picker, view, chance, top=6)
        second = make_plan(picker, view, chance, top=6, previous=first)

        assert second.top.tolist() == first.top.tolist()

    def test_a_piece_that_came_makes_room_for_one_new_draw(self):
        picker, chance = create_picker("rarest-first"), rng()
        first = make_plan(picker, make_view("2" * 40, "****"), chance, top=5)
        came = int(first.top[1])
        have = "".join("*" if i < 4 or i == came else " " for i in range(40))
        second = make_plan(picker, make_view("2" * 40, have), chance, top=5, previous=first)

        assert second.top[:4].tolist() == [p for p in first.top.tolist() if p != came]
        assert second.top.size == 5

    def test_in_order_lets_an_earlier_piece_in_ahead(self):
        picker = create_picker("in-order")
        plan = make_plan(picker, make_view("111111"), rng(), top=3, previous=plan_of(3, 4, 5))

        assert plan.top.tolist() == [0, 1, 2]

    def test_hybrid_lets_a_soon_piece_in_ahead_of_kept_draws(self):
        picker = create_picker("hybrid", in_order_seconds=3.0)
        view = make_view("1" * 20, "*")
        plan = make_plan(picker, view, rng(), top=5, previous=plan_of(2, 17, 9))

        assert plan.top.tolist()[:4] == [1, 2, 17, 9]

    def test_a_kept_draw_that_nobody_has_any_more_goes(self):
        picker = create_picker("beta")
        plan = make_plan(picker, make_view("1101"), rng(), top=2, previous=plan_of(2, 3))

        assert plan.top[0] == 3
        assert 2 not in plan.top


class TestNobodyIdles:
    """What a neighbour has who has nothing of the rest of the plan."""

    def holding(self, picture, most=2):
        return np.array([mark != " " for mark in picture]), most

    def test_one_who_has_nothing_of_the_best_is_asked_for_the_best_of_its_own(self):
        picker, view = create_picker("rarest-first"), make_view("11111111223355", "****")
        common = self.holding("    " + "    " + "xx" + "xx" + "xx")
        plan = make_plan(picker, view, rng(), top=3, open_=1, holdings=[common])

        assert sorted([*plan.top.tolist(), *plan.open[:1].tolist()]) == [4, 5, 6, 7]
        assert sorted(plan.open[1:].tolist()) == [8, 9]

    def test_who_has_one_of_the_best_is_given_nothing_more(self):
        view = make_view("1111111")
        holdings = [self.holding("   xxxx"), self.holding("xxxxxxx")]
        plan = make_plan(create_picker("in-order"), view, rng(), top=2, open_=2, holdings=holdings)

        assert plan.top.tolist() == [0, 1]
        assert plan.open.tolist() == [2, 3]

    def test_what_is_under_way_is_nothing_to_ask_for(self):
        view = make_view("1111111", in_flight="xx")
        plan = make_plan(
            create_picker("in-order"), view, rng(), top=2, holdings=[self.holding("xx   x ", 1)]
        )

        assert plan.top.tolist() == [0, 1]
        assert plan.open.tolist() == [5]

    def test_two_who_have_the_same_share_it(self):
        view = make_view("1111111")
        holdings = [self.holding("    xxx", 2), self.holding("    xxx", 3)]
        plan = make_plan(create_picker("in-order"), view, rng(), top=2, holdings=holdings)

        assert plan.open.tolist() == [4, 5]

    def test_in_order_stays_in_order_whoever_is_asked_first(self):
        view = make_view("111111111")
        holdings = [self.holding("      xxx"), self.holding("    xx   ")]
        plan = make_plan(create_picker("in-order"), view, rng(), top=2, holdings=holdings)

        assert plan.open.tolist() == [4, 5, 6, 7]

    def test_a_draw_is_kept(self):
        picker, view, chance = create_picker("beta"), make_view("1" * 60), rng()
        holdings = [self.holding(" " * 30 + "x" * 30)]
        first = make_plan(picker, view, chance, top=0, holdings=holdings)
        second = make_plan(picker, view, chance, top=0, holdings=holdings, previous=first)

        assert first.open.size == 2
        assert second.open.tolist() == first.open.tolist()

    def test_one_who_has_nothing_that_is_wanted_changes_nothing(self):
        view = make_view("1111", "  **")
        plan = make_plan(
            create_picker("in-order"), view, rng(), top=1, holdings=[self.holding("  xx")]
        )

        assert plan.open.size == 0
