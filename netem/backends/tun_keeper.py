"""The program that is a `tun` network: namespaces, TUN devices, and the forwarder between them."""

import ctypes
import gc
import os
from dataclasses import asdict
from typing import Any, Final

from netem import namespaces
from netem.backends.keeper import keep
from netem.backends.tun_device import INTERFACE, configure, open_tun
from netem.backends.tun_forwarder import Forwarder
from netem.errors import NetemError
from netem.spec import NetworkSpec

__all__ = ["main"]

_DEVICE: Final = "/dev/net/tun"
_PR_SET_TIMERSLACK: Final = 29  # <linux/prctl.h>


class _TunNetwork:
    """Namespaces with a TUN device each, and the forwarder between them."""

    def __init__(self, spec: NetworkSpec, made: dict[str, int]) -> None:
        devices = {}
        congestion_control = ""
        with namespaces.leaving():
            for name, address in spec.addresses().items():
                made[name] = namespaces.make()
                congestion_control = namespaces.pin_congestion_control(spec.congestion_control)
                try:
                    devices[name], _ = open_tun(_DEVICE, INTERFACE)
                except OSError as error:
                    raise NetemError(
                        f"no TUN device can be made ({error.strerror}): see 'toast-netem doctor'"
                    ) from error
                configure(address)
        self._forwarder = Forwarder(spec, devices, lifeline=0 if spec.lifeline else None)
        self.facts: dict[str, Any] = {
            "congestion_control": congestion_control,
            "realtime": _hurry(),
            "kernel": os.uname().release,
        }

    def run(self) -> None:
        """Forward."""
        self._forwarder.run()

    def report(self) -> dict[str, Any]:
        """What was forwarded."""
        return asdict(self._forwarder.report())


def _hurry() -> bool:
    """Be run as soon as a packet is due, whatever else the machine does; whether that is allowed.

    Cables do not wait for processors. Without it, a busy machine shows in every delay.
    """
    ctypes.CDLL(None).prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0)
    gc.collect()
    gc.freeze()
    gc.disable()  # nothing here has cycles, and a collection is a pause
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
    except OSError:
        return False
    return True


def main() -> None:
    """Keep a `tun` network."""
    keep(_TunNetwork)


if __name__ == "__main__":
    main()
