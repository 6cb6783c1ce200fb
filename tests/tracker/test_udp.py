"""The UDP tracker on real sockets of loopback."""

import asyncio
import socket
import struct

import pytest
from yarl import URL

from tracker import udp_codec
from tracker.server import serve_tracker
from tracker.settings import TrackerSettings
from tracker.state import Swarms
from tracker.udp_codec import UdpAnnounce

WISH = UdpAnnounce(b"f" * 20, b"p" * 20, 0, 100, 0, 2, 0, 0, -1, 6881)


class Asker(asyncio.DatagramProtocol):
    """A client that asks and waits for the next datagram."""

    def __init__(self):
        self.came = asyncio.Queue()

    def connection_made(self, transport):
        self.transport = transport

    def datagram_received(self, data, addr):
        self.came.put_nowait(data)

    async def ask(self, datagram):
        self.transport.sendto(datagram)
        async with asyncio.timeout(30):
            return await self.came.get()

    async def announce(self, **changes):
        connected = await self.ask(udp_codec.encode_connect_request(5))
        connection_id = struct.unpack(">IIQ", connected)[2]
        wish = WISH._replace(**changes)
        return await self.ask(udp_codec.encode_announce_request(connection_id, 6, wish))


@pytest.fixture
async def asker():
    opened = []

    async def asker(server):
        url = URL(server.url)
        transport, protocol = await asyncio.get_running_loop().create_datagram_endpoint(
            Asker, remote_addr=(url.host, url.port)
        )
        opened.append(transport)
        return protocol

    yield asker
    for transport in opened:
        transport.close()


@pytest.mark.parametrize(
    ("host", "packed"), [("127.0.0.1", bytes([127, 0, 0, 1])), ("::1", bytes(15) + b"\1")]
)
async def test_clients_meet_over_udp(host, packed, asker):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((host, 0))
    except OSError as error:
        pytest.skip(f"no {host} here: {error}")
    async with serve_tracker(TrackerSettings(host=host, port=0), seed=1) as server:
        assert server.udp_announce_url == server.announce_url.replace("http:", "udp:")
        client = await asker(server)
        assert len(await client.announce(port=7001)) == 20
        answer = await client.announce(port=7002, peer_id=b"q" * 20)
        assert answer[20:] == packed + (7001).to_bytes(2, "big")
        numbers = server.statistics()
        assert (numbers["udp_connects"], numbers["udp_announces"], numbers["peers"]) == (2, 2, 2)
        assert numbers["udp_bytes_received"] == 2 * 16 + 2 * 98
        assert numbers["udp_bytes_sent"] == numbers["bytes_sent"] == 2 * 16 + 20 + len(answer)


async def test_more_datagrams_than_are_read_at_once_are_all_answered(asker):
    async with serve_tracker(TrackerSettings(port=0), seed=1) as server:
        client = await asker(server)
        for number in range(200):
            client.transport.sendto(udp_codec.encode_connect_request(number))
        seen = {struct.unpack(">IIQ", await client.came.get())[1] for _ in range(200)}
        assert seen == set(range(200))


async def test_a_long_datagram_is_refused_and_the_next_one_answered(asker):
    async with serve_tracker(TrackerSettings(port=0), seed=1) as server:
        client = await asker(server)
        refusal = await client.ask(b"\xff" * 60_000)
        assert refusal.startswith(bytes.fromhex("00000003ffffffff"))
        assert len(await client.ask(udp_codec.encode_connect_request(5))) == 16
        assert server.statistics()["udp_unproved"] == 1


async def test_a_defect_costs_one_answer_and_is_shown_to_the_operator(asker, monkeypatch, caplog):
    async with serve_tracker(TrackerSettings(port=0), seed=1) as server:
        client = await asker(server)
        with monkeypatch.context() as patch:
            patch.setattr(Swarms, "announce_packed", lambda *_, **__: 1 / 0)
            connected = await client.ask(udp_codec.encode_connect_request(5))
            connection_id = struct.unpack(">IIQ", connected)[2]
            request = udp_codec.encode_announce_request(connection_id, 6, WISH)
            client.transport.sendto(request)
            assert len(await client.ask(udp_codec.encode_connect_request(7))) == 16
        assert len(await client.ask(request)) == 20
    assert "ZeroDivisionError" in caplog.text


async def test_udp_can_be_off():
    async with serve_tracker(TrackerSettings(port=0, udp=False), seed=1) as server:
        assert server.udp_announce_url is None
        port = URL(server.url).port
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.bind(("127.0.0.1", port))  # nobody is there


async def test_a_star_is_every_address(asker):
    async with serve_tracker(TrackerSettings(host="*", port=0), seed=1) as server:
        port = URL(server.url).port
        transport, client = await asyncio.get_running_loop().create_datagram_endpoint(
            Asker, remote_addr=("127.0.0.1", port)
        )
        assert len(await client.announce()) == 20
        transport.close()
