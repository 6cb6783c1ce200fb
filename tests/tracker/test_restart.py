"""A tracker that is killed under load and started again: its swarm is whole within one interval."""

import asyncio
import json
import struct
import subprocess
import sys
import time
import urllib.request

import pytest

from tracker import udp_codec
from tracker.udp_codec import UdpAnnounce

pytestmark = pytest.mark.slow

FILM = b"f" * 20
INTERVAL_SECONDS = 4
REFUSED = 3


class Viewer(asyncio.DatagramProtocol):
    """A UDP client: connects, announces itself when it is told to, and again when it is refused."""

    def __init__(self, number):
        self.number = number
        self.came = asyncio.Queue()

    def connection_made(self, transport):
        self.transport = transport

    def datagram_received(self, data, addr):
        self.came.put_nowait(data)

    def error_received(self, exc):
        pass  # nobody is there at the moment

    async def ask(self, datagram):
        """The answer, or None if none comes soon."""
        while not self.came.empty():
            self.came.get_nowait()
        self.transport.sendto(datagram)
        try:
            async with asyncio.timeout(1.0):
                return await self.came.get()
        except TimeoutError:
            return None

    async def watch(self):
        wish = UdpAnnounce(FILM, b"%020d" % self.number, 0, 9, 0, 0, 0, 0, 50, 10_000 + self.number)
        connection_id = None
        while True:
            if connection_id is None:
                answer = await self.ask(udp_codec.encode_connect_request(self.number))
                connection_id = struct.unpack(">IIQ", answer)[2] if answer else None
                continue
            answer = await self.ask(udp_codec.encode_announce_request(connection_id, 5, wish))
            if answer is None or answer[3] == REFUSED:
                connection_id = None
            else:
                await asyncio.sleep(struct.unpack_from(">IIIII", answer)[2])


def start(port, snapshot):
    process = subprocess.Popen(
        [
            *(sys.executable, "-c", "from tracker.cli import main; main()", "serve", "--json"),
            *("--port", str(port), "--interval", f"{INTERVAL_SECONDS}s", "--snapshot", snapshot),
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    return process, json.loads(process.stdout.readline())["url"]


async def peers(url):
    def read():
        with urllib.request.urlopen(f"{url}/status", timeout=30) as answer:
            return json.load(answer)["peers"]

    return await asyncio.to_thread(read)


async def whole_after(url, count):
    """Seconds until all are known."""
    started = time.monotonic()
    async with asyncio.timeout(60):
        while await peers(url) < count:  # noqa: ASYNC110  (another process)
            await asyncio.sleep(0.05)
    return time.monotonic() - started


async def test_a_killed_tracker_knows_all_again_within_one_interval(full, figures, tmp_path):
    count = 300 if full else 40
    loop = asyncio.get_running_loop()
    process, url = start(0, tmp_path / "swarms")
    port = int(url.rpartition(":")[2])
    viewers, transports = [], []
    try:
        for number in range(count):
            transport, viewer = await loop.create_datagram_endpoint(
                lambda number=number: Viewer(number), remote_addr=("127.0.0.1", port)
            )
            transports.append(transport)
            viewers.append(asyncio.create_task(viewer.watch()))
        await whole_after(url, count)
        process.kill()
        process.wait()
        process.stdout.close()
        process, url = start(port, tmp_path / "swarms")
        seconds = await whole_after(url, count)
        assert not any(viewer.done() for viewer in viewers)
    finally:
        for viewer in viewers:
            viewer.cancel()
        await asyncio.gather(*viewers, return_exceptions=True)
        for transport in transports:
            transport.close()
        process.terminate()
        process.wait()
        process.stdout.close()
    figures |= {
        "restart_viewers": count,
        "restart_interval_seconds": INTERVAL_SECONDS,
        "restart_whole_after_seconds": round(seconds, 2),
        "restart_whole_after_intervals": round(seconds / INTERVAL_SECONDS, 2),
    }
