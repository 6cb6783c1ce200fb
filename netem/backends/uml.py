"""NetEm inside user-mode Linux: a kernel with NetEm as an ordinary process, no root needed.

Debian's package `user-mode-linux` brings both the kernel (`linux.uml`) and its modules.
"""

import asyncio
import json
import sys
from dataclasses import dataclass
from typing import Any

from netem.backends.base import BackendReport
from netem.backends.kernel import KERNEL_EFFECTS
from netem.backends.trial_mark import MARK
from netem.effects import Effect
from netem.errors import NetemError
from netem.guest.frames import Frame, Kind
from netem.guest.guest import Guest, find_kernel

__all__ = ["UmlBackend"]

_TRIAL_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class UmlBackend:
    """NetEm in a user-mode Linux guest that sees this machine's files."""

    name: str = "uml"
    description: str = "NetEm in user-mode Linux"
    effects: frozenset[Effect] = KERNEL_EFFECTS
    keeper: tuple[str, ...] = (sys.executable, "-m", "netem.backends.uml_keeper")

    def missing(self) -> str | None:
        """Whether kernel and modules are here."""
        try:
            find_kernel()
        except NetemError as error:
            return str(error)
        return None

    def probe(self) -> BackendReport:
        """Boot a guest, delay packets in it, and let it power off."""
        try:
            result = asyncio.run(_try())
        except NetemError as error:
            return BackendReport(self.name, works=False, reason=str(error))
        works, reason = result.pop("works"), result.pop("reason")
        return BackendReport(self.name, works=works, reason=reason, facts=result)


async def _try() -> dict[str, Any]:
    said = bytearray()

    def hear(frame: Frame) -> None:
        if frame.kind is Kind.OUTPUT:
            said.extend(frame.data)

    async with Guest(256 << 20) as guest:
        program = await guest.start([sys.executable, "-m", "netem.backends.trial"], hear)
        try:
            async with asyncio.timeout(_TRIAL_SECONDS):
                await program.wait()
        except TimeoutError as error:
            raise NetemError(f"the trial did not end within {_TRIAL_SECONDS:g} s") from error
    _, mark, rest = said.decode(errors="replace").partition(MARK)
    if not mark:
        raise NetemError("the trial in the guest ended without a result")
    return dict(json.loads(rest))
