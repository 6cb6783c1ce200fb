"""A guest, as whoever boots it sees it: it runs programs, and is gone with the `async with` block.

async with Guest() as guest:
    program = await guest.start(["uname", "-r"])
    output, errors, code = await program.finish()
"""

import asyncio
import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from netem.errors import NetemError
from netem.guest import agent
from netem.guest.frames import Decoder, Frame, Kind, encode

__all__ = ["MODULES", "Guest", "Program", "boot_command", "find_kernel"]

KERNEL: Final = "linux.uml"
MODULES: Final = (
    "net/sched/sch_netem",
    "net/sched/sch_tbf",
    "drivers/net/veth",
    "net/ipv4/tcp_bbr",
)
"""What is loaded in every guest."""
_MODULES_FOLDER: Final = Path("/usr/lib/uml/modules")
_PROCESSOR: Final = Path("/proc/cpuinfo")
_LARGE_REGISTERS: Final = "amx_tile"
_SMALL_ROOM: Final = (6, 1)
"""The newest kernel that was seen to have too little room for them."""
_HOW: Final = "Debian has it in user-mode-linux (apt-get install user-mode-linux)"
_BOOT_SECONDS: Final = 60.0
_OFF_SECONDS: Final = 5.0
_LAST_LINES: Final = 5
_MOST_UNREAD_BYTES: Final = 2048
_MOST_CHANNELS: Final = 60_000


def find_kernel(
    program: str = KERNEL, modules: Path = _MODULES_FOLDER, processor: Path = _PROCESSOR
) -> tuple[str, list[Path]]:
    """The guest's kernel, and the modules to load into it.

    Raises:
        NetemError: they are not here, and the message says how to get them; or they cannot run.
    """
    kernel = shutil.which(program)
    if kernel is None:
        raise NetemError(f"no {program} here; {_HOW}")
    try:
        shown = subprocess.run(  # noqa: S603  (the program that shutil.which found)
            [kernel, "--version"], capture_output=True, text=True, timeout=10, check=True
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise NetemError(f"{kernel} does not tell its version: {error}") from error
    release = shown.stdout.strip()
    folder = modules / release / "kernel"
    files = [folder / f"{name}.ko" for name in MODULES]
    for file in files:
        if not file.is_file():
            raise NetemError(f"{kernel} is here, but not its module {file}; {_HOW}")
    if _is_too_old(release, processor):
        raise NetemError(
            f"{kernel} is of kernel {release}, which dies on a processor with AMX when its first"
            " program starts: take a machine without, or a newer user-mode Linux"
        )
    return kernel, files


def _is_too_old(release: str, processor: Path) -> bool:
    """Whether the kernel has no room for this processor's registers.

    AMX adds 8 KiB to those of a program. Its first program ends it in `put_fp_registers`
    (arch/x86/um), where it has the host restore what it kept of them.
    """
    numbers = re.match(r"(\d+)\.(\d+)", release)
    if numbers is None or (int(numbers[1]), int(numbers[2])) > _SMALL_ROOM:
        return False
    with contextlib.suppress(OSError):
        for line in processor.read_text(errors="replace").splitlines():
            name, _, flags = line.partition(":")
            if name.strip() == "flags":
                return _LARGE_REGISTERS in flags.split()
    return False


def boot_command(kernel: str, modules: Sequence[Path], line: int, memory_bytes: int) -> list[str]:
    """What boots a guest whose first program is `netem.guest.agent`.

    Args:
        kernel: path of `linux.uml`.
        modules: kernel modules to load, as files.
        line: open file, inherited, over which it is told what to do.
        memory_bytes: how much it has.

    Raises:
        NetemError: a path has a space, which no kernel's command line can carry.
    """
    words = [sys.executable, str(Path(agent.__file__).resolve()), *map(str, modules)]
    for word in words:
        if any(character.isspace() for character in word):
            raise NetemError(f"a guest cannot be given the path '{word}': it has a space")
    return [
        kernel,
        f"mem={memory_bytes >> 20}M",
        "uml_dir=/dev/null/",  # no folder for its own sockets: nothing could be left behind
        # The host's files. `root` names a disk that is not there; hostfs ignores it, but user-mode
        # Linux adds its own, behind our program's arguments, where it is missing.
        "root=98:0",
        "rootfstype=hostfs",
        "rw",
        "quiet",
        "panic=-1",
        "con=null",
        "con0=null,fd:1",
        "ssl=null",
        f"ssl0=fd:{line},fd:{line}",
        f"init={words[0]}",
        "--",
        *words[1:],
        "end",
    ]


class Program:
    """One program in a guest. Made by `Guest.start`.

    Args:
        hear: is told each frame that comes from it.
        send: sends frames to it.
    """

    def __init__(self, hear: Callable[[Frame], None], send: Callable[[Kind, bytes], None]) -> None:
        self._hear = hear
        self._send = send
        self._ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def write(self, data: bytes) -> None:
        """Give it something to read; nothing for the end of its input."""
        self._send(Kind.INPUT, data)

    def signal(self, number: int) -> None:
        """Signal it and its children."""
        self._send(Kind.SIGNAL, str(number).encode())

    async def wait(self) -> int:
        """Wait until it has ended; returns its exit code, or minus the signal that ended it.

        Raises:
            NetemError: the guest ended before it.
        """
        return await asyncio.shield(self._ended)

    def take(self, frame: Frame) -> None:
        """A frame has come from it."""
        self._hear(frame)
        if frame.kind is Kind.EXIT and not self._ended.done():
            self._ended.set_result(int(frame.data))

    def lose(self, error: NetemError) -> None:
        """The guest has ended."""
        if not self._ended.done():
            self._ended.set_exception(error)
            self._ended.exception()  # whoever waits is told; nobody has to


class Guest:
    """A guest for as long as the block lasts.

    Args:
        memory_bytes: how much it has. Taken from this machine as it is used.
    """

    def __init__(self, memory_bytes: int = 512 << 20) -> None:
        self._memory_bytes = memory_bytes
        self._process: asyncio.subprocess.Process | None = None
        self._programs: dict[int, Program] = {}
        self._number = 0
        self._tasks: list[asyncio.Task[None]] = []
        self._said: deque[bytes] = deque(maxlen=_LAST_LINES)
        self._writer: asyncio.StreamWriter | None = None
        self._to_send = bytearray()
        self._unread = 0

    async def __aenter__(self) -> Self:
        kernel, modules = find_kernel()
        ours, its = socket.socketpair()
        try:
            command = boot_command(kernel, modules, its.fileno(), self._memory_bytes)
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "netem.guest.launch", str(os.getpid())),
                *command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                pass_fds=[its.fileno()],
                start_new_session=True,
            )
        except BaseException:
            ours.close()
            raise
        finally:
            its.close()
        self._ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        try:
            reader, self._writer = await asyncio.open_connection(sock=ours)
            self._tasks = [
                asyncio.create_task(self._read_console()),
                asyncio.create_task(self._read_line(reader)),
            ]
            async with asyncio.timeout(_BOOT_SECONDS):
                reason = await self._ready
        except TimeoutError as error:
            await self.__aexit__(None, None, None)
            raise NetemError(f"the guest did not boot within {_BOOT_SECONDS:g} s") from error
        except BaseException:
            await self.__aexit__(None, None, None)
            raise
        if reason:
            await self.__aexit__(None, None, None)
            raise NetemError(f"the guest cannot be prepared: {reason}")
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        try:
            if self._writer is not None:
                self._send(0, Kind.POWER_OFF)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_OFF_SECONDS):
                        await process.wait()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            if self._writer is not None:
                self._writer.close()

    async def start(
        self,
        command: Sequence[str],
        hear: Callable[[Frame], None],
        *,
        folder: str | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> Program:
        """Start a program.

        Args:
            command: it, with its arguments.
            hear: is told each frame that comes from it: `OUTPUT`, `ERRORS` and in the end `EXIT`.
            folder: where it runs; ours if not given.
            environment: its; ours if not given.

        Raises:
            NetemError: the guest has ended.
        """
        if self._process is None or self._writer is None or self._writer.is_closing():
            raise NetemError(self._how_it_ended())
        number = self._number = self._number % _MOST_CHANNELS + 1
        assert number not in self._programs, "so many programs at once"

        def send(kind: Kind, data: bytes) -> None:
            self._send(number, kind, data)

        program = self._programs[number] = Program(hear, send)
        what = {
            "argv": list(command),
            "cwd": folder or str(Path.cwd()),
            "env": dict(os.environ if environment is None else environment),
        }
        send(Kind.START, json.dumps(what).encode())
        send(Kind.BEGIN, b"")
        return program

    async def wait_end(self) -> None:
        """Wait until the guest has ended by itself, which it should not."""
        if self._process is not None:
            await self._process.wait()

    async def _read_console(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            if stripped := line.strip():
                self._said.append(stripped)

    async def _read_line(self, reader: asyncio.StreamReader) -> None:
        decoder = Decoder()
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(1 << 16):
                for frame in decoder.feed(data):
                    self._take(frame)
        await asyncio.sleep(0)
        lost = NetemError(self._how_it_ended())
        if not self._ready.done():
            self._ready.set_result(str(lost))
        for program in self._programs.values():
            program.lose(lost)
        self._programs.clear()

    def _send(self, channel: int, kind: Kind, data: bytes = b"") -> None:
        self._to_send += encode(channel, kind, data)
        self._push()

    def _push(self) -> None:
        """Put as much on the line as it can hold.

        A serial line of user-mode Linux that is given more than its buffer of 4096 bytes before
        the guest reads stands still for ever (seen with Linux 6.1).
        """
        room = _MOST_UNREAD_BYTES - self._unread
        if room > 0 and self._to_send and self._writer is not None:
            part = bytes(self._to_send[:room])
            del self._to_send[:room]
            self._unread += len(part)
            self._writer.write(part)

    def _take(self, frame: Frame) -> None:
        if frame.kind is Kind.TAKEN:
            self._unread -= int(frame.data)
            self._push()
            return
        if frame.kind is Kind.READY:
            if not self._ready.done():
                self._ready.set_result(frame.data.decode(errors="replace"))
            return
        program = self._programs.get(frame.channel)
        if frame.kind is Kind.EXIT:
            self._programs.pop(frame.channel, None)
        if program is not None:
            program.take(frame)

    def _how_it_ended(self) -> str:
        last = self._said[-1].decode(errors="replace")[:200] if self._said else "it said nothing"
        return f"the guest has ended: {last}"
