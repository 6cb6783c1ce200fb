"""What a film file is, and at which film time each of its bytes is needed."""

from toast.media.errors import MediaError
from toast.media.probe import MediaInfo, probe

__all__ = ["MediaError", "MediaInfo", "probe"]
