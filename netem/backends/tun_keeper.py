"""The program that is a `tun` network: namespaces, TUN devices, and the forwarder between them.

Reads a `NetworkSpec` as one line from standard input, and speaks as `netem.backends.base` says.
When this process ends, in whatever way, there are no namespaces and no devices any more: both are
nothing but its open files. Processes in the hosts are ended by it, and by the kernel if it
cannot.
"""

import contextlib
import ctypes
import gc
import json
import os
import signal
import sys
import time
from dataclasses import asdict
from typing import Any, Final, NoReturn

from netem import namespaces
from netem.backends.tun_device import INTERFACE, configure, open_tun
from netem.backends.tun_forwarder import Forwarder
from netem.errors import NetemError
from netem.spec import NetworkSpec

__all__ = ["main"]

_DEVICE: Final = "/dev/net/tun"
_PR_SET_TIMERSLACK: Final = 29  # <linux/prctl.h>
_LONGEST_SPEC: Final = 16 * 1024 * 1024


def main() -> None:
    """Keep a network until standard input ends or a signal comes."""
    try:
        line = _read_spec()
        _say({"event": "keeper", "pid": os.getpid(), "spec": json.loads(line)})
        _keep(NetworkSpec.from_json(line))
    except NetemError as error:
        _say({"event": "failed", "reason": str(error)})
        sys.exit(error.exit_code)


def _read_spec() -> str:
    line = b""
    while not line.endswith(b"\n"):
        part = os.read(0, 65_536)
        if not part or len(line) > _LONGEST_SPEC:
            raise NetemError(
                "the network's description did not come: this program is not for people"
            )
        line += part
    return line.decode()


def _keep(spec: NetworkSpec) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _asked_to_end)
    began = time.monotonic()
    made: dict[str, int] = {}
    forwarder = None
    try:
        devices, congestion_control = _build(spec, made)
        forwarder = Forwarder(spec, devices, lifeline=0 if spec.lifeline else None)
        realtime = _hurry()
        _say(
            {
                "event": "up",
                "hosts": {
                    name: {"address": address, "enter": _entrance(made[name])}
                    for name, address in spec.addresses().items()
                },
                "congestion_control": congestion_control,
                "realtime": realtime,
                "up_seconds": round(time.monotonic() - began, 4),
            }
        )
        forwarder.run()
    except SystemExit:
        if forwarder is None:
            raise NetemError("stopped before it was up") from None
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        ended = namespaces.end_processes_in(made.values())
    times = os.times()
    report = {"event": "report", "ended_processes": ended, **asdict(forwarder.report())}
    report["cpu_seconds"] = round(times.user + times.system, 3)
    report["seconds"] = round(time.monotonic() - began, 3)
    _say(report)


def _build(spec: NetworkSpec, made: dict[str, int]) -> tuple[dict[str, int], str]:
    """Make namespaces (into `made`) and devices; returns these, and the congestion control."""
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
                    f"no TUN device can be made ({error.strerror}): see 'toast-netem check'"
                ) from error
            configure(address)
    return devices, congestion_control


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


def _entrance(namespace: int) -> list[str]:
    return [sys.executable, "-m", "netem.enter", f"/proc/{os.getpid()}/fd/{namespace}"]


def _asked_to_end(_number: int, _frame: object) -> NoReturn:
    raise SystemExit


def _say(value: dict[str, Any]) -> None:
    with contextlib.suppress(OSError):  # whoever started us may be gone
        sys.stdout.write(json.dumps(value) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
