"""A forwarder in user space between TUN devices: for kernels with neither NetEm nor guests."""

import errno
import fcntl
import os
import struct
from dataclasses import dataclass
from typing import Final

from netem.backends.base import BackendReport

__all__ = ["TunBackend"]

# <linux/if_tun.h>
_TUNSETIFF: Final = 0x400454CA
_IFF_TUN: Final = 0x0001
_IFF_NO_PI: Final = 0x1000


@dataclass(frozen=True, slots=True)
class TunBackend:
    """Packets taken from TUN devices, delayed by a program, and put back."""

    device: str = "/dev/net/tun"
    name: str = "tun"
    description: str = "delays by a program between TUN devices"

    def probe(self) -> BackendReport:
        """Make a TUN interface, which vanishes as its file is closed."""
        try:
            descriptor = os.open(self.device, os.O_RDWR | os.O_CLOEXEC)
        except OSError as error:
            return BackendReport(self.name, works=False, reason=self._explain(error))
        try:
            # struct ifreq: an empty name lets the kernel choose one.
            request = struct.pack("16sH22x", b"", _IFF_TUN | _IFF_NO_PI)
            answer = fcntl.ioctl(descriptor, _TUNSETIFF, request)
        except OSError as error:
            return BackendReport(self.name, works=False, reason=self._explain(error))
        finally:
            os.close(descriptor)
        interface = answer[:16].rstrip(b"\0").decode("ascii", "replace")
        return BackendReport(
            self.name, works=True, reason=f"interface {interface} could be made and was removed"
        )

    def _explain(self, error: OSError) -> str:
        if error.errno in {errno.EPERM, errno.EACCES}:
            return f"making a TUN interface needs root ({error.strerror})"
        if error.errno in {errno.ENOENT, errno.ENXIO, errno.ENODEV}:
            return f"no {self.device}: this kernel has no TUN driver, or a container hides it"
        return f"{self.device} is there, but is no TUN device that works: {error.strerror}"
