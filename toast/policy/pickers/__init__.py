"""Pickers: which pieces to ask of peers, in which order. One small file each."""

from toast.policy.pickers import beta, hybrid, in_order, rarest_first
from toast.policy.pickers.base import Picker, create_picker, make_plan, picker_names, register

__all__ = ["Picker", "create_picker", "make_plan", "picker_names"]

register("beta", beta.Beta)
register("hybrid", hybrid.Hybrid)
register("in-order", in_order.InOrder)
register("rarest-first", rarest_first.RarestFirst)
