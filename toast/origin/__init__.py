"""The client of the VoD server: byte ranges, in time, and never more than was asked for."""

from toast.origin.client import Fetched, OriginClient, OriginSettings
from toast.origin.errors import OriginError

__all__ = ["Fetched", "OriginClient", "OriginError", "OriginSettings"]
