"""Latency classes with a name that people know: a place to begin, not a survey. Pure.

`source` is what the founding work applied. The others are round figures for access links as they
are sold and measured; queues are deep where such boxes are known to be (bufferbloat).
"""

from collections.abc import Mapping
from typing import Any, Final

__all__ = ["PRESETS"]

PRESETS: Final[Mapping[str, Mapping[str, Any]]] = {
    "lan": {"delay": "0.25ms", "rate": "100Mbps", "download": "100Mbps"},
    # Machines on one cable network: 4 ms on all that each of them sends (thesis, chapter 5).
    "source": {"delay": "4ms"},
    "dsl": {
        "delay": "12ms",
        "jitter": "2ms",
        "rate": "1Mbps",
        "download": "16Mbps",
        "queue": "200ms",
    },
    "cable": {
        "delay": "8ms",
        "jitter": "2ms",
        "rate": "10Mbps",
        "download": "100Mbps",
        "queue": "250ms",
    },
    "lte": {
        "delay": "25ms",
        "jitter": "6ms",
        "distribution": "normal",
        "loss": 0.001,
        "rate": "10Mbps",
        "download": "30Mbps",
        "queue": "300ms",
    },
    "wifi": {
        "delay": "2ms",
        "jitter": "1ms",
        "distribution": "pareto",
        "loss": {"enter": 0.002, "leave": 0.25, "bad": 0.5},
        "rate": "40Mbps",
        "download": "40Mbps",
    },
    "intercontinental": {
        "delay": "75ms",
        "jitter": "1ms",
        "loss": 0.0005,
        "rate": "100Mbps",
        "download": "100Mbps",
    },
}
"""By name; each as it would stand in a file, where every field can be given anew."""
