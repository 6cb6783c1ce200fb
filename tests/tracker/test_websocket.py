"""The relay on real WebSockets; and with a real browser, whose connections it makes."""

import asyncio
import json
import shutil

import aiohttp
import pytest

from tests.tracker.asking import until
from tests.tracker.test_relay import FILM, name, offers, session
from tracker.errors import TrackerError
from tracker.passkeys import Passkeys
from tracker.server import serve_tracker
from tracker.settings import TrackerSettings


@pytest.fixture
async def tracker():
    async with serve_tracker(TrackerSettings(port=0), 1, websocket=0) as server:
        yield server


@pytest.fixture
async def http():
    async with aiohttp.ClientSession() as session:
        yield session


def announcement(number, **more):
    told = {"action": "announce", "info_hash": FILM, "peer_id": name(number), "left": 9}
    return told | more


async def heard(socket):
    async with asyncio.timeout(20):
        return json.loads((await socket.receive()).data)


async def test_an_offer_and_its_answer_find_their_way(tracker, http):
    async with (
        http.ws_connect(tracker.websocket_url) as one,
        http.ws_connect(tracker.websocket_url) as other,
    ):
        await one.send_json(announcement(1))
        assert (await heard(one))["incomplete"] == 1
        await other.send_json(announcement(2, offers=offers(5)))
        assert (await heard(other))["incomplete"] == 2
        offer = await heard(one)
        assert offer["peer_id"] == name(2)
        answer = {"answer": session("answer"), "offer_id": offer["offer_id"]}
        await one.send_json(announcement(1, to_peer_id=name(2), **answer))
        assert (await heard(other))["answer"] == session("answer")
        told = tracker.statistics()
        assert (told["browsers"], told["browser_offers"], told["browser_answers"]) == (2, 1, 1)
        assert told["browser_messages"] == 3
        assert told["browser_bytes_sent"] > 100
    await until(lambda: tracker.statistics()["browsers"] == 0)
    await until(lambda: tracker.statistics()["connections_open"] == 0)


async def test_nonsense_is_answered_and_the_connection_stays(tracker, http):
    async with http.ws_connect(tracker.websocket_url) as socket:
        await socket.send_str("nonsense")
        assert "no JSON" in (await heard(socket))["failure reason"]
        await socket.send_bytes(b"\0\1")
        await socket.send_json(announcement(1))
        assert (await heard(socket))["incomplete"] == 1


async def test_too_long_a_message_ends_the_connection(tracker, http):
    async with http.ws_connect(tracker.websocket_url) as socket:
        await socket.send_str("x" * 70_000)
        async with asyncio.timeout(20):
            message = await socket.receive()
        assert message.type in {aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED}
    await until(lambda: tracker.statistics()["connections_open"] == 0)


async def test_a_browser_that_does_not_read_is_let_go(tracker, http):
    """Its own answers pile up: the socket takes some, the queue 64, and no more are kept."""
    soon = aiohttp.ClientWSTimeout(ws_close=0.1)
    async with http.ws_connect(tracker.websocket_url, timeout=soon) as idle:
        await idle.send_json(announcement(1))
        idle._conn.transport.pause_reading()
        async with http.ws_connect(tracker.websocket_url) as busy:
            offer = [{"offer": session(sdp="s" * 50_000), "offer_id": "i" * 20}]
            for _ in range(400):
                await busy.send_json(announcement(2, offers=offer))
                await heard(busy)
            await until(lambda: tracker.statistics()["browsers"] == 1)


async def test_who_has_no_passkey_is_refused(http):
    keys = Passkeys(b"s" * 16)
    async with serve_tracker(TrackerSettings(port=0), 1, websocket=0, passkeys=keys) as server:
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await http.ws_connect(server.websocket_url)
        assert refused.value.status == 403
        url = f"{server.websocket_url}?passkey={keys.give('alice')}"
        async with http.ws_connect(url) as socket:
            await socket.send_json(announcement(1))
            assert (await heard(socket))["incomplete"] == 1


async def test_connections_are_bounded_together_with_those_of_http(http):
    settings = TrackerSettings(port=0, max_connections=1)
    async with serve_tracker(settings, 1, websocket=0) as server:
        async with http.ws_connect(server.websocket_url):
            with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
                await http.ws_connect(server.websocket_url)
            assert refused.value.status == 503
        assert server.statistics()["connections_refused"] == 1


def place_of(server):
    host, _, port = (
        server.websocket_url.removeprefix("ws://").removesuffix("/announce").rpartition(":")
    )
    return host, int(port)


async def test_who_connects_and_asks_for_nothing_is_hung_up_on():
    settings = TrackerSettings(port=0, idle_timeout_seconds=0.05)
    async with serve_tracker(settings, 1, websocket=0) as server:
        reader, writer = await asyncio.open_connection(*place_of(server))
        async with asyncio.timeout(20):
            assert await reader.read() == b""
        writer.close()


async def test_a_browser_may_stay_as_long_as_it_likes(http):
    settings = TrackerSettings(port=0, idle_timeout_seconds=0.05)
    async with (
        serve_tracker(settings, 1, websocket=0) as server,
        http.ws_connect(server.websocket_url) as socket,
    ):
        await asyncio.sleep(0.15)
        await socket.send_json(announcement(1))
        assert (await heard(socket))["incomplete"] == 1


async def test_of_those_who_ask_for_nothing_there_are_only_so_many():
    settings = TrackerSettings(port=0, max_connections=3, idle_timeout_seconds=60.0)
    async with serve_tracker(settings, 1, websocket=0) as server:
        opened = [await asyncio.open_connection(*place_of(server)) for _ in range(4)]
        async with asyncio.timeout(20):
            assert await opened[3][0].read() == b""
        for _, writer in opened:
            writer.close()


async def test_a_port_that_is_taken_is_named(tracker):
    port = int(tracker.websocket_url.rpartition(":")[2].partition("/")[0])
    with pytest.raises(TrackerError, match="cannot listen for browsers on"):
        async with serve_tracker(TrackerSettings(port=0), 1, websocket=port):
            pass


PAGE = """
async ([url, film, name, offers]) => {
  const socket = new WebSocket(url);
  await new Promise((yes, no) => { socket.onopen = yes; socket.onerror = no; });
  const gathered = link => new Promise(done => {
    if (link.iceGatheringState === 'complete') return done();
    link.onicegatheringstatechange = () => link.iceGatheringState === 'complete' && done();
  });
  const said = {action: 'announce', info_hash: film, peer_id: name, left: 9};
  window.heard = new Promise(hear => {
    const use = (channel, words) => {
      channel.onopen = () => channel.send(words);
      channel.onmessage = event => hear(event.data);
    };
    let own;
    socket.onmessage = async event => {
      const told = JSON.parse(event.data);
      if (told.offer) {
        const link = window.link = new RTCPeerConnection();
        link.ondatachannel = event => use(event.channel, 'I lack the film');
        await link.setRemoteDescription(told.offer);
        await link.setLocalDescription(await link.createAnswer());
        await gathered(link);
        socket.send(JSON.stringify({...said, to_peer_id: told.peer_id, offer_id: told.offer_id,
                                    answer: link.localDescription}));
      } else if (told.answer) {
        await window.link.setRemoteDescription(told.answer);
      } else {
        window.announced = true;
      }
    };
  });
  const made = [];
  if (offers) {
    const link = window.link = new RTCPeerConnection();
    const channel = link.createDataChannel('film');
    channel.onopen = () => channel.send('I have the film');
    channel.onmessage = event => { window.answered = event.data; };
    await link.setLocalDescription(await link.createOffer());
    await gathered(link);
    made.push({offer: link.localDescription, offer_id: 'o'.repeat(20)});
  }
  socket.send(JSON.stringify({...said, offers: made}));
  while (!window.announced) await new Promise(r => setTimeout(r, 20));
}
"""


@pytest.mark.interop
@pytest.mark.slow
async def test_two_pages_of_a_real_browser_are_connected_through_it(tracker):
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("chromium is not installed (Debian package chromium)")
    api = pytest.importorskip("playwright.async_api", reason="playwright is not installed")
    # Its name service for local addresses is no part of this.
    flags = ["--no-sandbox", "--disable-gpu", "--disable-features=WebRtcHideLocalIpsWithMdns"]
    async with api.async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=program, args=flags)
        waiting, calling = [await browser.new_page() for _ in range(2)]
        await waiting.evaluate(PAGE, [tracker.websocket_url, FILM, name(1), False])
        await calling.evaluate(PAGE, [tracker.websocket_url, FILM, name(2), True])
        async with asyncio.timeout(60):
            assert await waiting.evaluate("window.heard") == "I have the film"
            await calling.wait_for_function("window.answered === 'I lack the film'")
        await browser.close()
    await until(lambda: tracker.statistics()["browsers"] == 0)
