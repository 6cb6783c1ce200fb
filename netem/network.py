"""A topology that runs: hosts to start programs in, for as long as a `with` block lasts.

    async with Network(topology, seed=1) as network:
        server = await network.popen("server", ["vodserver", "serve", ...])
        await network.run("viewer", ["curl", f"http://{network.address('server')}:8080/"])

Whatever ends the block, and whatever ends this process, ends the network and every program in it.
"""

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self

from netem.backends import Backend, Choice, choose
from netem.errors import NetemError
from netem.namespaces import enter
from netem.spec import NetworkSpec
from netem.topology import Topology

__all__ = ["Finished", "Network", "start_keeper"]

_UP_SECONDS: Final = 90.0
_DOWN_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class Finished:
    """What came of a program in a host."""

    exit_code: int
    output: bytes
    errors: bytes


class Network:
    """A topology that shall run.

    Args:
        topology: hosts and what happens between them.
        backend: what runs it; by default the first that can do all of it.
        seed: of all chance in it; by default the topology's, if it has one.
        congestion_control: TCP's in every host; by default the machine's, which is recorded.

    Attributes:
        facts: once it is up, what every result should record: backend, congestion control, ...
        report: once it is down, what its keeper counted: packets, lost ones, processor seconds.

    Raises:
        NetemError: no backend can do what the topology asks for.
    """

    def __init__(
        self,
        topology: Topology,
        *,
        backend: Backend | None = None,
        seed: int | None = None,
        congestion_control: str | None = None,
    ) -> None:
        self.topology = topology
        choice = choose(topology, seed=seed) if backend is None else Choice(backend, "given")
        self.backend, self._why = choice.backend, choice.why
        self._spec = NetworkSpec(topology, seed, congestion_control)
        self._hosts: dict[str, dict[str, Any]] = {}
        self._keeper: asyncio.subprocess.Process | None = None
        self.facts: dict[str, Any] = {}
        self.report: dict[str, Any] = {}

    async def __aenter__(self) -> Self:
        try:
            self._keeper, up = await start_keeper(self.backend, self._spec)
        except BaseException:
            await self._down()
            raise
        self._hosts = up.pop("hosts")
        up.pop("event")
        self.facts = {
            "backend": self.backend.name,
            "why": self._why,
            "seed": self._spec.chance_seed,
            **up,
        }
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._down()

    def address(self, host: str) -> str:
        """The IPv4 address of a host.

        Raises:
            NetemError: the network is not up, or has no such host.
        """
        return str(self._host(host)["address"])

    def command(self, host: str, command: Sequence[str]) -> list[str]:
        """What to start to run a command in a host. It ends when this process does.

        Raises:
            NetemError: the network is not up, or has no such host.
        """
        return [*self._host(host)["enter"], str(os.getpid()), *command]

    def enter(self, host: str) -> None:
        """Move this thread to a host.

        What it starts from then on is there, too. `netem.namespaces.leaving` takes it back.

        Raises:
            NetemError: there is no such host, or it is not in this kernel.
        """
        place = self._host(host)["enter"][-1]
        try:
            descriptor = os.open(place, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise NetemError(
                f"the host '{host}' cannot be entered from here: {self.backend.name} has it"
                " elsewhere, or it is gone"
            ) from error
        try:
            enter(descriptor)
        finally:
            os.close(descriptor)

    async def popen(
        self, host: str, command: Sequence[str], **options: Any
    ) -> asyncio.subprocess.Process:
        """Start a program in a host; `options` are those of `asyncio.create_subprocess_exec`.

        Raises:
            NetemError: the network is not up, or has no such host.
        """
        return await asyncio.create_subprocess_exec(*self.command(host, command), **options)

    async def run(
        self, host: str, command: Sequence[str], *, timeout_seconds: float = 60.0
    ) -> Finished:
        """Run a program in a host to its end.

        Raises:
            NetemError: it took too long; it has been ended.
        """
        process = await self.popen(
            host,
            command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            async with asyncio.timeout(timeout_seconds):
                output, errors = await process.communicate()
        except TimeoutError as error:
            raise NetemError(
                f"{command[0]} in {host} did not end within {timeout_seconds:g} s"
            ) from error
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        assert process.returncode is not None
        return Finished(process.returncode, output, errors)

    def _host(self, name: str) -> dict[str, Any]:
        if name not in self._hosts:
            known = ", ".join(self._hosts) or "none: the network is not up"
            raise NetemError(f"there is no host '{name}'; there are {known}")
        return self._hosts[name]

    async def _down(self) -> None:
        keeper, self._keeper, self._hosts = self._keeper, None, {}
        if keeper is None or keeper.stdout is None:
            return
        with contextlib.suppress(ProcessLookupError):
            keeper.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(_DOWN_SECONDS):
                rest = await keeper.stdout.read()
                await keeper.wait()
        finally:
            if keeper.returncode is None:
                keeper.kill()
                await keeper.wait()
        for line in rest.splitlines():
            event = json.loads(line)
            if event.pop("event") == "report":
                self.report = event


async def start_keeper(
    backend: Backend, spec: NetworkSpec
) -> tuple[asyncio.subprocess.Process, dict[str, Any]]:
    """Start a network's keeper; returns it and what it said when the network was up.

    Raises:
        NetemError: the network cannot be made; the message says why.
    """
    keeper = await asyncio.create_subprocess_exec(
        *backend.keeper,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,  # Ctrl-C ends us, and our end ends it, in this order
    )
    assert keeper.stdin is not None
    assert keeper.stdout is not None
    try:
        keeper.stdin.write(spec.to_json().encode() + b"\n")
        async with asyncio.timeout(_UP_SECONDS):
            event = {"event": "keeper"}
            while event["event"] == "keeper":
                line = await keeper.stdout.readline()
                event = json.loads(line) if line else {"event": "failed", "reason": "it died"}
        _must_be_up(backend, event)
    except BaseException as error:
        with contextlib.suppress(ProcessLookupError):
            keeper.kill()
        await keeper.wait()
        if isinstance(error, TimeoutError):
            raise NetemError(f"the network was not up within {_UP_SECONDS:g} s") from error
        raise
    return keeper, event


def _must_be_up(backend: Backend, event: dict[str, Any]) -> None:
    if event["event"] != "up":
        raise NetemError(f"no {backend.name} network: {event['reason']}")
