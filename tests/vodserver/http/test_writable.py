"""Waiting until sockets take more: once for each wait, whatever becomes of the socket meanwhile."""

import asyncio
import contextlib
import os
import socket
import struct

import pytest
import uvloop

from vodserver.http import writable as module
from vodserver.http.writable import Writable

SECONDS = 10.0


class Pair:
    """Two ends of a connection, of which one may be full."""

    def __init__(self):
        self.here, self.there = socket.socketpair()
        for each in (self.here, self.there):
            each.setblocking(False)
        self.fd = self.here.fileno()

    def fill(self):
        with contextlib.suppress(BlockingIOError):
            while True:
                self.here.send(bytes(65536))

    def drain(self):
        with contextlib.suppress(BlockingIOError):
            while True:
                self.there.recv(1 << 20)

    def close(self):
        self.here.close()
        self.there.close()


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request):
    """Run a test with pairs of sockets on either loop: `run(test, pairs=...)`."""

    def runner(test, pairs=1):
        async def main():
            writable, made = Writable(), [Pair() for _ in range(pairs)]
            try:
                async with asyncio.timeout(SECONDS):
                    await test(writable, *made)
            finally:
                writable.close()
                for pair in made:
                    pair.close()

        factory = uvloop.new_event_loop if request.param == "uvloop" else asyncio.new_event_loop
        with asyncio.Runner(loop_factory=factory) as loop:
            loop.run(main())

    return runner


async def turns(count=5):
    for _ in range(count):
        await asyncio.sleep(0)


async def until(condition):
    while not condition():  # noqa: ASYNC110 - what is tested is when calls come
        await asyncio.sleep(0)


async def told(writable, fd):
    """Wait for a socket once."""
    future = asyncio.get_running_loop().create_future()
    writable.wait(fd, lambda: future.set_result(None))
    assert writable.waits(fd)
    assert not future.done(), "not from within"
    await future
    assert not writable.waits(fd)


def test_it_tells_once_for_each_wait(run):
    async def test(writable, pair):
        calls = []
        for number in range(3):
            writable.wait(pair.fd, lambda number=number: calls.append(number))
            await until(lambda number=number: len(calls) > number)
            await turns()
            assert calls == list(range(number + 1))

    run(test)


def test_a_full_socket_is_told_of_when_it_is_no_longer(run):
    async def test(writable, pair):
        pair.fill()
        calls = []
        writable.wait(pair.fd, lambda: calls.append(1))
        await turns()
        assert calls == []
        pair.drain()
        await until(lambda: calls)

    run(test)


def test_who_waits_anew_from_the_call_is_told_again(run):
    async def test(writable, pair):
        calls = []
        done = asyncio.get_running_loop().create_future()

        def again():
            calls.append(1)
            if len(calls) < 3:
                writable.wait(pair.fd, again)
            else:
                done.set_result(None)

        writable.wait(pair.fd, again)
        await done

    run(test)


def test_what_is_forgotten_is_not_told_and_may_be_waited_for_again(run):
    async def test(writable, pair):
        calls = []
        writable.wait(pair.fd, lambda: calls.append("first"))
        writable.forget(pair.fd)
        writable.forget(pair.fd)
        await turns()
        assert calls == []
        await told(writable, pair.fd)

    run(test)


@pytest.mark.parametrize("how", ["reset", "closed"])
def test_a_connection_that_failed_is_told_of(run, how):
    async def test(writable, pair):
        pair.fill()
        if how == "reset":
            pair.there.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        pair.there.close()
        await told(writable, pair.fd)
        with pytest.raises(ConnectionError):
            pair.here.send(b"x")

    run(test)


def test_one_that_fails_does_not_keep_the_others_from_being_told(run):
    async def test(writable, *pairs):
        failures, calls = [], []
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: failures.append(context["exception"])
        )
        writable.wait(pairs[0].fd, lambda: 1 / 0)
        for pair in pairs[1:]:
            writable.wait(pair.fd, lambda: calls.append(1))
        await until(lambda: len(calls) == len(pairs) - 1)
        assert [type(failure) for failure in failures] == [ZeroDivisionError]

    run(test, pairs=4)


def test_more_than_go_at_a_time_go_in_turns_and_nobody_is_left_out(run, monkeypatch):
    monkeypatch.setattr(module, "_MOST_AT_A_TIME", 2)

    async def test(writable, *pairs):
        order = []
        for turn in (1, 2):
            for number, pair in enumerate(pairs):
                writable.wait(pair.fd, lambda number=number: order.append(number))
            while len(order) < turn * len(pairs):
                before = len(order)
                await asyncio.sleep(0)
                assert len(order) <= before + 2, "others have their turn between"
        assert sorted(order[: len(pairs)]) == sorted(order[len(pairs) :]) == [*range(len(pairs))]

    run(test, pairs=5)


def test_a_descriptor_that_is_used_again_is_another_socket(run):
    """The connection of the first lives on under another descriptor, and takes something."""

    async def test(writable, first, second):
        calls = []
        kept = os.dup(first.fd)
        try:
            writable.wait(first.fd, lambda: calls.append("first"))
            writable.leave(first.fd)
            second.fill()
            os.dup2(second.fd, first.fd)
            writable.wait(first.fd, lambda: calls.append("second"))
            await turns()
            assert calls == []
            second.drain()
            await until(lambda: calls)
            assert calls == ["second"]
            writable.leave(first.fd)
            writable.leave(first.fd)
        finally:
            os.close(kept)

    run(test, pairs=2)


def test_what_is_no_socket_is_an_error(run):
    async def test(writable, pair):
        pair.close()
        with pytest.raises(OSError, match="Bad file descriptor"):
            writable.wait(pair.fd, lambda: None)
        assert not writable.waits(pair.fd)

    run(test)


def test_closing_it_leaves_nothing_in_the_loop(run):
    async def test(writable, pair):
        calls = []
        writable.wait(pair.fd, lambda: calls.append(1))
        writable.close()
        writable.close()
        await turns()
        assert calls == []
        assert not writable.waits(pair.fd)

    run(test)
