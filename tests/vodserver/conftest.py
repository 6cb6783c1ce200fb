"""A real store with a real film, made once; tests that damage it get a copy."""

import asyncio
import contextlib
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import libtorrent as lt
import numpy as np
import pytest

from experiments.film import FilmSpec, make_film
from vodserver.store import Store, Title, add_film, create_store, open_store
from vodserver.store.layout import extent_path

DISKS = 4


@dataclass(frozen=True)
class Home:
    """Where a store and its disks are, and the film that is in it."""

    path: Path
    film: Path
    title: Title

    @property
    def disks(self) -> list[Path]:
        return [self.path.parent / f"disk{n}" for n in range(DISKS)]

    def open(self, **options) -> Store:
        return open_store(self.path, **options)

    def replica(self, number: int, copy: int) -> Path:
        """The file of one replica of an extent."""
        disk = self.title.extents[number].disks[copy]
        return extent_path(self.disks[disk], self.title.folder, number)


def make_empty(folder: Path, *, copies: int = 2) -> Path:
    create_store(folder / "store", [folder / f"disk{n}" for n in range(DISKS)], copies=copies)
    return folder / "store"


def unlock(path: Path) -> None:
    """Let a test damage what the store writes read-only."""
    path.chmod(0o644)


def flip_byte(path: Path, offset: int) -> None:
    """Rot: change one byte of a file in place."""
    unlock(path)
    with path.open("r+b") as file:
        file.seek(offset)
        byte = file.read(1)
        file.seek(offset)
        file.write(bytes([byte[0] ^ 0x40]))


@pytest.fixture(scope="session")
def clock_film(tmp_path_factory) -> Path:
    """A real MP4 of 31 s at 320 kb/s: seven extents, none of them whole checksum spans."""
    spec = FilmSpec(duration_seconds=31.0, bit_rate=40_000.0, width=160, height=90)
    path = make_film(tmp_path_factory.mktemp("clock") / "clock.mp4", spec)
    path.chmod(0o444)
    return path


@pytest.fixture(scope="session")
def pristine(tmp_path_factory, clock_film) -> Home:
    """A store of four disks that holds the clock film; not to be changed."""
    store = make_empty(tmp_path_factory.mktemp("vod"))
    with open_store(store) as opened:
        title = add_film(opened, clock_film, rng=np.random.default_rng(5))
    return Home(store, clock_film, title)


@pytest.fixture(scope="session")
def pristine_thrice(tmp_path_factory, clock_film) -> Home:
    """The same with three copies of everything."""
    store = make_empty(tmp_path_factory.mktemp("vod3"), copies=3)
    with open_store(store) as opened:
        title = add_film(opened, clock_film, rng=np.random.default_rng(5))
    return Home(store, clock_film, title)


@pytest.fixture
def home(pristine, tmp_path) -> Home:
    """A copy of the pristine store that a test may damage."""
    return copied(pristine, tmp_path / "vod")


@pytest.fixture
def thrice(pristine_thrice, tmp_path) -> Home:
    """A copy of the store with three copies that a test may damage."""
    return copied(pristine_thrice, tmp_path / "vod")


def copied(home: Home, folder: Path) -> Home:
    """A store of its own with the same film."""
    shutil.copytree(home.path.parent, folder, symlinks=True)
    move_disks(folder / "store", folder)
    return Home(folder / "store", home.film, home.title)


def move_disks(store: Path, folder: Path) -> None:
    """Tell a copied catalog where its copied disks are."""
    import sqlite3  # noqa: PLC0415 - only fixtures edit a catalog by hand

    db = sqlite3.connect(store / "catalog.sqlite", isolation_level=None)
    db.executemany(
        "UPDATE disks SET path=? WHERE number=?",
        [(str(folder / f"disk{n}"), n) for n in range(DISKS)],
    )
    db.close()


@pytest.fixture
def run_vodserver(tmp_path):
    """Run the real program to its end: (exit code, stdout, stderr)."""

    def run(*arguments, **options):
        done = subprocess.run(
            [sys.executable, "-m", "vodserver.cli", *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            cwd=tmp_path,
            **options,
        )
        return done.returncode, done.stdout, done.stderr

    return run


class StockClient:
    """An ordinary libtorrent client, as strangers run it, on a loopback address of its own."""

    def __init__(self, torrent: bytes, folder: Path, host: str) -> None:
        self._session = lt.session(
            {
                "listen_interfaces": f"{host}:0",
                "outgoing_interfaces": host,
                "enable_dht": False,
                "enable_lsd": False,
                "enable_upnp": False,
                "enable_natpmp": False,
                "enable_outgoing_utp": False,
                "enable_incoming_utp": False,
                "alert_mask": lt.alert.category_t.all_categories,
            }
        )
        params = lt.add_torrent_params()
        params.ti = lt.torrent_info(torrent)
        params.ti.set_web_seeds([])
        params.save_path = str(folder)
        self.handle = self._session.add_torrent(params)
        self.alerts: list[str] = []
        self._reading, self._writing = os.pipe2(os.O_NONBLOCK)
        self._session.set_alert_fd(self._writing)

    async def download(self, host: str, port: int, *, seconds: float = 20.0) -> None:
        """Download everything from one peer.

        Raises:
            TimeoutError: it is not complete by then.
        """
        self.handle.connect_peer((host, port))
        async with asyncio.timeout(seconds):
            while not self.handle.status().is_seeding:
                await self._alerted()
            # What it has is not all in its files yet.
            told = len(self.alerts)
            self.handle.flush_cache()
            while not any(a.startswith("cache_flushed_alert") for a in self.alerts[told:]):
                await self._alerted()

    async def settle(self, until, *, seconds: float = 20.0) -> None:
        """Wait until a condition on this client holds."""
        async with asyncio.timeout(seconds):
            while not until(self):
                await self._alerted()

    @property
    def port(self) -> int:
        return self._session.listen_port()

    def pieces(self) -> list[bool]:
        return list(self.handle.status(lt.torrent_handle.query_pieces).pieces)

    async def _alerted(self) -> None:
        loop = asyncio.get_running_loop()
        woken = loop.create_future()
        loop.add_reader(self._reading, lambda: woken.done() or woken.set_result(None))
        try:
            # piece_finished is followed by the torrent's own change of state a moment later
            await asyncio.wait_for(woken, 0.2)
        except TimeoutError:
            pass
        finally:
            loop.remove_reader(self._reading)
        await self.take_alerts()

    async def take_alerts(self) -> None:
        """Note the alerts that wait."""
        with contextlib.suppress(BlockingIOError):
            os.read(self._reading, 4096)
        self.alerts.extend(f"{type(a).__name__}: {a.message()}" for a in self._session.pop_alerts())

    def close(self) -> None:
        self.handle = None
        self._session = None
        os.close(self._reading)
        os.close(self._writing)


@pytest.fixture
def stock_client():
    """Makes stock clients and closes them: `stock_client(torrent, folder, host)`."""
    made: list[StockClient] = []

    def make(torrent: bytes, folder: Path, host: str) -> StockClient:
        made.append(StockClient(torrent, folder, host))
        return made[-1]

    yield make
    for client in made:
        client.close()
