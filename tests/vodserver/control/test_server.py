"""The socket from the server's side: what it answers, refuses and survives."""

import asyncio
import stat
import sys
from pathlib import Path

import pytest
import uvloop

from vodserver.control import ControlServer
from vodserver.control import server as server_module
from vodserver.control.address import SOCKET_NAME, bind, connect
from vodserver.control.wire import MAX_REQUEST_BYTES
from vodserver.errors import ControlError
from vodserver.store import open_store


async def test_progress_comes_before_the_result(served, talk):
    client = await talk(served)
    await client.say({"operation": "count", "arguments": {"to": 2}})

    assert await client.hear() == {"progress": {"n": 0}}
    assert await client.hear() == {"progress": {"n": 1}}
    assert await client.hear() == {"result": {"disks": 2}}
    assert await client.hear() is None
    await client.close()


async def test_the_status_says_what_the_server_says_besides(served, talk):
    client = await talk(served)
    await client.say({"operation": "status"})

    assert await client.hear() == {
        "result": {"titles": 0, "server": {"url": "http://films.example", "operation": None}}
    }
    await client.close()


async def test_only_the_owner_may_open_the_socket(served):
    mode = (served / SOCKET_NAME).stat().st_mode

    assert stat.S_ISSOCK(mode)
    assert stat.S_IMODE(mode) == 0o600


async def test_an_error_is_one_line_with_the_exit_code_of_its_kind(served, talk):
    client = await talk(served)
    await client.say({"operation": "refuse"})

    assert await client.hear() == {"error": {"message": "not like this", "exit_code": 2}}
    await client.close()


async def test_an_operation_that_breaks_is_told_without_its_inside(served, talk, caplog):
    client = await talk(served)
    await client.say({"operation": "fail"})

    answer = await client.hear()
    assert "see the server's log" in answer["error"]["message"]
    assert "inner" not in answer["error"]["message"]
    assert "inner matters" in caplog.text
    await client.close()


async def test_hanging_up_cancels_and_waits_for_the_cleaning_up(served, talk, log):
    client = await talk(served)
    await client.say({"operation": "wait"})
    await client.hear()

    client.writer.write_eof()

    assert await client.hear() == {"error": {"message": "interrupted", "exit_code": 130}}
    assert log == ["cleaned up"]
    await client.close()


async def test_one_operation_that_changes_things_at_a_time(served, talk):
    first, second, third = [await talk(served) for _ in range(3)]
    await first.say({"operation": "wait"})
    await first.hear()

    await second.say({"operation": "wait"})
    assert "'wait' is under way" in (await second.hear())["error"]["message"]
    await third.say({"operation": "count", "arguments": {"to": 0}})
    assert "result" in await third.hear()

    first.writer.write_eof()
    assert "error" in await first.hear()
    again = await talk(served)
    await again.say({"operation": "wait"})
    assert "progress" in await again.hear()
    for client in (first, second, third, again):
        await client.close()


@pytest.mark.parametrize(
    "line",
    [
        b"\n",
        b"GET / HTTP/1.1\r\n",
        b"[" * 60000 + b"\n",
        b'{"operation": 5}\n',
        b'{"operation": "count", "arguments": []}\n',
        b'{"operation": "count", "arguments": {"to": NaN}}\n',
        b'{"operation": "rm -rf"}\n',
        b'{"operation": "' + b"x" * 50000 + b'"}\n',
        b"\xff\xfe\n",
        b"x" * (2 * MAX_REQUEST_BYTES) + b"\n",
    ],
    ids=["empty", "http", "deep", "name", "list", "nan", "unknown", "long", "bytes", "endless"],
)
async def test_what_is_no_request_gets_one_line_and_the_server_goes_on(served, talk, line):
    client = await talk(served)
    await client.say(line)

    answer = await client.hear()
    assert answer["error"]["exit_code"] == 2
    assert len(answer["error"]["message"]) < 200
    await client.close()
    after = await talk(served)
    await after.say({"operation": "count", "arguments": {"to": 0}})
    assert "result" in await after.hear()
    await after.close()


async def test_who_says_nothing_is_not_waited_for(served, talk, monkeypatch):
    monkeypatch.setattr(server_module, "_REQUEST_SECONDS", 0.01)
    client = await talk(served)

    assert "no request came" in (await client.hear())["error"]["message"]
    await client.close()


async def test_connections_are_bounded(served, talk):
    many = [await talk(served) for _ in range(server_module.MAX_CONNECTIONS)]
    one_more = await talk(served)

    assert "too many" in (await one_more.hear())["error"]["message"]
    for client in (*many, one_more):
        await client.close()


async def test_who_does_not_read_costs_bounded_memory(served, talk):
    """Progress that is not read is left out; the result comes all the same."""
    client = await talk(served)
    await client.say({"operation": "count", "arguments": {"to": 100_000}})
    heard = []
    while answer := await client.hear():
        heard.append(answer)

    assert heard[-1] == {"result": {"disks": 2}}
    assert 100 < len(heard) < 50_000
    await client.close()


async def test_closing_the_server_ends_what_runs(store_path, log, talk):
    with open_store(store_path) as store:
        server = ControlServer(store)
        await server.start()
        client = await talk(store_path)
        await client.say({"operation": "wait"})
        await client.hear()

        await server.close()

        assert "being stopped" in (await client.hear())["error"]["message"]
        assert log == ["cleaned up"]
        assert not (store_path / SOCKET_NAME).exists()
        await client.close()


async def test_a_socket_that_a_killed_server_left_is_replaced(store_path, log, talk):
    bind(store_path).close()
    assert (store_path / SOCKET_NAME).exists()
    assert connect(store_path) is None

    with open_store(store_path) as store:
        server = ControlServer(store)
        await server.start()
        client = await talk(store_path)
        await client.say({"operation": "count", "arguments": {"to": 0}})
        assert "result" in await client.hear()
        await client.close()
        await server.close()


async def test_a_directory_in_the_place_of_the_socket_is_an_error_in_words(store_path):
    (store_path / SOCKET_NAME).mkdir()
    with open_store(store_path) as store, pytest.raises(ControlError, match=r"control\.sock"):
        await ControlServer(store).start()


def descriptors():
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.skipif(sys.platform != "linux", reason="descriptors have names on Linux")
async def test_the_path_may_be_as_long_as_a_path_may_be(tmp_path, talk, log):
    from vodserver.store import create_store  # noqa: PLC0415 - this one's alone

    deep = tmp_path.joinpath(*(["d" * 60] * 5))
    create_store(deep / "store", [tmp_path / "a", tmp_path / "b"])
    before = descriptors()
    with open_store(deep / "store") as store:
        server = ControlServer(store)
        await server.start()
        client = await talk(deep / "store")
        await client.say({"operation": "count", "arguments": {"to": 0}})
        assert "result" in await client.hear()
        await client.close()
        await server.close()
    await asyncio.sleep(0)
    assert descriptors() == before


def test_it_works_in_the_loop_that_serves(store_path, log):
    """uvloop has streams of its own."""

    async def converse():
        from vodserver.control.client import run_operation  # noqa: PLC0415 - in its thread

        with open_store(store_path) as store:
            server = ControlServer(store)
            await server.start()
            seen = []
            result = await asyncio.to_thread(
                run_operation, store_path, "count", {"to": 3}, seen.append
            )
            await server.close()
        return result, seen

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        result, seen = runner.run(converse())

    assert result == {"disks": 2}
    assert seen == [{"n": 0}, {"n": 1}, {"n": 2}]
