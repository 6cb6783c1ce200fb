"""What a player asks a server for, over real sockets."""

import http.server
import json
import re
import subprocess
import sys
import threading

import pytest

from experiments.errors import LabError
from experiments.start.reader import read_film

FILM = bytes(n % 251 for n in range(2_000_000))


class Server(http.server.ThreadingHTTPServer):
    """Serves the film by ranges, and notes what was asked on which connection."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked = []

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/film"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        first, last = re.match(r"bytes=(\d+)-(\d*)", self.headers["Range"]).groups()
        start, end = int(first), int(last) + 1 if last else len(FILM)
        self.server.asked.append((self.client_address[1], start, end if last else None))
        if self.path != "/film":
            self.send_error(404)
            return
        self.send_response(206)
        self.send_header("Content-Length", str(end - start))
        self.end_headers()
        try:
            self.wfile.write(FILM[start:end])
        except OSError:
            self.close_connection = True  # the player has hung up

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def asked(server):
    """What was asked, and over how many connections."""
    connections = {connection for connection, _, _ in server.asked}
    return [(start, end) for _, start, end in server.asked], len(connections)


def test_an_open_player_reads_on_while_what_it_wants_is_near(server):
    steps = [("index", 0, 300_000), ("frame", 299_936, 350_000)]
    reading = read_film(server.url, steps, "open")
    assert asked(server) == ([(0, None)], 1)
    assert reading.bytes == 350_000
    assert reading.began <= reading.connected <= reading.first_byte <= reading.steps["index"]
    assert reading.steps["index"] <= reading.steps["frame"]


def test_an_open_player_hangs_up_to_go_elsewhere(server):
    steps = [("front", 0, 4096), ("index", 1_900_000, 2_000_000), ("frame", 5000, 60_000)]
    reading = read_film(server.url, steps, "open")
    assert asked(server) == ([(0, None), (1_900_000, None), (5000, None)], 3)
    assert reading.connections == 3
    assert reading.bytes == 4096 + 100_000 + 55_000


def test_a_bounded_player_guesses_once_and_keeps_its_connection(server):
    steps = [("front", 0, 4096), ("index", 1_900_000, 2_000_000), ("frame", 5000, 60_000)]
    reading = read_film(server.url, steps, "bounded")
    assert asked(server) == ([(0, 65_536), (1_900_000, 2_000_000), (5000, 60_000)], 1)
    assert reading.connections == 1


def test_a_bounded_player_asks_only_for_what_its_guess_left(server):
    read_film(server.url, [("index", 0, 300_000), ("frame", 299_936, 310_000)], "bounded")
    assert asked(server)[0] == [(0, 65_536), (65_536, 300_000), (300_000, 310_000)]
    server.asked.clear()
    read_film(server.url, [("front", 0, 4096), ("frame", 850, 53_685)], "bounded")
    assert asked(server)[0] == [(0, 65_536)]


def test_a_refusal_and_an_early_end_are_errors(server):
    with pytest.raises(LabError, match="answers 404"):
        read_film(server.url + "/no", [("front", 0, 10)], "open")
    with pytest.raises(LabError, match="ends at byte 2000000, before 2000001"):
        read_film(server.url, [("front", 0, 2_000_001)], "open")
    with pytest.raises(LabError, match="cannot be read"):
        read_film("http://127.0.0.1:1/film", [("front", 0, 10)], "open")


@pytest.mark.slow
def test_the_program_answers_line_by_line(server):
    requests = [
        {"url": server.url, "steps": [["front", 0, 100]], "strategy": "open"},
        {"url": server.url + "/no", "steps": [["front", 0, 100]], "strategy": "open"},
    ]
    done = subprocess.run(
        [sys.executable, "-m", "experiments.start.reader"],
        input="".join(json.dumps(each) + "\n" for each in requests),
        capture_output=True,
        text=True,
        check=True,
    )
    read, refused = map(json.loads, done.stdout.splitlines())
    assert read["bytes"] == 100
    assert "404" in refused["error"]
