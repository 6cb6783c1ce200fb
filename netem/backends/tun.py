"""A forwarder in user space between TUN devices: for kernels with neither NetEm nor guests."""

import errno
import os
import sys
from dataclasses import dataclass

from netem.backends.base import BackendReport
from netem.backends.tun_device import open_tun
from netem.effects import Effect

__all__ = ["TunBackend"]


@dataclass(frozen=True, slots=True)
class TunBackend:
    """Packets taken from TUN devices, delayed by a program, and put back."""

    device: str = "/dev/net/tun"
    name: str = "tun"
    description: str = "delays by a program between TUN devices"
    effects: frozenset[Effect] = frozenset(Effect) - {Effect.LOOPBACK}
    """What a host sends to itself never leaves its kernel, so no program sees it."""
    keeper: tuple[str, ...] = (sys.executable, "-m", "netem.backends.tun_keeper")

    def missing(self) -> str | None:
        """Whether a TUN interface can be made, and a namespace to put it in."""
        if os.geteuid():
            return "making network namespaces and TUN interfaces needs root: run it with sudo"
        report = self.probe()
        return None if report.works else report.reason

    def probe(self) -> BackendReport:
        """Make a TUN interface, which vanishes as its file is closed."""
        try:
            descriptor, interface = open_tun(self.device)
        except OSError as error:
            return BackendReport(self.name, works=False, reason=self._explain(error))
        os.close(descriptor)
        return BackendReport(
            self.name, works=True, reason=f"interface {interface} could be made and was removed"
        )

    def _explain(self, error: OSError) -> str:
        if error.errno in {errno.EPERM, errno.EACCES}:
            return f"making a TUN interface needs root ({error.strerror})"
        if error.errno in {errno.ENOENT, errno.ENXIO, errno.ENODEV}:
            return f"no {self.device}: this kernel has no TUN driver, or a container hides it"
        return f"{self.device} is there, but is no TUN device that works: {error.strerror}"
