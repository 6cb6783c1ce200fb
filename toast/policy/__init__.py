"""Decisions of the viewer: what to ask of peers, what of the VoD server, and whom to connect to.

Pure: time and randomness are arguments, nothing is read or sent here. The simulator and the real
viewer drive the same objects.
"""

from toast.policy.budget import Allowance, BudgetSettings, OriginBudget
from toast.policy.buffer import Buffer, BufferDecision, Limited, Stock, Unlimited, create_buffer
from toast.policy.estimate import EstimateSettings, Prospects, UplinkMemory, Uplinks
from toast.policy.giveup import GiveUp, GiveUpSettings
from toast.policy.handover import (
    HandOverSettings,
    Order,
    OriginEstimate,
    Reason,
    Terms,
    due_orders,
    make_order,
    next_order_in,
)
from toast.policy.lookahead import HorizonRule, create_horizon, horizon_names
from toast.policy.neighbours import (
    Candidate,
    Neighbours,
    NeighbourSettings,
    create_neighbours,
    neighbours_names,
)
from toast.policy.pickers import Picker, create_picker, make_plan, picker_names
from toast.policy.playhead import Playhead, State
from toast.policy.view import Plan, SwarmView

__all__ = [
    "Allowance",
    "BudgetSettings",
    "Buffer",
    "BufferDecision",
    "Candidate",
    "EstimateSettings",
    "GiveUp",
    "GiveUpSettings",
    "HandOverSettings",
    "HorizonRule",
    "Limited",
    "NeighbourSettings",
    "Neighbours",
    "Order",
    "OriginBudget",
    "OriginEstimate",
    "Picker",
    "Plan",
    "Playhead",
    "Prospects",
    "Reason",
    "State",
    "Stock",
    "SwarmView",
    "Terms",
    "Unlimited",
    "UplinkMemory",
    "Uplinks",
    "create_buffer",
    "create_horizon",
    "create_neighbours",
    "create_picker",
    "due_orders",
    "horizon_names",
    "make_order",
    "make_plan",
    "neighbours_names",
    "next_order_in",
    "picker_names",
]
