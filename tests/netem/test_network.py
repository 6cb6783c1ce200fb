import asyncio
import contextlib
import os
import signal
import sys
from pathlib import Path

import pytest

from netem.backends import TunBackend
from netem.errors import NetemError
from netem.network import Network
from netem.topology import Host, LatencyClass, Topology

TWO = Topology("two", (LatencyClass("a", 0.005),), (Host("one", "a"), Host("two", "a")))
SLEEP = ["sleep", "1000"]


def namespaces():
    """The network namespaces that processes of this machine are in."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                found.add((entry / "ns/net").stat().st_ino)
            except OSError:
                continue
    return found


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def until_gone(*pids):
    async with asyncio.timeout(10):
        while any(map(alive, pids)):  # noqa: ASYNC110 - the kernel tells nobody
            await asyncio.sleep(0.01)


@pytest.mark.slow
async def test_a_program_runs_in_its_host_and_reaches_the_other_one(tun):
    async with Network(TWO, backend=TunBackend(), seed=7) as network:
        assert network.facts["backend"] == "tun"
        assert network.facts["seed"] == 7
        assert network.facts["congestion_control"]
        own = await network.run("one", ["ip", "-o", "-4", "address", "show", "dev", "tun0"])
        assert network.address("one").encode() in own.output
        code = "import sys; sys.stderr.write('no'); sys.exit(3)"
        finished = await network.run("two", [sys.executable, "-c", code])
        assert (finished.exit_code, finished.errors) == (3, b"no")
    assert network.report["cpu_seconds"] >= 0


@pytest.mark.slow
async def test_nothing_is_left_of_a_network_whose_block_failed(tun):
    before = namespaces()
    network = Network(TWO, backend=TunBackend())

    async def fail():
        async with network:
            # With a child of its own, of which nobody here knows.
            words = ["sh", "-c", "sleep 1000 & echo $!; sleep 1000"]
            child = await network.popen("one", words, stdout=asyncio.subprocess.PIPE)
            assert int(await child.stdout.readline())
            children.append(child)
            raise ZeroDivisionError

    children = []
    with pytest.raises(ZeroDivisionError):
        await fail()
    (child,) = children
    assert await child.wait() == -signal.SIGKILL
    assert namespaces() <= before
    assert network.report["ended_processes"] >= 2


@pytest.mark.slow
async def test_a_keeper_that_is_killed_leaves_no_devices_and_its_programs_end_with_us(tun):
    async with Network(TWO, backend=TunBackend()) as network:
        words = ["sh", "-c", "echo in; exec sleep 1000"]
        child = await network.popen("one", words, stdout=asyncio.subprocess.PIPE)
        assert await child.stdout.readline() == b"in\n"
        keeper = network._keeper.pid
        os.kill(keeper, signal.SIGKILL)
        await until_gone(keeper)
        finished = await network.run("one", ["true"])
        assert finished.exit_code == 127
        assert b"the network is not up any more" in finished.errors
        # Whoever makes a network meanwhile, another test's included, ends it sooner.
        with contextlib.suppress(ProcessLookupError):
            child.kill()
        await child.wait()


PARENT = """
import asyncio, sys
from netem.network import Network
from netem.topology import Host, LatencyClass, Topology
async def main():
    async with Network(Topology("t", (LatencyClass("a"),), (Host("one", "a"),))) as network:
        child = await network.popen("one", ["sh", "-c", "sleep 1000 & echo $!; sleep 1000"],
                                    stdout=asyncio.subprocess.PIPE)
        grandchild = int(await child.stdout.readline())
        print(network._keeper.pid, child.pid, grandchild, flush=True)
        await asyncio.sleep(1000)
asyncio.run(main())
"""


@pytest.mark.slow
async def test_killed_with_sigkill_we_take_everything_with_us(tun):
    before = namespaces()
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PARENT, stdout=asyncio.subprocess.PIPE
    )
    pids = [int(word) for word in (await parent.stdout.readline()).split()]
    assert len(pids) == 3
    assert all(map(alive, pids))
    parent.kill()
    await parent.wait()
    await until_gone(*pids)
    assert namespaces() <= before


async def test_what_cannot_be_done_is_refused_by_name():
    both = Topology(
        "both", (LatencyClass("a", 0.01, 0.001, correlation=0.5),), TWO.hosts[:1], loopback=True
    )
    with pytest.raises(NetemError) as refusal:
        Network(both)
    assert str(refusal.value) == (
        "the network 'both' cannot be made: kernel cannot do correlation;"
        " tun cannot do loopback; uml cannot do correlation"
    )


@pytest.mark.slow
async def test_a_congestion_control_that_is_not_there_is_refused(tun):
    with pytest.raises(NetemError, match="congestion control hope cannot be pinned"):
        async with Network(TWO, backend=TunBackend(), congestion_control="hope"):
            pass


@pytest.mark.slow
async def test_it_is_pinned_in_every_host(tun):
    async with Network(TWO, backend=TunBackend(), congestion_control="reno") as network:
        assert network.facts["congestion_control"] == "reno"
        for host in ("one", "two"):
            file = "/proc/sys/net/ipv4/tcp_congestion_control"
            assert (await network.run(host, ["cat", file])).output == b"reno\n"


@pytest.mark.slow
async def test_an_unknown_host_is_named_with_the_known_ones(tun):
    async with Network(TWO, backend=TunBackend()) as network:
        with pytest.raises(NetemError, match="no host 'three'; there are one, two"):
            network.address("three")
    with pytest.raises(NetemError, match="not up"):
        network.address("one")


@pytest.mark.slow
async def test_a_program_that_hangs_is_ended(tun):
    async with Network(TWO, backend=TunBackend()) as network:
        with pytest.raises(NetemError, match=r"sleep in one did not end within 0\.1 s"):
            await network.run("one", SLEEP, timeout_seconds=0.1)


@pytest.mark.slow
async def test_a_program_that_is_not_there_says_so(tun):
    async with Network(TWO, backend=TunBackend()) as network:
        finished = await network.run("one", ["no-such-program"])
        assert finished.exit_code == 127
        assert b"no-such-program cannot be started" in finished.errors


async def test_a_keeper_that_dies_is_an_error():
    with pytest.raises(NetemError, match="no tun network: it died"):
        async with Network(TWO, backend=TunBackend(keeper=("true",))):
            pass
