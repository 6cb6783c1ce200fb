import math

import numpy as np
import pytest

from toast.policy import EstimateSettings, Prospects, UplinkMemory, Uplinks

FILM_RATE = 100.0
BLOCK = 10


def uplinks(*who, pieces=4):
    """Each is (rate, queued bytes) or (rate, queued bytes, {what is not as it should be})."""
    rates, queued, choking, silent, has = [], [], [], [], []
    for rate, bytes_, *rest in who:
        odd = rest[0] if rest else {}
        rates.append(rate)
        queued.append(bytes_)
        choking.append(odd.get("choking", False))
        silent.append(odd.get("silent", 0.0))
        has.append([sign == "*" for sign in odd.get("has", "*" * pieces).ljust(pieces)])
    return Uplinks(
        np.array(rates, dtype=np.float64),
        np.array(queued, dtype=np.float64),
        np.array(choking, dtype=np.bool_),
        np.array(silent, dtype=np.float64),
        np.array(has, dtype=np.bool_).reshape(len(who), pieces),
    )


def prospects(*who, **settings):
    return Prospects(uplinks(*who), FILM_RATE, EstimateSettings(**settings))


def soonest(found, *sizes):
    return found.soonest(range(len(sizes)), sizes)


class TestWhoIsCountedOn:
    @pytest.mark.parametrize(
        ("who", "live"),
        [
            ((50.0, 0), True),
            ((math.nan, 0), True),
            ((50.0, 0, {"choking": True}), False),
            ((50.0, 30, {"silent": 1.9}), True),
            ((50.0, 30, {"silent": 2.1}), False),
            ((math.nan, 30, {"silent": 2.1}), False),
            ((0.0, 0), False),
        ],
    )
    def test_who_sends_or_may_yet_send(self, who, live):
        assert prospects(who).live == [live]

    def test_nobody_is_there(self):
        none = Prospects(Uplinks.none(), FILM_RATE, EstimateSettings())

        assert none.live == []
        assert soonest(none, 5.0, 5.0) == [math.inf, math.inf]
        assert none.next_block([0, 1], BLOCK) == [math.inf, math.inf]
        assert not none.is_stuck([])

    def test_a_block_asked_of_one_who_is_silent_is_stuck(self):
        found = prospects((50.0, 30), (50.0, 30, {"silent": 9.0}))

        assert not found.is_stuck([0, 0])
        assert found.is_stuck([0, 1])


class TestNextBlock:
    def test_it_comes_after_what_was_asked_before(self):
        found = prospects((50.0, 100))

        assert found.next_block([0], BLOCK) == [2.2]

    def test_whoever_has_it_and_is_first_counts(self):
        found = prospects((50.0, 100), (10.0, 0, {"has": " *"}), (99.0, 0, {"choking": True}))

        assert found.next_block([0, 1, 2], BLOCK) == [2.2, 1.0, 2.2]

    def test_from_nobody_never(self):
        found = prospects((50.0, 0, {"has": "*"}))

        assert found.next_block([1], BLOCK) == [math.inf]


class TestSoonest:
    def test_one_after_the_other_at_the_rate_that_was_seen(self):
        assert soonest(prospects((50.0, 0)), 100, 100, 50) == [2.0, 4.0, 5.0]

    def test_what_was_asked_for_comes_first(self):
        assert soonest(prospects((50.0, 100)), 100) == [4.0]

    def test_several_send_together(self):
        assert soonest(prospects((50.0, 0), (150.0, 0)), 100, 100) == [0.5, 1.0]

    def test_only_who_has_it_sends_it(self):
        found = prospects((50.0, 0, {"has": "**"}), (150.0, 0, {"has": " *"}))

        assert soonest(found, 100, 90, 100) == [2.0, 0.6, math.inf]

    def test_one_who_never_sent_is_taken_to_keep_up_with_the_film(self):
        assert soonest(prospects((math.nan, 0)), 100) == [1.0]
        assert soonest(prospects((math.nan, 0), unproven_share=0.5), 100) == [2.0]

    def test_what_is_all_asked_for_comes_with_the_queue(self):
        assert soonest(prospects((50.0, 100)), 0) == [2.0]

    def test_who_is_busy_joins_when_it_is_free(self):
        """One is free at once, the other after a second: 50 bytes, then 200 a second together."""
        assert soonest(prospects((50.0, 0), (150.0, 150)), 250) == [2.0]

    def test_no_schedule_is_faster_but_by_the_last_blocks(self):
        """Against blocks that are each given to whoever would bring it first."""
        rng = np.random.default_rng(3)
        for _ in range(50):
            count, pieces = int(rng.integers(1, 5)), 6
            rates = rng.uniform(10, 200, count)
            queued = rng.integers(0, 300, count)
            has = rng.random((count, pieces)) < 0.7
            found = Prospects(
                Uplinks(
                    rates,
                    queued.astype(np.float64),
                    np.zeros(count, np.bool_),
                    np.zeros(count),
                    has,
                ),
                FILM_RATE,
                EstimateSettings(),
            )
            sizes = rng.integers(1, 8, pieces) * BLOCK
            bound = found.soonest(range(pieces), sizes.tolist())
            free = queued / rates
            for piece in range(pieces):
                who = np.flatnonzero(has[:, piece])
                if not who.size:
                    assert bound[piece] == math.inf
                    continue
                done = 0.0
                for _ in range(sizes[piece] // BLOCK):
                    best = who[np.argmin(free[who] + BLOCK / rates[who])]
                    free[best] += BLOCK / rates[best]
                    done = max(done, free[best])
                assert bound[piece] <= done + pieces * BLOCK / rates.min()


class TestMemory:
    HAS = np.ones((1, 2), dtype=np.bool_)

    def observe(self, memory, now, received, queued, who="a"):
        return memory.observe(now, [who], [received], [queued], [False], self.HAS)

    def sent(self, memory, rate, start=0.0, end=10.0, before=0):
        """It is asked all the time and sends at a rate."""
        for now in np.arange(start, end + 1e-9, 0.1):
            seen = self.observe(memory, float(now), before + int(rate * (now - start)), 10)
        return seen

    def test_one_who_never_sent_has_no_rate(self):
        seen = self.observe(UplinkMemory(), 5.0, 0, 0)

        assert np.isnan(seen.rates[0])
        assert seen.silent_seconds[0] == 0.0
        assert seen.has is self.HAS

    def test_the_rate_is_known_half_a_second_after_the_first_byte(self):
        assert self.sent(UplinkMemory(), 1000.0, end=0.5).rates[0] == pytest.approx(1000.0)

    def test_the_first_round_trip_does_not_count(self):
        memory = UplinkMemory()
        self.observe(memory, 0.0, 0, 10)
        self.observe(memory, 3.0, 0, 10)

        assert self.sent(memory, 1000.0, start=3.1, end=4.0).rates[0] == pytest.approx(1000.0, 0.1)

    def test_an_idle_link_keeps_its_rate_for_a_while(self):
        memory = UplinkMemory()
        self.sent(memory, 1000.0)
        self.observe(memory, 10.1, 10_100, 0)

        assert self.observe(memory, 14.0, 10_100, 0).rates[0] == pytest.approx(1000.0)
        assert self.observe(memory, 15.0, 10_100, 10).rates[0] == pytest.approx(1000.0)

    def test_what_was_slow_long_ago_is_not_thought_slow_for_ever(self):
        """It is not asked because it is thought slow, and shows nothing because it is not asked."""
        memory = UplinkMemory()
        self.sent(memory, 1000.0)
        self.observe(memory, 10.1, 10_100, 0)

        assert math.isnan(self.observe(memory, 60.0, 10_100, 0).rates[0])

    def test_another_rate_is_believed_within_some_seconds(self):
        memory = UplinkMemory()
        self.sent(memory, 1000.0)
        slower = self.sent(memory, 100.0, start=10.0, end=20.0, before=10_000)

        assert 100.0 < slower.rates[0] < 200.0

    def test_silence_counts_from_the_last_byte_while_something_is_asked(self):
        memory = UplinkMemory()
        self.observe(memory, 0.0, 500, 10)
        self.observe(memory, 1.0, 600, 10)

        assert self.observe(memory, 4.0, 600, 10).silent_seconds[0] == 3.0
        assert self.observe(memory, 5.0, 601, 10).silent_seconds[0] == 0.0

    def test_silence_of_one_who_is_not_asked_is_none(self):
        memory = UplinkMemory()
        self.observe(memory, 0.0, 500, 0)
        assert self.observe(memory, 50.0, 500, 10).silent_seconds[0] == 0.0

        assert self.observe(memory, 51.0, 500, 10).silent_seconds[0] == 1.0

    def test_who_left_is_forgotten(self):
        memory = UplinkMemory()
        self.sent(memory, 1000.0)
        self.observe(memory, 10.1, 5, 10, who="b")

        assert np.isnan(self.observe(memory, 10.2, 0, 0).rates[0])

    def test_nobody(self):
        seen = UplinkMemory().observe(0.0, [], [], [], [], [])

        assert seen.rates == seen.silent_seconds == []
