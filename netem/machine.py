"""What every result of a network experiment should say about the machine it came from."""

import os
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Machine", "describe_machine"]

_SYSCTL = Path("/proc/sys/net")


@dataclass(frozen=True, slots=True)
class Machine:
    """The parts of a machine that change what a network on it does.

    Attributes:
        kernel: system, release and architecture.
        congestion_control: TCP's default; None where it cannot be told. Pin it in experiments: bbr
            and cubic share a link quite differently.
        congestion_controls: those that could be chosen.
        default_qdisc: queueing discipline of new interfaces, or None.
        processors: usable by this process.
    """

    kernel: str
    congestion_control: str | None
    congestion_controls: tuple[str, ...]
    default_qdisc: str | None
    processors: int


def describe_machine(sysctl: Path = _SYSCTL) -> Machine:
    """Read it off this machine; `sysctl` is where Linux shows its network settings."""
    system = os.uname()
    return Machine(
        kernel=f"{system.sysname} {system.release} {system.machine}",
        congestion_control=_read(sysctl / "ipv4/tcp_congestion_control"),
        congestion_controls=tuple(
            (_read(sysctl / "ipv4/tcp_available_congestion_control") or "").split()
        ),
        default_qdisc=_read(sysctl / "core/default_qdisc"),
        processors=len(os.sched_getaffinity(0)),
    )


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return None
