"""The most streams of which none ever starves, by bisection (the thesis, section 3.2). Pure."""

import math
from collections.abc import Callable
from typing import Final

from experiments.arrays.audience import Audience
from experiments.arrays.scenario import ArrayScenario
from experiments.arrays.sim import simulate

__all__ = ["largest", "sustained"]

_STEP: Final = 0.02  # most arrays come near to the model


def largest(holds: Callable[[int], bool], guess: int) -> int:
    """The largest number for which something holds, if it holds up to some number and not beyond.

    Args:
        holds: whether it does; taken to hold for 0.
        guess: about where.
    """
    low, high = 0, max(guess, 1)
    step = max(1, round(_STEP * high))
    if holds(high):
        while holds(high + step):
            high, step = high + step, 2 * step
        low, high = high, high + step
    else:
        while high - step > 0 and not holds(high - step):
            high, step = high - step, 2 * step
        low = max(high - step, 0)
    while high - low > 1:
        middle = (low + high) // 2
        if holds(middle):
            low = middle
        else:
            high = middle
    return low


def sustained(scenario: ArrayScenario, *, seed: int, audience: Audience | None = None) -> int:
    """N: how many streams an array sustains, the same chance for every number that is tried.

    Args:
        scenario: the array and its load.
        seed: of all chance.
        audience: of this scenario and seed, if there is one already.
    """
    audience = audience or Audience(scenario, seed)

    def holds(streams: int) -> bool:
        result = simulate(scenario, streams, seed=seed, audience=audience, stop_at_starvation=True)
        return result.incidents == 0

    return largest(holds, math.floor(scenario.model_streams) + 1)
