"""The conversation with mpv, over a real pair of sockets, with a test as mpv."""

import asyncio
import contextlib
import json
import socket

import pytest

from toast.gateway.players.errors import MpvRefusal
from toast.gateway.players.ipc import MpvConnection


@contextlib.asynccontextmanager
async def connected():
    """(connection, its listening, mpv's reader and writer, events)."""
    ours, theirs = socket.socketpair()
    events = []
    connection = await MpvConnection.open(ours, events.append)
    reader, writer = await asyncio.open_connection(sock=theirs)
    listening = asyncio.create_task(connection.listen())
    try:
        yield connection, listening, reader, writer, events
    finally:
        listening.cancel()
        writer.close()
        await asyncio.gather(listening, return_exceptions=True)


def say(writer, **message):
    writer.write(json.dumps(message).encode() + b"\n")


async def test_answers_find_their_commands_in_any_order():
    async with connected() as (connection, _, reader, writer, _):
        first = asyncio.create_task(connection.command("get_property", "time-pos"))
        second = asyncio.create_task(connection.command("set_property", "pause", True))
        commands = [json.loads(await reader.readline()) for _ in range(2)]
        assert [each["command"][0] for each in commands] == ["get_property", "set_property"]
        say(writer, request_id=commands[1]["request_id"], error="success")
        say(writer, request_id=commands[0]["request_id"], error="success", data=4.5)
        assert await first == 4.5
        assert await second is None


async def test_a_no_is_raised_with_mpv_s_word():
    async with connected() as (connection, _, reader, writer, _):
        asked = asyncio.create_task(connection.command("get_property", "time-pos"))
        number = json.loads(await reader.readline())["request_id"]
        say(writer, request_id=number, error="property unavailable")
        with pytest.raises(MpvRefusal, match="property unavailable"):
            await asked


async def test_events_are_told_and_nonsense_is_not():
    async with connected() as (_, listening, _, writer, events):
        say(writer, event="seek")
        for nonsense in (b"{\xff}\n", b"[1]\n", b"\n", b'{"request_id": 77, "error": "x"}\n', b"{"):
            writer.write(nonsense)
        writer.write(b'}\n{"event": "idle"}\n')
        writer.close()
        await listening
        assert events == [{"event": "seek"}, {"event": "idle"}]


async def test_when_mpv_goes_whoever_waits_is_told():
    async with connected() as (connection, listening, reader, writer, _):
        asked = asyncio.create_task(connection.command("get_property", "time-pos"))
        await reader.readline()
        writer.close()
        with pytest.raises(MpvRefusal, match="gone"):
            await asked
        await listening
        with pytest.raises(MpvRefusal, match="gone"):
            await connection.command("get_property", "pause")


async def test_a_line_without_an_end_ends_the_conversation():
    async with connected() as (connection, listening, _, writer, _):
        with contextlib.suppress(ConnectionError):
            for _ in range(40):
                writer.write(b"x" * 100_000)
                await writer.drain()
        await asyncio.wait_for(listening, 5)
        with pytest.raises(MpvRefusal, match="gone"):
            await connection.command("quit")


async def test_an_mpv_that_says_nothing_is_not_waited_for_for_ever(monkeypatch):
    monkeypatch.setattr("toast.gateway.players.ipc._ANSWER_SECONDS", 0.01)
    async with connected() as (connection, _, _, _, _):
        with pytest.raises(MpvRefusal, match="does not answer"):
            await connection.command("get_property", "pause")
