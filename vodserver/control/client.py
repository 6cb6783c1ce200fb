"""The side of a command: ask the server that has the store, or be the one that has it."""

import asyncio
import contextlib
import signal
import socket
import threading
from pathlib import Path
from typing import Any

from vodserver.control import address, wire
from vodserver.control.registry import Operation, Progress, find
from vodserver.errors import ControlError
from vodserver.store import open_store

__all__ = ["run_operation"]


def run_operation(
    store: Path, name: str, arguments: dict[str, Any], progress: Progress
) -> dict[str, Any]:
    """Run an operation where the store is open: in the server that has it, or else here.

    Ctrl-C (and a SIGTERM that the caller turned into KeyboardInterrupt) cancels it, waits until
    it has cleaned up, and is raised again.

    Args:
        store: the store's directory.
        name: of the operation, such as "disk add".
        arguments: what can be written as JSON.
        progress: told how far it is.

    Raises:
        ToastError: it failed, with the exit code that a command should have.
    """
    connection = address.connect(store)
    if connection is None:
        return _run_here(store, find(name), arguments, progress)
    with connection:
        return _ask(connection, wire.encode_request(name, arguments), progress)


def _ask(connection: socket.socket, request: bytes, progress: Progress) -> dict[str, Any]:
    try:
        connection.sendall(request)
        with connection.makefile("rb") as answers:
            try:
                return _follow(answers.readline, progress)
            except KeyboardInterrupt:
                # Say that we are going, and see that it has cleaned up before we tell anyone.
                connection.shutdown(socket.SHUT_WR)
                with contextlib.suppress(ControlError):
                    _follow(answers.readline, lambda _: None)
                raise
    except OSError as error:
        raise ControlError(f"the server went away: {error.strerror or error}") from error


def _follow(readline: Any, progress: Progress) -> dict[str, Any]:
    while line := readline(wire.MAX_ANSWER_BYTES):
        kind, content = wire.decode_answer(line)
        if kind == "result":
            return content
        if kind == "error":
            code = content.get("exit_code")
            raise ControlError(
                str(content.get("message", "the operation failed")),
                code if isinstance(code, int) and 0 < code < 256 else 1,
            )
        progress(content)
    raise ControlError("the server ended before the operation did: run the command again")


def _run_here(
    path: Path, chosen: Operation, arguments: dict[str, Any], progress: Progress
) -> dict[str, Any]:
    async def run() -> dict[str, Any]:
        task = asyncio.current_task()
        assert task is not None, "the runner makes one"
        if threading.current_thread() is threading.main_thread():
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
        return await chosen.function(store, arguments, progress)

    with open_store(path) as store, asyncio.Runner() as runner:
        try:
            return runner.run(run())
        except asyncio.CancelledError:
            raise KeyboardInterrupt from None
