"""Killed at any moment, a store never shows a part of a title, and never loses one.

The programs are the real ones, killed with SIGKILL while they add or remove a film, drain or
replace a disk, or repair: at random moments, and at chosen steps (see mortal.py). After every kill
the store is opened and read whole; then the same command is run again, and has to end as if nothing
had been.
"""

import abc
import asyncio
import hashlib
import json
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from experiments.processes import program
from tests.vodserver.conftest import DISKS, flip_byte, move_disks
from vodserver.control import OPERATIONS
from vodserver.store import add_film, create_store, list_titles, open_store
from vodserver.store.blocks import blocks_path
from vodserver.store.catalog import Catalog

pytestmark = [pytest.mark.lab, pytest.mark.slow, pytest.mark.timeout(400)]

OPERATION_SECONDS = 60.0
READ_BYTES = 1024 * 1024


class ForkServer:
    """The fork server of mortal.py."""

    def __init__(self, folder):
        self.log = folder / "mortal.log"
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("mortal.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, folder, argv, *, kill_at=0):
        """Run a command: exit status (negative for a signal), and the steps it took if it lived."""
        job = {
            "argv": list(map(str, argv)),
            "kill_at": kill_at,
            "folder": str(folder),
            "log": str(self.log),
        }
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        return answer["status"], answer["steps"]

    def close(self):
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


@pytest.fixture(scope="module")
def fork_server(tmp_path_factory):
    server = ForkServer(tmp_path_factory.mktemp("mortal"))
    yield server
    server.close()


@dataclass
class Ward:
    """A store that is going to be hurt, and what must hold of it."""

    folder: Path
    film: Path
    sha256: str
    committed: set[str]

    @property
    def store(self):
        return self.folder / "store"

    def copy(self, name):
        """A copy beside it, in the place of the last one of that name."""
        folder = self.folder.parent / name
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.folder, folder)
        move_disks(folder / "store", folder)
        return Ward(folder, self.film, self.sha256, self.committed)

    def replicas(self):
        """The files that are there, and those that should be."""
        there = {str(path) for path in self.folder.glob("*/extents/*/*")}
        there |= {str(path) for path in self.folder.glob("store/blocks/*")}
        with open_store(self.store) as store:
            should = {
                str(store.replica_path(title, extent, disk))
                for title in store.titles()
                for extent in title.extents
                for disk in extent.disks
            }
            should |= {str(blocks_path(self.store, t.folder)) for t in store.titles()}
        return there, should


@pytest.fixture(scope="module")
def whole(tmp_path_factory, film):
    """A store of four disks with the film in it, and the same film again under another name."""
    folder = tmp_path_factory.mktemp("whole") / "vod"
    create_store(folder / "store", [folder / f"disk{n}" for n in range(DISKS)])
    with open_store(folder / "store") as store:
        for number, name in enumerate(("first", "second")):
            title = add_film(store, film, name=name, rng=np.random.default_rng(number))
    return Ward(folder, film, title.sha256, {"first", "second"})


@dataclass
class Tally:
    """What became of the kills: how many there were during what, and what was wrong after one."""

    kills: Counter = field(default_factory=Counter)
    faults: list[tuple[str, object]] = field(default_factory=list)

    def count(self, kind):
        return sum(fault == kind for fault, _ in self.faults)


@pytest.fixture(scope="module")
def tally():
    return Tally()


class Operation(abc.ABC):
    """Something that is killed: how it is prepared, run, and known to be done."""

    name = ""
    rests_clean = True
    """The store is as the catalog says whenever the operation was killed."""

    def prepare(self, ward):  # noqa: B027 - most need nothing before
        """Make the store what it is before the operation."""

    @abc.abstractmethod
    def argv(self, ward):
        """The command that is killed."""

    def added(self):
        """Ids of the titles that come to be by it."""
        return set()

    def removed(self):
        """Ids of the titles that go by it."""
        return set()

    def expected(self, ward):
        """Ids of the titles that there are after it."""
        return (ward.committed | self.added()) - self.removed()

    def assert_done(self, store):  # noqa: B027 - where there is anything to see
        """It has had its effect."""


class Remove(Operation):
    name = "remove"

    def argv(self, ward):
        return ("remove", "--store", ward.store, "second")

    def removed(self):
        return {"second"}

    def assert_done(self, store):
        assert store.catalog.debris() == []


class Add(Operation):
    name = "ingest"

    def argv(self, ward):
        return ("add", "--store", ward.store, ward.film, "--name", "third")

    def added(self):
        return {"third"}

    def assert_done(self, store):
        assert store.catalog.ingests() == []
        third, first = store.title("third"), store.title("first")
        # As an add that was never killed made it, but for the name.
        assert [extent.sums for extent in third.extents] == [e.sums for e in first.extents]
        assert (third.sha256, third.timemap) == (first.sha256, first.timemap)
        assert (third.block_roots, third.block_sums) == (first.block_roots, first.block_sums)


class Drain(Operation):
    name = "drain"

    def argv(self, ward):
        return ("disk", "drain", "--store", ward.store, "1")

    def assert_done(self, store):
        assert store.catalog.disks()[1].state == "retired"
        assert not any(1 in e.disks for title in store.titles() for e in title.extents)


class Replace(Operation):
    name = "replace"
    rests_clean = False  # what the new disk should hold is on its way

    def prepare(self, ward):
        shutil.rmtree(ward.folder / "disk1")

    def argv(self, ward):
        return ("disk", "replace", "--store", ward.store, "1", ward.folder / "new")

    def assert_done(self, store):
        assert store.disk_paths.get(1, Path()).name == "new"


class Repair(Operation):
    name = "repair"
    rests_clean = False  # what is bad stays so until it is repaired

    def prepare(self, ward):
        rng = np.random.default_rng(3)
        with open_store(ward.store) as store:
            for title in store.titles():
                for extent in title.extents:
                    path = store.replica_path(title, extent, extent.disks[rng.integers(2)])
                    if rng.integers(2):
                        path.unlink()
                    else:
                        flip_byte(path, int(rng.integers(extent.size)))
            first, second = (blocks_path(ward.store, title.folder) for title in store.titles())
            first.unlink()
            flip_byte(second, 5)

    def argv(self, ward):
        return ("fsck", "--deep", "--repair", "--store", ward.store)


class Scrub(Repair):
    def argv(self, ward):
        return ("scrub", "--store", ward.store)


async def examine(ward, operation, tally):
    """Open the store, and count what is not as it has to be at any time."""
    listed = {title.id for title in list_titles(ward.store)}
    with open_store(ward.store) as store:
        assert {title.id for title in store.titles()} == listed
        for title_id in ward.committed - operation.removed() - listed:
            tally.faults.append(("lost title", title_id))
        for title in store.titles():
            parts = [
                await store.read(title, at, min(at + READ_BYTES, title.film_bytes))
                for at in range(0, title.film_bytes, READ_BYTES)
            ]
            whole = hashlib.sha256(b"".join(parts)).hexdigest() == title.sha256 == ward.sha256
            if not whole or title.id not in ward.committed | operation.added():
                kind = "lost title" if title.id in ward.committed else "partial title"
                tally.faults.append((kind, title.id))
        result = await OPERATIONS["fsck"].function(store, {"deep": True}, lambda _: None)
        return result, listed


def check_after_kill(ward, operation, tally, fork_server):
    """What must hold at once, and after the command is run again."""
    result, listed = asyncio.run(examine(ward, operation, tally))
    if operation.rests_clean and not result["clean"]:
        tally.faults.append(("fsck unclean", result["findings"]))
    done = operation.expected(ward)
    if listed != done or done == ward.committed:  # else it was killed after its end
        fork_server.run(ward.folder, operation.argv(ward))
    result, listed = asyncio.run(examine(ward, operation, tally))
    there, should = ward.replicas()
    if not result["clean"] or there != should:
        tally.faults.append(("fsck unclean", (result["findings"], there ^ should)))
    try:
        assert listed == done
        with open_store(ward.store) as store:
            operation.assert_done(store)
    except AssertionError as error:
        tally.faults.append(("not resumed", f"{operation.name}: {error}"))


@pytest.fixture(
    params=[Add(), Remove(), Drain(), Replace(), Repair(), Scrub()], ids=lambda o: type(o).__name__
)
def operation(request):
    return request.param


@pytest.fixture
def before(whole, operation, tmp_path):
    """The store just before the operation."""
    ward = whole.copy(tmp_path / "before")
    operation.prepare(ward)
    return ward


def test_killed_at_chosen_steps(before, operation, full, tally, fork_server):
    """In full, an add is killed before each of its steps, and what moves replicas before many."""
    rehearsal = before.copy("rehearsal")
    status, steps = fork_server.run(rehearsal.folder, operation.argv(rehearsal))
    assert status == 0, fork_server.log.read_text()
    assert steps > 10
    if not full:
        points = {steps // 3, steps * 4 // 5}
    elif isinstance(operation, Add):
        points = set(range(1, steps + 1))
    else:
        points = {*range(1, 15), *np.linspace(min(15, steps), steps, 10, dtype=int).tolist()}
    faults = len(tally.faults)
    for point in sorted(points):
        ward = before.copy("killed")
        status, _ = fork_server.run(ward.folder, operation.argv(ward), kill_at=point)
        if status == -signal.SIGKILL:
            tally.kills[operation.name] += 1
        check_after_kill(ward, operation, tally, fork_server)
    assert tally.faults[faults:] == []


def test_killed_at_random_moments(before, operation, full, tally, fork_server):
    """Over all the time that the program has the store."""
    rehearsal = before.copy("rehearsal")
    seconds, status = run_and_kill(rehearsal, operation, None)
    assert status == 0
    rng = np.random.default_rng(17)
    faults = len(tally.faults)
    wanted, tries = ((8 if isinstance(operation, Add) else 5), 20) if full else (1, 3)
    killed = 0
    for moment in rng.uniform(0.0, seconds, size=tries):
        ward = before.copy("killed")
        _, status = run_and_kill(ward, operation, moment)
        killed += status == -signal.SIGKILL
        check_after_kill(ward, operation, tally, fork_server)
        if killed == wanted:
            break
    tally.kills[operation.name] += killed
    assert killed >= 1
    assert tally.faults[faults:] == []


def test_a_server_killed_while_a_film_goes_in(whole, full, tally, tmp_path, fork_server):
    """The command that asked it ends in one line; the same command goes on without the server."""
    operation, faults = Add(), len(tally.faults)
    rng = np.random.default_rng(23)
    for _ in range(5 if full else 1):
        ward = whole.copy(tmp_path / "served")
        server = subprocess.Popen(
            [
                *(program("vodserver"), "serve", "--store", str(ward.store)),
                *("--port", "0", "--no-seed", "--json"),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        try:
            server.stdout.readline()  # it listens
            command = subprocess.Popen(
                [program("vodserver"), *map(str, operation.argv(ward))],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
            )
            with Catalog(ward.store / "catalog.sqlite") as catalog:
                while command.poll() is None and not catalog.ingests():
                    time.sleep(0.002)
            time.sleep(rng.uniform(0.0, 0.1))
            server.kill()
            _, said = command.communicate(timeout=OPERATION_SECONDS)
        finally:
            server.kill()
            server.wait()
            server.stdout.close()
        if command.returncode:
            assert command.returncode == 1
            assert said.count("\n") == 1, said
            tally.kills[operation.name] += 1
        check_after_kill(ward, operation, tally, fork_server)
    assert tally.faults[faults:] == []


def run_and_kill(ward, operation, moment):
    """Run the real program, killed so many seconds after it took the store: time and status."""
    lock = ward.store / "lock"
    lock.unlink(missing_ok=True)
    process = subprocess.Popen(
        [program("vodserver"), *map(str, operation.argv(ward))],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        while process.poll() is None and not (lock.exists() and lock.stat().st_size):
            time.sleep(0.002)
        begun = time.monotonic()
        if moment is not None:
            time.sleep(moment)
            process.kill()
        status = process.wait(OPERATION_SECONDS)
        return time.monotonic() - begun, status
    finally:
        process.kill()
        process.wait()


def test_the_count_of_all_that(tally, full, figures):
    """It has to come last: the others counted."""
    figures["kills"] = tally.kills.total()
    figures["during_ingest"] = tally.kills["ingest"]
    figures["during_remove"] = tally.kills["remove"]
    figures["during_drain"] = tally.kills["drain"]
    figures["during_replace"] = tally.kills["replace"]
    figures["during_repair"] = tally.kills["repair"]
    figures["lost_titles"] = tally.count("lost title")
    figures["partial_titles"] = tally.count("partial title")
    figures["fsck_unclean"] = tally.count("fsck unclean")
    figures["not_resumed"] = tally.count("not resumed")

    assert figures["kills"] >= (100 if full else 10)
    assert tally.faults == []
