"""The program that is a `kernel` network: namespaces, links to a hub, and real NetEm on these.

Each host has one end of a veth pair; the other ends are in a namespace of their own, the hub, which
routes between them. Both ends have the same hardware address and take no part in ARP, so nothing
but the hosts' own packets meets the emulation: no broadcast uses up chance, and no first packet is
late because its receiver had to be found.
"""

import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from pyroute2 import IPRoute
from pyroute2.netlink.exceptions import NetlinkError

from netem import namespaces, stale
from netem.backends.keeper import keep
from netem.backends.qdisc import Shaping
from netem.errors import NetemError
from netem.spec import MTU_BYTES, PREFIX_BITS, NetworkSpec
from netem.topology import LatencyClass, Topology, Ways

__all__ = ["main"]

_INTERFACE: Final = "eth0"
_HARDWARE: Final = "02:00:00:00:00:01"
_NOARP: Final = 0x80  # IFF_NOARP, <linux/if.h>
_HUB: Final = " hub"  # no host has such a name
_LOOPBACK_INDEX: Final = 1


class _KernelNetwork:
    """Namespaces, their links, and NetEm."""

    def __init__(self, spec: NetworkSpec, made: dict[str, int]) -> None:
        self._lifeline = spec.lifeline
        congestion_control = ""
        with namespaces.leaving():
            hub = made[_HUB] = namespaces.make()
            _route_between()
            with IPRoute() as of_hub, Shaping() as hub_shaping:
                try:
                    for number, host in enumerate(spec.topology.hosts):
                        made[host.name] = namespaces.make()
                        _no_ipv6()
                        congestion_control = namespaces.pin_congestion_control(
                            spec.congestion_control
                        )
                        what = spec.topology.latency_class(host.latency_class)
                        address = spec.addresses()[host.name]
                        _make_host(spec.topology, what, address, f"h{number}", hub)
                        _attach(of_hub, hub_shaping, what, address, f"h{number}")
                except (NetlinkError, ValueError) as error:
                    raise NetemError(f"the kernel refuses a link: {error}") from error
        self.facts: dict[str, Any] = {
            "congestion_control": congestion_control,
            "kernel": os.uname().release,
        }

    def run(self) -> None:
        """The kernel does all that is to be done."""
        if self._lifeline:
            while os.read(0, 4096):
                pass
        else:
            while True:
                signal.pause()

    def report(self) -> dict[str, Any]:
        """The kernel counts by itself."""
        return {}


def _route_between() -> None:
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1", encoding="ascii")
    for place in ("all", "default"):
        Path(f"/proc/sys/net/ipv4/conf/{place}/rp_filter").write_text("0", encoding="ascii")
    _no_ipv6()


def _no_ipv6() -> None:
    """Its looking for routers would be packets that nobody sent."""
    for place in ("all", "default"):
        with suppress(OSError):  # a kernel without it
            file = Path(f"/proc/sys/net/ipv6/conf/{place}/disable_ipv6")
            file.write_text("1", encoding="ascii")


def _make_host(topology: Topology, what: LatencyClass, address: str, name: str, hub: int) -> None:
    """In the namespace of a host."""
    with IPRoute() as routes, Shaping() as shaping:
        stale.label(routes)
        routes.link(
            "add",
            ifname=_INTERFACE,
            kind="veth",
            address=_HARDWARE,
            mtu=MTU_BYTES,
            peer={"ifname": name, "address": _HARDWARE, "mtu": MTU_BYTES, "net_ns_fd": hub},
        )
        (index,) = routes.link_lookup(ifname=_INTERFACE)
        # Packets as a link has them: without it TCP hands over 64 KB at once, to be lost at once.
        routes.link("set", index=index, gso_max_segs=1)
        routes.link("set", index=index, flags=_NOARP, mask=_NOARP)
        routes.link("set", index=index, state="up")
        routes.addr("add", index=index, address=address, prefixlen=PREFIX_BITS)
        shaping.shape(index, what, rate=what.rate)
        if topology.loopback:
            routes.link("set", index=_LOOPBACK_INDEX, gso_max_segs=1)
            shaping.shape(_LOOPBACK_INDEX, what, rate=None)


def _attach(of_hub: IPRoute, shaping: Shaping, what: LatencyClass, address: str, name: str) -> None:
    """In the hub: what reaches a host."""
    (index,) = of_hub.link_lookup(ifname=name)
    of_hub.link("set", index=index, flags=_NOARP, mask=_NOARP)
    of_hub.link("set", index=index, state="up")
    of_hub.route("add", dst=f"{address}/32", oif=index, scope="link")
    is_plain = what.ways is not Ways.BOTH
    shaping.shape(index, what, rate=what.download, is_plain=is_plain)


def main() -> None:
    """Keep a `kernel` network."""
    keep(_KernelNetwork)


if __name__ == "__main__":
    main()
