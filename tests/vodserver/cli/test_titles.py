"""init, add, list, remove and fsck, as a person and as a program run them."""

import hashlib
import json
import os
import signal
import subprocess
import sys

import pytest
from click.testing import CliRunner

from tests.vodserver.conftest import flip_byte, make_empty
from vodserver.cli import cli
from vodserver.errors import IngestStopped
from vodserver.store import add_film, open_store
from vodserver.store.catalog import Catalog


def invoke(*arguments):
    """Run a command in this process; the errors are left to see."""
    return CliRunner().invoke(cli, list(map(str, arguments)), catch_exceptions=True)


def test_init_add_list(tmp_path, clock_film):
    store = ("--store", tmp_path / "s")
    disks = [flag for n in range(3) for flag in ("--disk", tmp_path / f"d{n}")]

    assert invoke("init", *store, *disks).output == (
        f"made a store in {tmp_path / 's'} over 3 disks\n"
    )
    assert "the store is empty" in invoke("list", *store).output
    assert invoke("list", *store, "--json").output == "[]\n"

    added = invoke("add", *store, clock_film, "--name", "A day in May")
    assert added.exit_code == 0, added.output
    assert added.output.startswith("added a-day-in-may: ")
    assert ", 0:31, " in added.output

    listed = invoke("list", *store).output
    assert [line.split()[0] for line in listed.splitlines()] == ["id", "a-day-in-may"]
    assert "A day in May" in listed
    (described,) = json.loads(invoke("list", *store, "--json").output)
    assert described["sha256"] == hashlib.sha256(clock_film.read_bytes()).hexdigest()
    assert described["bytes"] == clock_film.stat().st_size
    assert described["info_hash"] in listed


def test_init_with_three_copies_puts_every_extent_on_three_disks(tmp_path, clock_film):
    store = ("--store", tmp_path / "s")
    disks = [flag for n in range(4) for flag in ("--disk", tmp_path / f"d{n}")]

    assert invoke("init", *store, *disks, "--copies", 3).exit_code == 0
    assert invoke("add", *store, clock_film).exit_code == 0

    files = [path for path in tmp_path.glob("d*/extents/**/*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) == 3 * clock_film.stat().st_size
    assert invoke("fsck", *store, "--deep").exit_code == 0


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--copies", 3), "needs 3 disks and there are 2"),
        (("--copies", 3, "--allocation", "raid1"), "'raid1' makes 2 of each extent, not 3"),
        (("--copies", 4), "4 is not in the range 1<=x<=3"),
    ],
)
def test_copies_that_cannot_be_made_are_refused(tmp_path, options, told):
    disks = ("--disk", tmp_path / "a", "--disk", tmp_path / "b")
    made = invoke("init", "--store", tmp_path / "s", *disks, *options)
    assert made.exit_code != 0
    assert told in (made.output + str(made.exception))
    assert not (tmp_path / "s").exists()


def test_init_and_add_as_json_are_one_line_each(tmp_path, clock_film):
    store = ("--store", tmp_path / "s")

    made = invoke("init", *store, "--disk", tmp_path / "a", "--disk", tmp_path / "b", "--json")
    added = invoke("add", *store, clock_film, "--json")

    assert made.output.count("\n") == added.output.count("\n") == 1
    assert json.loads(made.output)["event"] == "created"
    assert [disk["number"] for disk in json.loads(made.output)["disks"]] == [0, 1]
    assert json.loads(added.output)["event"] == "added"
    assert json.loads(added.output)["id"] == "clock"


def test_the_store_may_come_from_the_environment(tmp_path):
    store = make_empty(tmp_path)

    result = CliRunner().invoke(cli, ["list"], env={"VODSERVER_STORE": str(store)})

    assert "the store is empty" in result.output


def test_a_title_is_removed_with_its_files(home, tmp_path):
    told = invoke("remove", "--store", home.path, "clock")

    assert (told.exit_code, told.output) == (0, "removed clock: 1.24 MB\n")
    assert invoke("list", "--store", home.path, "--json").output == "[]\n"
    assert not [path for disk in home.disks for path in disk.glob("extents/*")]


def test_remove_as_json_tells_what_was_removed(home):
    told = json.loads(invoke("remove", "--store", home.path, "clock", "--json").output)

    assert (told["event"], told["id"], told["sha256"]) == ("removed", "clock", home.title.sha256)


def test_fsck_of_a_sound_store_is_clean(home):
    told = invoke("fsck", "--store", home.path)
    deep = invoke("fsck", "--store", home.path, "--deep")

    replicas = 2 * len(home.title.extents)
    assert told.exit_code == deep.exit_code == 0, told.output
    assert told.output == (
        f"clean: 1 titles, {replicas} replicas, 2.48 MB, compared by name and size\n"
    )
    assert deep.output == f"clean: 1 titles, {replicas} replicas, 2.48 MB, read and compared\n"


def test_fsck_tells_people_what_is_wrong_and_repairs_it(home):
    home.replica(2, 0).unlink()
    flip_byte(home.replica(3, 1), 70_000)

    shallow = invoke("fsck", "--store", home.path)
    deep = invoke("fsck", "--store", home.path, "--deep")
    repaired = invoke("fsck", "--store", home.path, "--deep", "--repair")
    after = invoke("fsck", "--store", home.path, "--deep")

    disk = home.title.extents[2].disks[0]
    assert shallow.exit_code == deep.exit_code == 1
    assert f"missing  extent 2 of 'clock' on disk {disk} is not there" in shallow.output
    assert "1 problems: " in shallow.output
    assert "rotten   extent 3 of 'clock'" in deep.output
    assert repaired.exit_code == after.exit_code == 0
    assert repaired.output.startswith("clean, 2 repaired: ")
    assert after.output.startswith("clean: ")


def test_fsck_as_json_is_one_line_and_an_exit_code(home):
    home.replica(2, 0).unlink()

    told = invoke("fsck", "--store", home.path, "--json")

    assert told.exit_code == 1
    assert told.output.count("\n") == 1
    result = json.loads(told.output)
    (finding,) = result["findings"]
    assert (result["clean"], result["counts"]) == (False, {"missing": 1})
    assert (finding["title"], finding["extent"]) == ("clock", 2)
    assert finding["problem"] is True


def test_an_add_says_which_disk_it_does_without(home, small_film):
    (home.disks[1] / "vod-disk.json").unlink()

    told = invoke("add", "--store", home.path, small_film)
    as_json = invoke("add", "--store", home.path, small_film, "--name", "b", "--json")

    assert told.exit_code == as_json.exit_code == 0
    assert "disk1 is not there: the film goes onto other disks" in told.stderr
    assert as_json.stderr == ""
    (notice,) = json.loads(as_json.stdout)["notices"]
    assert "disk1 is not there" in notice


STOPPED = """
import os, sys
seen, signal = set(), int(sys.argv[1])
def hook(event, arguments):
    if event == "open" and "/extents/" in str(arguments[0]) and arguments[2] & os.O_CREAT:
        seen.add(os.path.basename(str(arguments[0])))
        if len(seen) == 3:
            seen.update(str(n) for n in range(9))
            os.kill(os.getpid(), signal)
sys.addaudithook(hook)
sys.argv = ["vodserver", *sys.argv[2:]]
from vodserver.cli import main
main()
"""


@pytest.mark.slow
@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_an_add_that_is_stopped_goes_on_when_run_again(tmp_path, clock_film, stop):
    """The signal comes while the third extent is opened to be written."""
    store = make_empty(tmp_path)
    done = subprocess.run(
        [
            *(sys.executable, "-c", STOPPED, str(int(stop))),
            *("add", "--store", str(store), str(clock_film)),
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=os.environ,
    )

    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr.strip() == (
        "vodserver: interrupted: what is done is kept, and the same command goes on from there"
    )
    assert invoke("list", "--store", store, "--json").output == "[]\n"
    unfinished = invoke("fsck", "--store", store)
    assert unfinished.exit_code == 0
    assert "unfinished" in unfinished.output

    again = invoke("add", "--store", store, clock_film)

    assert again.exit_code == 0
    assert "going on where an earlier add was stopped, after " in again.stderr
    (title,) = json.loads(invoke("list", "--store", store, "--json").output)
    assert title["sha256"] == hashlib.sha256(clock_film.read_bytes()).hexdigest()
    assert invoke("fsck", "--store", store, "--deep").exit_code == 0


def test_fsck_repair_removes_what_waits_to_be_gone_on_with(tmp_path, clock_film):
    store = make_empty(tmp_path)
    stop_after(store, clock_film, 2)
    assert list(tmp_path.glob("disk*/extents/*/*"))

    told = invoke("fsck", "--store", store, "--repair")

    assert told.exit_code == 0
    assert told.output.startswith("clean, 1 repaired: 0 titles")
    assert not list(tmp_path.glob("disk*/extents/*"))


def test_add_restart_begins_again(tmp_path, clock_film):
    store = make_empty(tmp_path)
    folder = stop_after(store, clock_film, 2)

    told = invoke("add", "--store", store, clock_film, "--restart")

    assert (told.exit_code, told.stderr) == (0, "")
    assert not list(tmp_path.glob(f"disk*/extents/{folder}"))


def stop_after(store, film, extents):
    """Leave an add that was stopped; the folder that it wrote into."""
    left = iter([False] * extents)
    with open_store(store) as opened, pytest.raises(IngestStopped):
        add_film(opened, film, stop=lambda: next(left, True))
    with Catalog(store / "catalog.sqlite") as catalog:
        return catalog.ingests()[0]
