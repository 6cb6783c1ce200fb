"""The client of the VoD server: byte ranges, in time, and never more than was asked for."""

from toast.origin.client import Fetched, OriginClient, OriginSettings
from toast.origin.errors import OriginError
from toast.origin.span import SpanClient, Stretch

__all__ = ["Fetched", "OriginClient", "OriginError", "OriginSettings", "SpanClient", "Stretch"]
