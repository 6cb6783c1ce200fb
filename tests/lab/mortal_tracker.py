"""Stands in for `toast-tracker` in a laboratory: the real one, killed once and started again.

MORTAL_KILL_SECONDS after its start it is killed, MORTAL_DOWN_SECONDS later it is there again on the
same port, and what came of that is written to MORTAL_REPORT. The laboratory reads counters all the
time; those it has of this program, which adds up what both lives of the tracker have counted.
"""

import contextlib
import http.server
import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

TRACKER = (sys.executable, "-c", "from tracker.cli import main; main()")


class Mortal:
    """The tracker, whichever of its lives it is in."""

    def __init__(self, words):
        self.words = list(words)
        self.told = {"bytes_sent": 0}
        self.sent_before = 0
        self.start()

    def start(self):
        command = [*TRACKER, *self.words]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.listening = json.loads(self.process.stdout.readline())

    def kill(self):
        self.status()
        self.sent_before = self.told["bytes_sent"]
        self.process.kill()
        self.process.wait()
        self.words[self.words.index("--port") + 1] = self.listening["url"].rpartition(":")[2]

    def status(self):
        """Of now, or what was last known."""
        with contextlib.suppress(OSError):
            with urllib.request.urlopen(f"{self.listening['url']}/status", timeout=5) as answer:
                told = json.load(answer)
            told["bytes_sent"] += self.sent_before
            self.told = told
        return self.told


def serve_counters(mortal):
    """Somewhere to read them; returns the URL."""

    class Counters(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            body = json.dumps(mortal.status()).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Counters)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"


def main():
    report = Path(os.environ["MORTAL_REPORT"])
    mortal = Mortal([*sys.argv[1:], "--snapshot", f"{report}.swarms"])
    signal.signal(signal.SIGTERM, lambda *_: (mortal.process.terminate(), os._exit(0)))
    sys.stdout.write(json.dumps({**mortal.listening, "url": serve_counters(mortal)}) + "\n")
    sys.stdout.flush()
    time.sleep(float(os.environ["MORTAL_KILL_SECONDS"]))
    mortal.kill()
    before = mortal.told["peers"]
    time.sleep(float(os.environ["MORTAL_DOWN_SECONDS"]))
    mortal.start()
    began = time.monotonic()
    at_once = mortal.status()["peers"]
    while mortal.status()["peers"] < before:
        time.sleep(0.1)
    figures = {"before": before, "at_once": at_once, "whole_after": time.monotonic() - began}
    report.write_text(json.dumps(figures))
    mortal.process.wait()


if __name__ == "__main__":
    main()
