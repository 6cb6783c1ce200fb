"""Listening sockets that let in more than one client at a time."""

import asyncio
import os
import socket
import ssl
from collections.abc import Callable
from typing import Final

__all__ = ["listen"]

_BACKLOG: Final = 512
_AT_A_TIME: Final = 16


async def listen(
    make_protocol: Callable[[], asyncio.Protocol],
    host: str,
    port: int,
    *,
    tls: ssl.SSLContext | None = None,
    handshake_seconds: float | None = None,
    reuse_port: bool = False,
) -> list[asyncio.Server]:
    """Listen on every address of a host, in the running loop.

    libuv, on which uvloop stands, takes one connection from a listening socket in each turn of its
    loop (libuv pull request 3696). Where 200 clients keep the loop busy, a turn lasts 10 ms, and
    the last of 200 new ones would wait two seconds before it is so much as let in. So each socket
    is watched several times over, and as many are let in in each turn.

    Args:
        make_protocol: makes a connection's protocol.
        host: name or address.
        port: number; 0 for any that is free.
        tls: the side of the server, if connections are encrypted.
        handshake_seconds: how long such a connection may take to become so.
        reuse_port: let other processes of this user listen there too (SO_REUSEPORT).

    Returns:
        What is to be closed; the sockets of the first are the addresses.

    Raises:
        OSError: it cannot listen there.
    """
    loop = asyncio.get_running_loop()
    handshake = None if tls is None else handshake_seconds
    first = await loop.create_server(
        make_protocol,
        host,
        port,
        backlog=_BACKLOG,
        reuse_address=True,
        reuse_port=reuse_port or None,
        ssl=tls,
        ssl_handshake_timeout=handshake,
    )
    servers = [first]
    try:
        for listening in first.sockets:
            for _ in range(_AT_A_TIME - 1):
                again = await loop.create_server(
                    make_protocol,
                    sock=socket.socket(fileno=os.dup(listening.fileno())),
                    backlog=_BACKLOG,
                    ssl=tls,
                    ssl_handshake_timeout=handshake,
                )
                servers.append(again)
    except BaseException:
        for server in servers:
            server.close()
        raise
    return servers
