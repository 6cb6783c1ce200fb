"""The program that is a `uml` network: a guest, in which the keeper of `kernel` runs."""

import asyncio
import contextlib
import json
import os
import signal
import sys
import time
from typing import Any, Final

from netem.awake import processors_awake
from netem.backends.keeper import read_spec, say
from netem.errors import NetemError
from netem.guest.door import Door
from netem.guest.frames import Frame, Kind
from netem.guest.guest import Guest
from netem.spec import NetworkSpec

__all__ = ["main"]

_UP_SECONDS: Final = 60.0
_DOWN_SECONDS: Final = 5.0
_BASE_BYTES: Final = 512 << 20
_HOST_BYTES: Final = 24 << 20


def main() -> None:
    """Keep a network until standard input ends or a signal comes."""
    try:
        line = read_spec()
        say({"event": "keeper", "pid": os.getpid(), "spec": json.loads(line)})
        with processors_awake() as awake:
            asyncio.run(_keep(NetworkSpec.from_json(line), awake=awake))
    except NetemError as error:
        say({"event": "failed", "reason": str(error)})
        sys.exit(error.exit_code)


async def _keep(spec: NetworkSpec, *, awake: bool) -> None:
    began = time.monotonic()
    asked = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, asked.set)
    memory = _BASE_BYTES + _HOST_BYTES * len(spec.topology.hosts)
    async with Guest(memory) as guest, Door(guest) as door:
        inner = _Inner()
        command = [sys.executable, "-m", "netem.backends.kernel_keeper"]
        program = await guest.start(command, inner.hear)
        program.write(spec.to_json().encode() + b"\n")
        async with asyncio.timeout(_UP_SECONDS):
            up = await inner.wait_up()
        for host in up["hosts"].values():
            prefix = json.dumps([*host["enter"], "0"])
            host["enter"] = [sys.executable, "-m", "netem.guest.client", door.name, prefix]
        up["awake"] = awake  # our processors, not the guest's
        up["guest_seconds"] = round(time.monotonic() - began, 3)
        say(up)
        ends = [asyncio.create_task(asked.wait()), asyncio.create_task(guest.wait_end())]
        if spec.lifeline:
            ends.append(asyncio.create_task(_input_ends()))
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        for end in ends:
            end.cancel()
        program.signal(signal.SIGTERM)
        with contextlib.suppress(TimeoutError, NetemError):
            async with asyncio.timeout(_DOWN_SECONDS):
                await program.wait()
    times = os.times()
    used = times.user + times.system + times.children_user + times.children_system
    report = {"event": "report", "ended_processes": 0, **inner.report}
    report["cpu_seconds"] = round(used, 3)
    report["seconds"] = round(time.monotonic() - began, 3)
    say(report)


class _Inner:
    """What the keeper in the guest says."""

    def __init__(self) -> None:
        self.report: dict[str, Any] = {}
        self._line = b""
        self._errors = b""
        self._up: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()

    async def wait_up(self) -> dict[str, Any]:
        """Wait until every host works.

        Raises:
            NetemError: they never will.
        """
        return await self._up

    def hear(self, frame: Frame) -> None:
        """Take what it prints."""
        if frame.kind is Kind.ERRORS:
            self._errors = (self._errors + frame.data)[-2000:]
        elif frame.kind is Kind.OUTPUT:
            *lines, self._line = (self._line + frame.data).split(b"\n")
            for line in lines:
                self._take(json.loads(line))
        elif not self._up.done():
            words = self._errors.decode(errors="replace").strip().splitlines()
            self._up.set_exception(NetemError(words[-1] if words else "it died in the guest"))

    def _take(self, event: dict[str, Any]) -> None:
        if event["event"] == "failed" and not self._up.done():
            self._up.set_exception(NetemError(f"in the guest: {event['reason']}"))
        elif event["event"] == "up":
            self._up.set_result(event)
        elif event["event"] == "report":
            self.report = event


async def _input_ends() -> None:
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while await reader.read(4096):
        pass


if __name__ == "__main__":
    main()
