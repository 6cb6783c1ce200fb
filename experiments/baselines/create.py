"""The baseline that a scenario names."""

from collections.abc import Callable, Mapping
from typing import Final

from experiments.baselines.naive import NaiveViewer
from experiments.baselines.unicast import UnicastViewer
from experiments.baselines.viewing import Baseline
from experiments.baselines.web_seed import DeadlineViewer, SequentialViewer
from experiments.real.client import ClientContext
from experiments.swarms.scenario import Client

__all__ = ["create_baseline"]

_BASELINES: Final[Mapping[Client, Callable[[ClientContext], Baseline]]] = {
    Client.UNICAST: UnicastViewer,
    Client.WEB_SEED_SEQUENTIAL: SequentialViewer,
    Client.WEB_SEED_DEADLINES: DeadlineViewer,
    Client.NAIVE: NaiveViewer,
}


def create_baseline(context: ClientContext) -> Baseline:
    """The viewer that is not ours, of the kind that the scenario names; it has not arrived yet."""
    return _BASELINES[context.scenario.client](context)
