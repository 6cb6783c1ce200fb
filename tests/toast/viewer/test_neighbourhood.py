"""Announcing and choosing: a real tracker, a fake swarm and a policy that does as it is told."""

import asyncio
import math
import socket

import aiohttp
import numpy as np
import pytest
from aiohttp import web

from tests.toast.viewer.around import PIECES, Complete, FakeSwarm, Obedient, Watching
from tests.toast.viewer.conftest import Tracker, next_host
from toast.swarm import SessionSettings, SwarmSession
from toast.viewer.neighbourhood import Neighbourhood

A, B, C = (("127.47.0.1", port) for port in (1, 2, 3))
INFO_HASH = bytes(range(20))


@pytest.fixture
async def tracker():
    running = Tracker()
    await running.start()
    yield running
    await running.stop()


@pytest.fixture
async def around():
    """Make a neighbourhood and let it run: `neighbourhood, swarm = await around(...)`."""
    session = SwarmSession(SessionSettings(listen_host=next_host()))
    await session.wait_listening()
    tasks = []
    async with aiohttp.ClientSession() as http:

        async def make(policy, *trackers, watching=None, run=True, session=session, **options):
            neighbourhood = Neighbourhood(
                session,
                http=http,
                trackers=trackers,
                info_hash=INFO_HASH,
                policy=policy,
                rng=np.random.default_rng(1),
                **options,
            )
            neighbourhood.session = session
            swarm = FakeSwarm()
            if run:
                coroutine = neighbourhood.run(watching or Watching(), swarm)
                tasks.append(asyncio.create_task(coroutine))
                neighbourhood.task = tasks[-1]
            return neighbourhood, swarm

        yield make
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    await session.close()


async def test_the_first_neighbours_are_known_before_the_swarm_is_joined(around, tracker):
    tracker.add(A, playhead=20_000)
    tracker.add(B)
    _, swarm = await around(Obedient(A), tracker.url)
    await swarm.until(lambda: swarm.started_with is not None)
    assert swarm.started_with == (A,)


async def test_the_policy_hears_what_the_tracker_told(around, tracker):
    tracker.add(A, playhead=20_000)
    tracker.add(B, complete=1, peer_id=b"-LT20F0-" + b"x" * 12)
    tracker.add(C, complete=1, peer_id=b"-TV0100-" + b"x" * 12)
    policy = Obedient()
    _, swarm = await around(policy, tracker.url)
    await swarm.until(lambda: swarm.started_with is not None)
    position, candidates, connected, useful, need = policy.calls[0]
    ahead, done, seed = candidates
    assert (position, need, connected, useful) == (12.5, 3.0, set(), {})
    assert ahead.position == pytest.approx(20.0, abs=1.0)
    assert ahead.position >= 20.0  # it has gone on playing since the tracker answered
    assert (done.position, done.complete, done.operator) == (None, True, False)
    assert (seed.complete, seed.operator) == (True, True)
    assert swarm.operators == {C}


async def test_the_announces_tell_where_we_are_and_say_hello_and_goodbye(around, tracker):
    neighbourhood, swarm = await around(Obedient(), tracker.url)
    await swarm.until(lambda: swarm.started_with is not None)
    neighbourhood.task.cancel()
    await asyncio.gather(neighbourhood.task, return_exceptions=True)
    assert tracker.events() == ["started", "stopped"]
    first = tracker.announces[0]
    assert (first["uploaded"], first["downloaded"], first["left"]) == ("10", "20", "1234")
    assert float(first["playhead"]) == 12.5


async def test_a_position_that_means_nothing_yet_is_not_told(around, tracker):
    watching = Watching()
    watching.is_announcing_playhead = False
    _, swarm = await around(Obedient(), tracker.url, watching=watching)
    await swarm.until(lambda: swarm.started_with is not None)
    assert "playhead" not in tracker.announces[0]


async def test_without_a_tracker_the_swarm_is_joined_at_once(around):
    neighbourhood, swarm = await around(Obedient())
    await swarm.until(lambda: swarm.started_with is not None)
    assert swarm.started_with == ()
    assert neighbourhood.lead_seconds(0.0) == math.inf


async def test_udp_trackers_are_libtorrent_s_business(around):
    _, swarm = await around(Obedient(), "udp://tracker.example:6969/announce")
    await swarm.until(lambda: swarm.started_with is not None)
    assert swarm.udp == ["udp://tracker.example:6969/announce"]


async def test_one_tracker_that_fails_does_not_silence_the_other(around, tracker):
    broken = Tracker()
    await broken.start()
    broken.failure = b"closed for good"
    tracker.add(A)
    _, swarm = await around(Obedient(A), broken.url, tracker.url)
    await swarm.until(lambda: swarm.started_with is not None)
    assert swarm.started_with == (A,)
    assert broken.events() == ["started"]
    await broken.stop()


async def test_what_a_tracker_has_against_us_is_known(around, tracker):
    tracker.failure = b"closed for good"
    neighbourhood, swarm = await around(Obedient(A), tracker.url)
    await swarm.until(lambda: swarm.started_with is not None)
    assert "closed for good" in neighbourhood.last_error


@pytest.mark.slow
async def test_a_tracker_that_hangs_does_not_hold_the_film_up(around):
    async def hang(reader, writer):
        await reader.read()
        writer.close()

    server = await asyncio.start_server(hang, next_host(), 0)
    host, port = server.sockets[0].getsockname()
    loop = asyncio.get_running_loop()
    began = loop.time()
    neighbourhood, swarm = await around(
        Obedient(), f"http://{host}:{port}/announce", patience_seconds=0.1
    )
    await swarm.until(lambda: swarm.started_with is not None)
    assert loop.time() - began < 1.0
    neighbourhood.task.cancel()
    async with asyncio.timeout(3):  # nor the end of it
        await asyncio.gather(neighbourhood.task, return_exceptions=True)
    server.close()
    await server.wait_closed()


async def test_two_who_need_nothing_do_not_meet(around, tracker):
    tracker.add(A, complete=1)
    tracker.add(B, playhead=20_000)
    tracker.add(C, complete=1, peer_id=b"-TV0100-" + b"x" * 12)
    policy = Obedient(A, B, C)
    _, swarm = await around(policy, tracker.url, watching=Complete())
    await swarm.until(lambda: swarm.started_with is not None)
    assert swarm.started_with == (B,)


async def test_two_who_need_nothing_part(around, tracker):
    neighbourhood, swarm, _ = await chosen(around, tracker, Obedient(), A, B)
    lacking = {"pieces": np.array([True] * (PIECES - 1) + [False])}
    done, seed, taker = ("127.47.0.2", 1), ("127.47.0.3", 1), ("127.47.0.4", 1)
    beside = (taker[0], 2)
    swarm.connected = [done, seed, taker, beside]
    swarm.showing = {seed: lacking | {"operator": True}, taker: lacking}
    neighbourhood._choose(Watching(), swarm)
    assert swarm.hung_up_on == []
    neighbourhood._choose(Complete(), swarm)
    assert set(swarm.hung_up_on) == {done, seed}  # `beside` would take `taker` with it


@pytest.mark.slow
async def test_who_needs_nothing_takes_it_easy(around, tracker):
    neighbourhood, swarm = await around(Obedient(), tracker.url)

    def pace():
        settings = neighbourhood.session.native.get_settings()
        return settings["min_reconnect_time"], settings["tick_interval"]

    await swarm.until(lambda: swarm.started_with is not None)
    assert pace() == (1, 50)
    _, done = await around(Obedient(), tracker.url, watching=Complete())
    await done.until(lambda: done.started_with is not None)
    await asyncio.sleep(0)
    assert pace() == (1, 50)  # one of two films lacks something
    neighbourhood.task.cancel()
    await asyncio.gather(neighbourhood.task, return_exceptions=True)
    assert pace() == (60, 200)


@pytest.mark.slow
@pytest.mark.parametrize(("watching", "times"), [(Watching(), {1, 2}), (Complete(), {0})])
async def test_in_a_crowd_nobody_chooses_at_each_who_comes_or_goes(
    around, tracker, watching, times
):
    policy = Obedient()
    neighbourhood, swarm = await around(policy, tracker.url, watching=watching)
    await swarm.until(lambda: swarm.started_with is not None)
    await asyncio.sleep(0.05)  # its first choices
    calls = len(policy.calls)
    for _ in range(20):
        neighbourhood.wake()
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.1)
    assert len(policy.calls) - calls in times


@pytest.mark.slow
async def test_when_someone_leaves_another_is_chosen_at_once(around, tracker):
    tracker.add(A)
    tracker.add(B)
    policy = Obedient(A)
    neighbourhood, swarm = await around(policy, tracker.url)
    await swarm.until(lambda: swarm.started_with == (A,))
    swarm.connected = [A]
    neighbourhood.wake()
    policy.wanted = (B,)
    neighbourhood.wake()
    await swarm.until(lambda: swarm.asked == [B])


@pytest.mark.slow
async def test_whom_we_are_just_connecting_to_is_not_asked_again(around, tracker):
    tracker.add(A)
    policy = Obedient(A)
    neighbourhood, swarm = await around(policy, tracker.url)
    await swarm.until(lambda: swarm.started_with == (A,))
    calls = len(policy.calls)
    neighbourhood.wake()
    async with asyncio.timeout(5):
        while len(policy.calls) < calls + 1:
            await asyncio.sleep(0)
            neighbourhood.wake()
    assert swarm.asked == []
    assert policy.calls[-1][2] == {A}


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


async def test_one_that_never_answered_is_left_alone_for_a_while(around, tracker):
    """Then it is a candidate again: it may have come back."""
    tracker.add(A)
    clock = Clock()
    policy = Obedient(A)
    neighbourhood, swarm = await around(policy, tracker.url, run=False, clock=clock)
    watching = Watching()
    await neighbourhood._announce_all(watching, event="started")
    assert neighbourhood._choose(watching, swarm) == (A,)
    clock.now += 3.0
    assert neighbourhood._choose(watching, swarm) == ()
    assert policy.calls[-1][1] == []
    clock.now += 30.0
    assert neighbourhood._choose(watching, swarm) == (A,)


async def test_whom_no_tracker_names_any_more_is_forgotten(around, tracker):
    tracker.add(A)
    clock = Clock()
    policy = Obedient(A, B)
    neighbourhood, swarm = await around(policy, tracker.url, run=False, clock=clock)
    await neighbourhood._announce_all(Watching(), event="started")
    tracker.peers.clear()
    tracker.add(B)
    clock.now += 1.0
    await neighbourhood._announce_all(Watching(), event="")
    neighbourhood._choose(Watching(), swarm)
    assert {candidate.address for candidate in policy.calls[-1][1]} == {A, B}
    clock.now += 1000.0
    await neighbourhood._announce_all(Watching(), event="")
    neighbourhood._choose(Watching(), swarm)
    assert {candidate.address for candidate in policy.calls[-1][1]} == {B}


async def test_a_tracker_that_names_new_ones_for_ever_fills_no_memory(around, tracker):
    neighbourhood, swarm = await around(Obedient(), tracker.url, run=False)
    for batch in range(5):
        tracker.peers.clear()
        for port in range(1, 401):
            tracker.add((f"127.49.{batch}.1", port))
        await neighbourhood._announce_all(Watching(), event="")
        neighbourhood._choose(Watching(), swarm)
    assert len(neighbourhood._known) <= 1000
    assert ("127.49.4.1", 400) in neighbourhood._known


async def test_a_position_ages_with_the_clock(around, tracker):
    tracker.add(A, playhead=20_000)
    clock = Clock()
    policy = Obedient()
    neighbourhood, swarm = await around(policy, tracker.url, run=False, clock=clock)
    await neighbourhood._announce_all(Watching(), event="started")
    clock.now += 10.0
    neighbourhood._choose(Watching(), swarm)
    assert policy.calls[-1][1][0].position == 30.0


async def test_the_lead_of_the_foremost_neighbour(around, tracker):
    """0 while neighbours are expected, +inf if nobody watches ahead of us."""
    tracker.add(A, playhead=20_000)
    tracker.add(B, playhead=50_000)
    tracker.add(C, playhead=90_000, peer_id=b"-TV0100-" + b"x" * 12)
    clock = Clock()
    neighbourhood, swarm = await around(Obedient(A, B), tracker.url, run=False, clock=clock)
    assert neighbourhood.lead_seconds(10.0) == 0.0
    await neighbourhood._announce_all(Watching(), event="started")
    neighbourhood._choose(Watching(), swarm)
    assert neighbourhood.lead_seconds(10.0) == 0.0
    swarm.connected = [A, B, C]
    neighbourhood._choose(Watching(), swarm)
    assert neighbourhood.lead_seconds(10.0) == 40.0
    assert neighbourhood.lead_seconds(60.0) == math.inf
    swarm.connected = [A]
    neighbourhood._choose(Watching(), swarm)
    assert neighbourhood.lead_seconds(10.0) == 0.0  # the other one may come back
    clock.now += 3.0
    neighbourhood._choose(Watching(), swarm)
    assert neighbourhood.lead_seconds(10.0) == pytest.approx(13.0)  # and the first played on


async def test_those_at_the_same_moment_are_counted(around, tracker):
    for address, playhead in ((A, 10_000), (B, 10_400), (C, 9_700), (("127.0.0.4", 4), 40_000)):
        tracker.add(address, playhead=playhead)
    neighbourhood, swarm = await around(Obedient(), tracker.url, run=False, clock=Clock())
    await neighbourhood._announce_all(Watching(), event="started")
    for position, together in ((10.0, 4), (12.0, 1), (40.0, 1)):
        watching = Watching()
        watching.own_position = position
        neighbourhood._choose(watching, swarm)
        assert neighbourhood.together == together


async def test_one_who_has_come_does_not_end_the_hope_for_another(around, tracker):
    tracker.add(A, playhead=0)
    tracker.add(B, playhead=50_000)
    neighbourhood, swarm = await around(Obedient(A, B), tracker.url, run=False, clock=Clock())
    await neighbourhood._announce_all(Watching(), event="started")
    neighbourhood._choose(Watching(), swarm)
    swarm.connected = [A]
    neighbourhood._choose(Watching(), swarm)
    assert neighbourhood.lead_seconds(10.0) == 0.0


async def chosen(around, tracker, policy, *known):
    """A neighbourhood that knows some peers, its swarm and its clock; nothing runs by itself."""
    for address in known:
        tracker.add(address)
    clock = Clock()
    neighbourhood, swarm = await around(policy, tracker.url, run=False, clock=clock)
    await neighbourhood._announce_all(Watching(), event="started")
    return neighbourhood, swarm, clock


def offered(policy):
    return {candidate.address for candidate in policy.calls[-1][1]}


async def test_who_does_not_answer_at_once_is_waited_for_but_not_relied_on(around, tracker):
    policy = Obedient(A)
    neighbourhood, swarm, clock = await chosen(around, tracker, policy, A, B)
    assert neighbourhood._choose(Watching(), swarm) == (A,)
    clock.now += 0.2
    neighbourhood._choose(Watching(), swarm)
    assert policy.calls[-1][2] == {A}
    clock.now += 0.3
    policy.wanted = (B,)
    assert neighbourhood._choose(Watching(), swarm) == (B,)
    assert (offered(policy), policy.calls[-1][2]) == ({B}, set())
    swarm.connected = [A]  # late, and welcome
    neighbourhood._choose(Watching(), swarm)
    assert A in policy.calls[-1][2]


async def test_that_nobody_is_there_is_known_at_once_and_not_after_a_while(around, tracker):
    policy = Obedient(A)
    neighbourhood, swarm, clock = await chosen(around, tracker, policy, A, B)
    neighbourhood._choose(Watching(), swarm)
    swarm.left = {A}
    clock.now += 0.01
    neighbourhood._choose(Watching(), swarm)
    assert (offered(policy), policy.calls[-1][2]) == ({B}, set())


async def test_the_silent_are_hung_up_on_and_not_called_for_a_while(around, tracker):
    policy = Obedient()
    neighbourhood, swarm, clock = await chosen(around, tracker, policy, A, B)
    swarm.connected = [A]
    swarm.showing = {A: {"requests": 3}}
    for _ in range(6):
        neighbourhood._choose(Watching(), swarm)
        clock.now += 1.0
    assert swarm.hung_up_on[:1] == [A]
    swarm.connected = []
    neighbourhood._choose(Watching(), swarm)
    assert offered(policy) == {B}
    clock.now += 61.0
    neighbourhood._choose(Watching(), swarm)
    assert offered(policy) == {A, B}


async def test_the_weak_stay_and_fill_no_place(around, tracker):
    policy = Obedient()
    neighbourhood, swarm, clock = await chosen(around, tracker, policy, A, B)
    swarm.connected = [A]
    for second in range(8):
        swarm.showing = {A: {"requests": 3, "received_bytes": 10 * second}}
        neighbourhood._choose(Watching(), swarm)
        clock.now += 1.0
    assert swarm.hung_up_on == []
    assert offered(policy) == {B}
    assert policy.calls[-1][2] == {A}
    assert neighbourhood.lead_seconds(0.0) == math.inf  # nobody waits for what it may bring


@pytest.mark.parametrize("is_wanted", [True, False])
async def test_who_has_nothing_for_us_may_keep_us_waiting(around, tracker, is_wanted):
    neighbourhood, swarm, clock = await chosen(around, tracker, Obedient(), A, B)
    swarm.connected = [A]
    swarm.showing = {A: {"choking_us": True, "is_wanted": is_wanted}}
    for _ in range(8):
        neighbourhood._choose(Watching(), swarm)
        clock.now += 1.0
    assert (A in neighbourhood._patience_with.weak) == is_wanted


async def test_who_has_lied_is_not_chosen(around, tracker):
    policy = Obedient()
    neighbourhood, swarm, _ = await chosen(around, tracker, policy, A, B, ("127.47.0.2", 1))
    swarm.banned = frozenset({A})
    neighbourhood._choose(Watching(), swarm)
    assert offered(policy) == {B, ("127.47.0.2", 1)}
    swarm.banned_hosts = frozenset({A[0]})
    neighbourhood._choose(Watching(), swarm)
    assert offered(policy) == {("127.47.0.2", 1)}


async def test_a_machine_with_both_kinds_of_address_tells_the_tracker_of_both(
    around, tracker, monkeypatch
):
    """BEP 7: whoever has only IPv6 finds it too. Goodbye is said over both as well."""
    port = int(tracker.url.rpartition(":")[2].partition("/")[0])
    here = web.TCPSite(tracker._runner, "::1", port)
    await here.start()
    by_name = {
        socket.AF_INET: (tracker.url.rpartition("/")[0].removeprefix("http://").partition(":")[0],),
        socket.AF_INET6: ("::1",),
    }
    asked = []

    async def getaddrinfo(host, port, *, family=0, **_):
        asked.append(host)
        return [(family, socket.SOCK_STREAM, 6, "", (*by_name[family], port))]

    loop = asyncio.get_running_loop()
    real = loop.getaddrinfo

    async def looked_up(host, *arguments, **options):
        wanted = getaddrinfo if host == "tracker.example" else real
        return await wanted(host, *arguments, **options)

    monkeypatch.setattr(loop, "getaddrinfo", looked_up)
    everywhere = SwarmSession(SessionSettings(port_mapping=False))
    await everywhere.wait_listening()
    neighbourhood, _ = await around(
        Obedient(), f"http://tracker.example:{port}/announce", run=False, session=everywhere
    )
    await neighbourhood._announce_all(Watching(), event="started")
    await asyncio.gather(*neighbourhood._telling)
    await neighbourhood._announce_all(Watching(), event="stopped")
    assert tracker.events() == ["started", "started", "stopped", "stopped"]
    assert sorted(set(tracker.callers)) == ["127.0.0.1", "::1"]
    assert {announce["port"] for announce in tracker.announces} == {str(everywhere.port)}
    assert asked == ["tracker.example"] * 4
    await everywhere.close()
