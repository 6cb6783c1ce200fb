"""The socket from a command's side."""

import asyncio
import contextlib
import signal
import socket
import threading

import pytest

from vodserver.control import run_operation
from vodserver.control.address import bind, connect
from vodserver.control.client import _ask
from vodserver.errors import ControlError, ControlUsageError, StoreError, StoreUsageError
from vodserver.store import open_store


def ask(path, name, arguments=None, progress=lambda _: None):
    return asyncio.to_thread(run_operation, path, name, arguments or {}, progress)


async def test_the_running_server_does_it(served):
    assert await ask(served, "count", {"to": 0}) == {"disks": 2}


async def test_its_errors_keep_their_exit_code(served):
    with pytest.raises(ControlError, match="not like this") as caught:
        await ask(served, "refuse")

    assert caught.value.exit_code == 2


def test_without_a_server_it_is_done_here(store_path, log):
    seen = []

    assert run_operation(store_path, "count", {"to": 2}, seen.append) == {"disks": 2}
    assert seen == [{"n": 0}, {"n": 1}]
    open_store(store_path).close()  # it is free again


def test_an_error_here_is_the_error_itself(store_path, log):
    with pytest.raises(StoreUsageError):
        run_operation(store_path, "refuse", {}, print)


def test_a_store_that_another_has_without_serving_it_is_in_use(store_path, log):
    with open_store(store_path), pytest.raises(StoreError, match="in use by process"):
        run_operation(store_path, "count", {"to": 0}, print)


def test_there_is_no_store(tmp_path, log):
    with pytest.raises(StoreUsageError, match="there is no store"):
        run_operation(tmp_path / "none", "count", {"to": 0}, print)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_here_cleans_up_first(store_path, log, number):
    with pytest.raises(KeyboardInterrupt):
        run_operation(store_path, "wait", {}, lambda _: signal.raise_signal(number))

    assert log == ["cleaned up"]
    open_store(store_path).close()


async def test_an_interrupted_client_waits_until_the_server_has_cleaned_up(served, log):
    def interrupt(_):
        raise KeyboardInterrupt

    with pytest.raises(ControlError, match="caught"):
        await asyncio.to_thread(_as_control_error, served, interrupt)

    assert log == ["cleaned up"]


def _as_control_error(path, progress):
    """A KeyboardInterrupt that left a thread would end the test run."""
    try:
        run_operation(path, "wait", {}, progress)
    except KeyboardInterrupt:
        raise ControlError("caught") from None


async def test_a_request_that_is_too_long_is_not_sent(served):
    with pytest.raises(ControlUsageError, match="longer"):
        await ask(served, "count", {"to": "x" * 100_000})


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (b"", "ended before"),
        (b'{"progress": {}}\n', "ended before"),
        (b"hello\n", "none"),
        (b'{"result": 5}\n', "none"),
        (b'{"result": {}, "error": {}}\n', "none"),
        (b'{"error": {"message": "no", "exit_code": 0}}\n', "no"),
    ],
)
def test_a_server_that_answers_nonsense_is_an_error_in_words(answer, message):
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(answer)
        theirs.shutdown(socket.SHUT_WR)
        with pytest.raises(ControlError, match=message) as caught:
            _ask(ours, b"{}\n", lambda _: None)
    assert caught.value.exit_code == 1


def test_a_server_that_does_not_accept_is_given_up(store_path, monkeypatch):
    monkeypatch.setattr("vodserver.control.address._CONNECT_SECONDS", 0.01)
    with bind(store_path) as bound, contextlib.ExitStack() as held:
        bound.listen(0)
        with pytest.raises(ControlError, match="cannot reach the server"):
            _connect_often(store_path, held)


def _connect_often(path, held):
    for _ in range(100):
        held.enter_context(connect(path))


def test_a_signal_handler_is_only_set_where_python_lets_it_be(store_path, log):
    """Called from another thread, it works without."""
    results = []
    thread = threading.Thread(
        target=lambda: results.append(run_operation(store_path, "count", {"to": 0}, print))
    )
    thread.start()
    thread.join(10)

    assert results == [{"disks": 2}]
