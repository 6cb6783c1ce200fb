"""Somebody in the swarm: what it has, whom it is connected to, and whom it sends to."""

import math
from typing import TYPE_CHECKING

from experiments.sim.choking import Choker
from experiments.sim.links import Downlink, Uplink

if TYPE_CHECKING:
    from experiments.sim.flow import Flow
    from experiments.sim.world import World

__all__ = ["Address", "Peer"]

Address = tuple[str, int]


class Peer:
    """Everyone who can send: viewers, and the operator's seed.

    Args:
        world: all that is shared.
        number: of its row in what the swarm was told.
        upload_rate: cap, bytes/second.
        download_rate: cap, bytes/second; None: there is none.
        latency: one-way delay of what it sends, seconds.
        operator: whether it is the operator's seed.

    Attributes:
        told: bool[P], the pieces that neighbours know it has.
        connected: its neighbours, by number.
        flows: to those of them who may ask, by number.
        present: whether it is in the swarm.
        complete: whether it has the whole film.
    """

    def __init__(
        self,
        world: "World",
        number: int,
        *,
        upload_rate: float,
        download_rate: float | None,
        latency: float,
        operator: bool,
    ) -> None:
        self.world = world
        self.number = number
        self.address: Address = ("operator" if operator else "viewer", number)
        self.operator = operator
        self.latency = latency
        self.uplink = Uplink(upload_rate, world.events)
        self.downlink = Downlink(math.inf if download_rate is None else download_rate)
        self.told = world.told[number]
        self.told_now = memoryview(self.told.data)  # quicker to look at one by one
        self.connected: dict[int, Peer] = {}
        self.flows: dict[int, Flow] = {}
        self.present = False
        self.complete = operator
        self.choker = Choker(self)

    def tell(self, piece: int, *, there: bool = True) -> None:
        """Let the neighbours know of a piece, or that it is gone."""
        if self.told_now[piece] == there:
            return
        self.told[piece] = there
        for flow in tuple(self.flows.values()):
            flow.sink.neighbour_has(flow, piece, there=there)

    def neighbour_left(self, peer: "Peer") -> None:
        """A connection is gone."""
        del self.connected[peer.number]
        flow = self.flows.get(peer.number)
        if flow is not None:
            flow.cancel()
            del self.flows[peer.number]
            self.choker.left(peer.number)
