"""The commands of upkeep, as programs, with a server and without one."""

import asyncio
import json
import shutil
import signal

import pytest

from experiments.processes import Processes, program
from tests.vodserver.conftest import flip_byte
from tests.vodserver.store.upkeep.conftest import assert_whole, count_on

pytestmark = pytest.mark.slow


@pytest.fixture
def run(run_vodserver, home):
    """Run a command on the store: (exit code, what it printed, the lines of its errors)."""

    def command(*words):
        code, out, err = run_vodserver(*words, "--store", home.path)
        return code, out, err.splitlines()

    return command


def lines(out):
    return [json.loads(line) for line in out.splitlines()]


def test_add_list_rebalance_and_drain(run, home, tmp_path):
    code, out, _ = run("disk", "add", tmp_path / "new", "--json")
    assert code == 0
    assert lines(out)[0]["event"] == "added"
    assert lines(out)[0]["number"] == 4

    code, out, _ = run("rebalance", "--tolerance", "0", "--json")
    assert code == 0
    done = lines(out)
    assert done[-1]["event"] == "rebalanced"
    assert done[-1]["replicas"] == len(done) - 1 > 0

    code, out, _ = run("disk", "drain", "0", "--json")
    assert code == 0
    assert lines(out)[-1]["state"] == "retired"
    code, out, _ = run("disk", "list", "--json")
    (disks,) = lines(out)
    assert [disk["state"] for disk in disks] == ["retired", "ok", "ok", "ok", "ok"]
    assert disks[0]["used_bytes"] == 0
    assert count_on(assert_whole(home))[4] > 0


def test_people_are_told_in_words(run, home, tmp_path):
    flip_byte(home.replica(1, 0), 7)
    shutil.rmtree(home.disks[3])
    code, out, _ = run("status")
    assert code == 0
    assert "absent" in out
    assert "have too few replicas" in out
    assert "not being served" in out

    code, out, _ = run("disk", "replace", "3", tmp_path / "new")
    assert code == 0
    assert f"disk 3 is {tmp_path / 'new'} now" in out
    code, out, _ = run("scrub")
    assert "1 bad, 1 repaired" in out or "0 bad" in out
    code, out, _ = run("status")
    assert "last scrub" in out
    code, out, _ = run("disk", "list")
    assert str(tmp_path / "new") in out
    assert_whole(home)


def test_a_scrub_that_leaves_something_bad_fails(run, home):
    for copy in (0, 1):
        flip_byte(home.replica(1, copy), 7)
    code, out, _ = run("scrub", "--json", "--restart")

    assert code == 1
    result = lines(out)[-1]
    assert (result["bad"], result["repaired"]) == (2, 0)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("disk", "drain", "9"), "no disk 9"),
        (("disk", "add", "vod"), "not empty"),
        (("scrub", "--rate", "fast"), "not a rate"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_exit_code_2(run, words, message):
    code, out, err = run(*words)

    assert code == 2
    assert out == ""
    assert message in err[-1]
    assert not any("Traceback" in line for line in err)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
async def test_a_drain_that_is_interrupted_goes_on_when_run_again(run, home, tmp_path, number):
    async with Processes(tmp_path / "logs") as processes:
        child = None

        def stop(event):
            if event["event"] == "progress":
                child.signal(number)

        words = ("disk", "drain", "1", "--json", "--store", str(home.path))
        child = await processes.start("drain", [program("vodserver"), *words], on_event=stop)
        code = await child.wait_end()
    assert code in {0, 130, -signal.SIGKILL}  # it may have been at its end
    code, _, err = await asyncio.to_thread(run, "disk", "drain", "1", "--json")
    assert code == 0 or "retired already" in err[-1]
    assert count_on(assert_whole(home))[1] == 0


async def test_a_server_killed_in_a_replacement_goes_on_with_it(run, home, tmp_path):
    """Without being told again: the next server makes what is missing, on the new disk."""
    words = ("serve", "--port", "0", "--no-seed", "--json", "--store", str(home.path))
    async with Processes(tmp_path / "logs") as processes:
        server = await processes.start("serve", [program("vodserver"), *words])
        await server.wait_event("listening", timeout_seconds=20)
        shutil.rmtree(home.disks[1])
        command = ("disk", "replace", "1", str(tmp_path / "new"), "--store", str(home.path))
        child = await processes.start(
            "replace",
            [program("vodserver"), *command, "--json"],
            on_event=lambda _: server.signal(signal.SIGKILL),
        )
        assert await server.wait_end() == -signal.SIGKILL
        assert await child.wait_end() in {0, 1}  # it may have been at its end
        server = await processes.start("again", [program("vodserver"), *words])
        await server.wait_event("listening", timeout_seconds=20)
        async with asyncio.timeout(30):
            while True:
                code, out, _ = await asyncio.to_thread(run, "status", "--json")
                assert code == 0
                (status,) = lines(out)
                if status["under_replicated_extents"] == 0:
                    break
        assert await server.stop() == 0
    await asyncio.to_thread(run, "status")  # opens the store, which clears up
    assert count_on(assert_whole(home)) == count_on(home.title)


async def test_all_of_it_while_it_is_served(run, home, tmp_path):
    async with Processes(tmp_path / "logs") as processes:
        words = ("serve", "--port", "0", "--no-seed", "--json", "--store", str(home.path))
        server = await processes.start("serve", [program("vodserver"), *words])
        ready = await server.wait_event("listening", timeout_seconds=20)

        def each():
            code, out, _ = run("status", "--json")
            assert code == 0
            (status,) = lines(out)
            assert status["server"]["url"] == ready["public_url"]
            assert status["server"]["operation"] is None
            code, out, _ = run("disk", "add", "extra", "--json")
            assert code == 0
            assert lines(out)[0]["path"] == str(tmp_path / "extra")
            shutil.rmtree(home.disks[2])
            code, out, _ = run("disk", "replace", "2", tmp_path / "new", "--json")
            assert code == 0
            assert lines(out)[-2]["event"] == "progress"
            code, out, _ = run("scrub", "--json")
            assert (code, lines(out)[-1]["bad"]) == (0, 0)
            code, out, _ = run("status")
            assert f"served on {ready['public_url']}" in out
            code, _, err = run("disk", "drain", "9")
            assert code == 2
            assert "no disk 9" in err[-1]

        await asyncio.to_thread(each)
        assert await server.stop() == 0
    assert_whole(home)
    assert not (home.path / "control.sock").exists()
