"""One TUN device: an interface of a namespace whose packets a program takes and gives."""

import fcntl
import os
import struct
from typing import Final

from pyroute2 import IPRoute
from pyroute2.netlink.exceptions import NetlinkError

from netem import stale
from netem.errors import NetemError
from netem.spec import MTU_BYTES, PREFIX_BITS

__all__ = ["INTERFACE", "configure", "open_tun"]

INTERFACE: Final = "tun0"

# <linux/if_tun.h>
_TUNSETIFF: Final = 0x400454CA
_IFF_TUN: Final = 0x0001
_IFF_NO_PI: Final = 0x1000

_QUEUE_PACKETS: Final = 10_000
"""Between the kernel and us. The default of 500 overflows when we are not run for some
milliseconds, and these would be losses that nobody asked for."""


def open_tun(device: str, name: str = "") -> tuple[int, str]:
    """Make a TUN interface in this thread's namespace; it vanishes as its file is closed.

    Args:
        device: `/dev/net/tun`.
        name: of the interface; empty lets the kernel choose one.

    Returns:
        The open file, and the interface's name.

    Raises:
        OSError: it cannot be made.
    """
    descriptor = os.open(device, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        request = struct.pack("16sH22x", name.encode("ascii"), _IFF_TUN | _IFF_NO_PI)
        answer = fcntl.ioctl(descriptor, _TUNSETIFF, request)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor, answer[:16].rstrip(b"\0").decode("ascii", "replace")


def configure(address: str) -> None:
    """Bring up the TUN interface and the loopback of this thread's namespace.

    Raises:
        NetemError: the kernel refused.
    """
    try:
        with IPRoute() as routes:
            (index,) = routes.link_lookup(ifname=INTERFACE)
            stale.label(routes)
            routes.link("set", index=index, state="up", mtu=MTU_BYTES, txqlen=_QUEUE_PACKETS)
            routes.addr("add", index=index, address=address, prefixlen=PREFIX_BITS)
    except (NetlinkError, ValueError) as error:
        raise NetemError(
            f"the address {address} cannot be given to a TUN device: {error}"
        ) from error
