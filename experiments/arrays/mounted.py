"""Films on emulated disks as files that any program can read: a file system of our own.

`python -m experiments.arrays.mounted SPEC.json` mounts it, starts the program that is to read from
it, says where that listens, and ends it with itself. It must be alone in its mount namespace (see
`mounted_command`): the mount is seen by itself and that program only, and whatever ends them,
SIGKILL included, nothing stays mounted.
"""

import asyncio
import contextlib
import ctypes
import errno
import json
import os
import shutil
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from experiments.arrays.arm import Arm, Order, Request
from experiments.arrays.disk import DiskModel, Fault, FaultKind
from experiments.arrays.emulated import FaultFile
from experiments.arrays.fuse import MOST_BYTES, Folder, ReadRequest, answer, failure
from experiments.arrays.layout import Layout
from experiments.errors import LabError
from toast.common.cli import print_json
from toast.common.errors import ToastError

__all__ = ["MountSpec", "MountedDisks", "film_name", "main", "mounted_command", "write_spec"]

_DEVICE: Final = "/dev/fuse"
_MS_RDONLY, _MS_NOSUID, _MS_NODEV = 1, 2, 4
_MNT_DETACH: Final = 2
_LOOK_SECONDS: Final = 0.02
_START_SECONDS: Final = 20.0
_GRACE_SECONDS: Final = 3.0


def film_name(film: int | str) -> str:
    """What a film's file is called."""
    return f"film-{film}.bin"


@dataclass(frozen=True, slots=True, kw_only=True)
class MountSpec:
    """What is mounted, and who reads it."""

    disk: dict[str, Any]
    """Fields of the `DiskModel`, the same for all disks."""
    disks: int
    """How many."""
    films: str
    """Folder of the films' bytes: film-0.bin and so on, of one size."""
    mount: str
    """Folder where they are shown."""
    command: list[str]
    """The program that reads them."""
    host: str
    """Where that listens."""
    port: int
    """Likewise."""
    faults: str
    """File of what is wrong with the disks, see `FaultFile`."""
    seed: int
    """Of access times."""
    unit: int | None = None
    """Stripe unit, bytes; None: one film per disk."""
    order: str = "fifo"
    """Of reads that wait: see `Order`."""
    joins: bool = False
    """Whether those who want the same bytes at the same time share a read."""
    paged: bool = False
    """Whether the kernel's page cache is used."""
    read_ahead: int = 0
    """Bytes that the kernel reads ahead if it is."""


def mounted_command(spec: Path) -> list[str]:
    """The command line that mounts a spec, in a mount namespace of its own.

    Raises:
        LabError: this machine cannot do so.
    """
    if not Path(_DEVICE).exists():
        raise LabError(f"{_DEVICE} is missing: load the kernel's module (modprobe fuse)")
    if not os.access(_DEVICE, os.R_OK | os.W_OK):
        raise LabError(f"{_DEVICE} may not be used by this user: run as root")
    words = []
    for name in ("setpriv", "unshare"):
        if (path := shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/bin")) is None:
            raise LabError(f"{name} is missing: install it (Debian: apt install util-linux)")
        words.append(path)
    alone = [words[1], "--mount", "--propagation", "private"]
    if os.geteuid() != 0:
        alone += ["--user", "--map-root-user"]
    module = ["-m", "experiments.arrays.mounted", str(spec)]
    return [words[0], "--pdeathsig", "TERM", *alone, sys.executable, *module]


@contextmanager
def _mounted(folder: Path) -> Iterator[int]:
    """Mount on a folder; the descriptor over which the kernel asks."""
    libc = ctypes.CDLL(None, use_errno=True)
    try:
        device = os.open(_DEVICE, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise LabError(f"{_DEVICE} cannot be opened: {error.strerror}") from error
    try:
        options = f"fd={device},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()}"
        flags = ctypes.c_ulong(_MS_RDONLY | _MS_NOSUID | _MS_NODEV)
        where = os.fsencode(folder)
        if libc.mount(b"toast-disks", where, b"fuse", flags, options.encode()) != 0:
            reason = os.strerror(ctypes.get_errno())
            raise LabError(f"{folder} cannot be mounted (it takes root): {reason}")
        try:
            yield device
        finally:
            libc.umount2(where, _MNT_DETACH)
    finally:
        os.close(device)  # whoever still waits for a read is told that it failed


@dataclass(slots=True)
class _Read:
    """One read of the kernel's, in as many parts as disks have to do with it."""

    request: ReadRequest
    missing: int
    failed: bool = False
    wrong: bool = False


class MountedDisks:
    """Answers what the kernel asks of the films, each read in its disks' time.

    Args:
        spec: the disks and their films.
        device: descriptor that the kernel asks over.
        loop: whose clock it is.
    """

    def __init__(self, spec: MountSpec, device: int, loop: asyncio.AbstractEventLoop) -> None:
        before, after = film_name("*").split("*")
        films = sorted(Path(spec.films).glob(film_name("*")))
        self._numbers = [int(f.name.removeprefix(before).removesuffix(after)) for f in films]
        self._films = [os.open(film, os.O_RDONLY | os.O_CLOEXEC) for film in films]
        sizes = {film.name: film.stat().st_size for film in films}
        self._folder = Folder(sizes, paged=spec.paged, read_ahead=spec.read_ahead)
        size = max(sizes.values(), default=1)
        self._layout = Layout(disks=spec.disks, film_bytes=size, unit=spec.unit)
        model = DiskModel(**spec.disk)
        self._chances = [np.random.default_rng([spec.seed, n]) for n in range(spec.disks)]
        self._arms = [
            Arm(model, chance, order=Order(spec.order), joins=spec.joins)
            for chance in self._chances
        ]
        self._faults = FaultFile(Path(spec.faults))
        self._device = device
        self._loop = loop
        self._reads: dict[int, _Read] = {}

    def close(self) -> None:
        """Let go of the films."""
        for file in self._films:
            os.close(file)

    def statistics(self) -> list[dict[str, float]]:
        """What each disk did so far."""
        return [{"reads": arm.reads, "busy_seconds": arm.busy_seconds} for arm in self._arms]

    def serve(self) -> None:
        """Take what the kernel asks; to be called whenever there is something."""
        while True:
            try:
                message = os.read(self._device, MOST_BYTES + 4096)
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in {errno.ENOENT, errno.EINTR}:
                    continue  # it was interrupted before we had it
                self._loop.remove_reader(self._device)  # ENODEV: unmounted
                return
            told = self._folder.take(message)
            if isinstance(told, ReadRequest):
                self._ask(told)
            elif told is not None:
                self._tell(told)

    def _ask(self, request: ReadRequest) -> None:
        film = self._numbers[request.file]
        parts = self._layout.parts(film, request.offset, request.size)
        self._reads[request.unique] = _Read(request, len(parts))
        now = self._loop.time()
        for part in parts:
            self._arms[part.disk].ask(Request(part.position, request.unique, part.size, now))
        for part in parts:
            self._begin(part.disk)

    def _begin(self, disk: int) -> None:
        arm = self._arms[disk]
        faults = self._faults.of(disk)
        if any(fault.kind is FaultKind.STALL for fault in faults):
            self._loop.call_later(_LOOK_SECONDS, self._begin, disk)
            return
        done = arm.begin(self._loop.time(), faults)
        if done is not None:
            self._loop.call_at(done, self._finish, disk, faults)

    def _finish(self, disk: int, faults: Sequence[Fault]) -> None:
        chance = self._chances[disk]
        failed = any(fault.kind is FaultKind.DEATH for fault in faults)
        wrong = False
        for fault in faults:
            if fault.kind is FaultKind.ERROR:
                failed = failed or chance.uniform() < fault.share
            elif fault.kind is FaultKind.CORRUPT:
                wrong = wrong or chance.uniform() < fault.share
        for number in self._arms[disk].finish():
            read = self._reads[number]
            read.missing -= 1
            read.failed = read.failed or failed
            read.wrong = read.wrong or wrong
            if not read.missing:
                del self._reads[number]
                self._bring(read)
        self._begin(disk)

    def _bring(self, read: _Read) -> None:
        request = read.request
        if read.failed:
            self._tell(failure(request.unique, errno.EIO))
            return
        data = os.pread(self._films[request.file], request.size, request.offset)
        if read.wrong:
            data = bytes([data[0] ^ 0xFF]) + data[1:]
        self._tell(answer(request.unique, data))

    def _tell(self, message: bytes) -> None:
        # Who wanted it may be gone (ENOENT), or all may be over (ENODEV).
        with contextlib.suppress(OSError):
            os.write(self._device, message)


async def _run(spec: MountSpec) -> None:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    folder = Path(spec.mount)
    with _mounted(folder) as device:
        disks = MountedDisks(spec, device, loop)
        loop.add_reader(device, disks.serve)
        try:
            if spec.paged:
                await asyncio.to_thread(_set_read_ahead, folder, spec.read_ahead)
            await _read_from(spec, disks, stop)
        finally:
            loop.remove_reader(device)
            disks.close()


async def _read_from(spec: MountSpec, disks: MountedDisks, stop: asyncio.Event) -> None:
    """Let the program read until it ends or we are told to stop."""
    reader = await asyncio.create_subprocess_exec(*spec.command, stdin=asyncio.subprocess.DEVNULL)
    ended = asyncio.create_task(reader.wait())
    stopped = asyncio.create_task(stop.wait())
    try:
        await _wait_listening(spec, ended)
        print_json({"event": "listening", "url": f"http://{spec.host}:{spec.port}"})
        await asyncio.wait({ended, stopped}, return_when=asyncio.FIRST_COMPLETED)
        print_json({"event": "disks", "disks": disks.statistics()})
        if ended.done():
            raise LabError(f"{spec.command[0]} ended with exit code {reader.returncode}")
    finally:
        stopped.cancel()
        if reader.returncode is None:
            reader.terminate()
            await asyncio.wait({ended}, timeout=_GRACE_SECONDS)
        if reader.returncode is None:
            reader.kill()


async def _wait_listening(spec: MountSpec, ended: "asyncio.Task[int]") -> None:
    loop = asyncio.get_running_loop()
    until = loop.time() + _START_SECONDS
    while not ended.done():
        with contextlib.suppress(OSError):
            _, writer = await asyncio.open_connection(spec.host, spec.port)
            writer.close()
            return
        if loop.time() > until:
            raise LabError(f"{spec.command[0]} does not listen on {spec.host}:{spec.port}")
        await asyncio.sleep(0.05)
    raise LabError(f"{spec.command[0]} ended before it listened, with exit code {ended.result()}")


def _set_read_ahead(folder: Path, size: int) -> None:
    """Beyond the 128 KiB that a mount may ask for, only root can."""
    number = folder.stat().st_dev
    path = Path(f"/sys/class/bdi/{os.major(number)}:{os.minor(number)}/read_ahead_kb")
    try:
        path.write_text(str(size // 1024))
    except OSError as error:
        raise LabError(f"the read-ahead cannot be set in {path}: {error.strerror}") from error


def write_spec(path: Path, spec: MountSpec) -> None:
    """Write a spec for `mounted_command`."""
    path.write_text(json.dumps(asdict(spec)), encoding="utf-8")


def main(path: Path) -> None:
    """Mount a spec until told to stop."""
    try:
        asyncio.run(_run(MountSpec(**json.loads(path.read_text("utf-8")))))
    except ToastError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(1)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
