"""mpv, FFmpeg, VLC and Chromium play a film whole, with two seeks, through the viewer's gateway.

Around them is all that there is in earnest: tracker, VoD server, a viewer that has the film already
and gives some of it, and for each player a viewer of its own that begins with nothing.
"""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from itertools import pairwise
from pathlib import Path

import pytest

from experiments.film import FilmSpec, make_film
from tests.interop.conftest import Programs, get_json, vodserver
from tests.toast.swarm.world import make_torrent
from toast.common.timemap import TimeMap

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(240)]

SMALL = FilmSpec(duration_seconds=6.0, bit_rate=125_000.0, width=320, height=180)
TOAST = Path(sys.executable).with_name("toast")
PATIENCE = 60.0
SUBTITLES = "1\n00:00:00,500 --> 00:00:09,000\n{}\n"


class Viewing:
    """One `toast` at work, and what it has told so far."""

    def __init__(self, *words):
        self.process = subprocess.Popen(
            [TOAST, *map(str, words), "--json"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.events = []
        self._news = threading.Condition()
        self._reading = threading.Thread(target=self._read)
        self._reading.start()

    def _read(self):
        for line in self.process.stdout:
            with self._news:
                self.events.append(json.loads(line))
                self._news.notify_all()
        with self._news:
            self._news.notify_all()

    def until(self, condition, what):
        """Wait for an event that is as wished, and return it."""
        deadline = time.monotonic() + PATIENCE
        with self._news:
            while not (found := [event for event in self.events if condition(event)]):
                assert self.process.poll() is None, self.process.stderr.read()
                left = deadline - time.monotonic()
                assert left > 0, f"waited in vain until {what}: {self.events[-1:]}"
                self._news.wait(min(left, 1.0))
        return found[0]

    def event(self, name):
        return self.until(lambda event: event["event"] == name, f"it tells of {name}")

    def positions(self):
        return [e["position_seconds"] for e in self.events if e["event"] == "progress"]

    def end(self):
        """End it, if it has not ended; its report."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        self._reading.join()
        error = self.process.stderr.read()
        self.process.stdout.close()
        self.process.stderr.close()
        assert code == 0, error
        return self.events[-1]


class Cinema:
    """A film in a swarm, and viewers of it."""

    def __init__(self, folder, film, seconds):
        self.film, self.seconds = film, seconds
        self.frames = round(25 * seconds)
        self.torrent = folder / "film.torrent"
        self._folder = folder
        self._programs = Programs(folder)
        self._viewings = 0

    def open(self):
        tracker = self._programs.start_server("tracker", "--port", "0", "--json")
        store, disk = self._folder / "store", self._folder / "disk"
        vodserver("init", "--store", store, "--disk", disk, "--allocation", "naive")
        title = json.loads(vodserver("add", self.film, "--store", store, "--json"))
        origin = self._programs.start_server(
            "vodserver",
            *("--store", store, "--port", "0", "--no-seed", "--json"),
            *("--tracker", tracker["announce_url"]),
        )
        url = get_json(f"{origin['url']}/titles/{title['id']}")["torrent"]
        with urllib.request.urlopen(url, timeout=10) as answer:
            self.torrent.write_bytes(answer.read())
        peer = self._folder / "peer"
        peer.mkdir()
        shutil.copyfile(self.film, peer / self.film.name)
        # At the film's own rate: some comes from the peer, the rest from the server.
        self._peer = self._start("watch", peer, "--behaviour", "seeding", "--upload", "1Mbps")
        self._peer.event("checked")

    def close(self):
        self._peer.end()
        self._programs.stop_all()

    def _start(self, command, folder, *options):
        self._viewings += 1
        address = f"127.49.{1 + os.getpid() % 250}.{self._viewings}"
        words = (self.torrent, "--folder", folder, "--listen", address)
        return Viewing(command, *words, *options)

    @contextlib.contextmanager
    def viewing(self, command, *options):
        """A viewer that begins with nothing but subtitles, in a folder of its own."""
        folder = self._folder / f"viewer-{self._viewings}"
        folder.mkdir()
        for language in ("de", "en"):
            name = f"{self.film.stem}.{language}.srt"
            (folder / name).write_text(SUBTITLES.format(language))
        viewing = self._start(command, folder, *options)
        try:
            yield viewing
        finally:
            if viewing.process.poll() is None:
                viewing.end()


@pytest.fixture(scope="module")
def cinema(tmp_path_factory, full):
    """With --full the film of the demonstration: a minute at 2 Mb/s."""
    folder = tmp_path_factory.mktemp("cinema")
    spec = FilmSpec() if full else SMALL
    cinema = Cinema(folder, make_film(folder / "film.mp4", spec), spec.duration_seconds)
    cinema.open()
    yield cinema
    cinema.close()


def need(name, package):
    program = shutil.which(name)
    if program is None:
        pytest.skip(f"{name} is not installed (Debian package {package})")
    return program


def note(figures, name, report):
    """What a viewing came to; the film must have come whole, and from others too."""
    assert report["event"] == "report"
    assert report["complete"] is True
    assert report["bytes_from_peers"] > 0
    figures[f"{name}_stalls"] = report["stalls"]
    figures[f"{name}_start_seconds"] = report["start_seconds"]
    figures[f"{name}_seek_seconds_max"] = max(report["seek_seconds"], default=None)
    figures[f"{name}_played_whole"] = True


# -- mpv -------------------------------------------------------------------------------------------


class Mpv:
    """A second conversation with the mpv that `toast play` has opened."""

    def __init__(self, path):
        self._end = socket.socket(socket.AF_UNIX)
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                self._end.connect(str(path))
                break
            except OSError:
                assert time.monotonic() < deadline, "mpv does not listen"
                time.sleep(0.02)
        self._lines = self._end.makefile("rwb", 0)
        self.played = []
        self.ended = None

    def ask(self, *words):
        self._lines.write(json.dumps({"command": words, "request_id": 1}).encode() + b"\n")
        while True:
            message = self._next()
            if message is None or message.get("request_id") == 1:
                return message and message.get("data")

    def _next(self):
        line = self._lines.readline()
        message = json.loads(line) if line else None
        if message and message.get("event") == "property-change" and message.get("data"):
            self.played.append(message["data"])
        if message and message.get("event") == "end-file":
            self.ended = message["reason"]
        return message

    def until(self, seconds):
        """Play until a film time is shown."""
        while not (self.played and self.played[-1] >= seconds):
            assert self._next() is not None, "mpv has ended"

    def seek(self, seconds):
        self.ask("seek", seconds, "absolute+exact")
        # What was told before the seek is of no matter any more.
        while not (self.played and abs(self.played[-1] - seconds) < 0.5):
            assert self._next() is not None, "mpv has ended"
        self.played = self.played[-1:]

    def until_end(self):
        while self._next() is not None:
            pass
        self._lines.close()
        self._end.close()


def test_mpv_plays_the_film_whole(cinema, tmp_path, figures):
    """Opened by `toast play`, which knows by mpv's own word where the film is."""
    program = need("mpv", "mpv")
    talk = tmp_path / "mpv"
    command = f"{program} --no-config --vo=null --ao=null --input-ipc-server={talk}"
    with cinema.viewing("play", "--player", command) as viewing:
        mpv = Mpv(talk)
        mpv.ask("observe_property", 7, "time-pos")
        mpv.until(1.0)
        forward, back = cinema.seconds * 0.7, 0.5
        mpv.seek(forward)
        mpv.until(forward + 0.5)
        assert tracks(mpv) == ["de", "en"]
        followed = lambda event: event.get("position_seconds", 0) >= forward  # noqa: E731 - short
        viewing.until(followed, "the viewer has followed the seek")
        mpv.seek(back)
        mpv.ask("set_property", "speed", 4)
        mpv.until_end()
        report = viewing.end()

    assert mpv.ended == "eof"
    assert mpv.played[0] < 1.0
    assert mpv.played[-1] > cinema.seconds - 0.5
    steps = [late - early for early, late in pairwise(mpv.played)]
    assert min(steps) >= 0
    assert max(steps) < 1.0  # every second of it was played after the last seek
    figures["mpv_version"] = mpv_version(program)
    note(figures, "mpv", report)


def tracks(mpv):
    """Languages of the subtitles that mpv has, the one that it shows first."""
    found = [track for track in mpv.ask("get_property", "track-list") if track["type"] == "sub"]
    return [track["lang"] for track in sorted(found, key=lambda track: not track["selected"])]


def mpv_version(program):
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    return done.stdout.split()[1]


def test_a_film_that_mpv_cannot_decode_is_one_line(cinema, tmp_path):
    """The codecs of picture and sound have names that nobody knows."""
    program = need("mpv", "mpv")
    data = cinema.film.read_bytes().replace(b"avc1\0", b"zzz1\0").replace(b"mp4a\0", b"zzz2\0")
    (tmp_path / "film.mp4").write_bytes(data)
    torrent = tmp_path / "film.torrent"
    times = TimeMap.constant(len(data), cinema.seconds)
    nobody = ["http://127.0.0.1:9/announce"]
    torrent.write_bytes(make_torrent(data, timemap=times, trackers=nobody))
    player = f"{program} --no-config --vo=null --ao=null"
    words = (torrent, "--folder", tmp_path, "--listen", "127.0.0.1", "--player", player, "--json")
    done = subprocess.run(
        [TOAST, "play", *words], capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("toast: mpv has no decoder for this film's video codec")


# -- FFmpeg ----------------------------------------------------------------------------------------


def decoded(program, source, *options):
    """Checksums of the pictures and sounds of a film, or of a part, one line each."""
    words = [program, "-v", "error", "-xerror", *options]
    done = subprocess.run(
        [*words, "-f", "framemd5", "-"], capture_output=True, check=True, timeout=PATIENCE * 2
    )
    assert done.stderr == b""
    return [line for line in done.stdout.splitlines() if not line.startswith(b"#")]


def test_ffmpeg_decodes_the_film_whole(cinema, figures):
    """Every picture and every sound is that of the file; after a seek forward and one back, too."""
    program = need("ffmpeg", "ffmpeg")
    with cinema.viewing("watch", "--gateway", "--behaviour", "seeding") as viewing:
        url = viewing.event("gateway")["url"]
        for start in (cinema.seconds * 0.7, cinema.seconds * 0.2):
            part = ("-t", "1", "-ss", f"{start:.2f}", "-i")
            seen = decoded(program, url, *part, url)
            assert seen == decoded(program, cinema.film, *part, cinema.film)
            assert len(seen) > 50
        whole = decoded(program, url, "-i", url)
        report = viewing.end()
    assert whole == decoded(program, cinema.film, "-i", cinema.film)
    pictures = sum(line.startswith(b"0,") for line in whole)
    assert pictures == cinema.frames
    figures["ffmpeg_frames"] = pictures
    note(figures, "ffmpeg", report)


# -- VLC -------------------------------------------------------------------------------------------


class Vlc:
    """VLC with its command line on our pipes. It refuses to run as root."""

    def __init__(self, program, *words):
        as_nobody = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
        command = (*(as_nobody if os.geteuid() == 0 else ()), program, "-I", "rc", "--rc-fake-tty")
        self._process = subprocess.Popen(
            [*command, "--no-color", "--vout=dummy", "--aout=dummy", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            bufsize=1,
            env=dict(os.environ, HOME="/nonexistent"),
        )

        self.shown = []
        self._reading = threading.Thread(target=self._read)
        self._reading.start()

    def _read(self):
        for line in self._process.stdout:
            with contextlib.suppress(ValueError):  # it also says other things, and empty lines
                self.shown.append(int(line.strip("> \n")))

    def tell(self, words):
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(f"{words}\n")

    def until(self, condition):
        """Ask for the second that it shows until that is as wished."""
        deadline = time.monotonic() + PATIENCE
        while not (self.shown and condition(self.shown[-1])):
            assert time.monotonic() < deadline, self.shown[-3:]
            assert self._process.poll() is None, "VLC has ended"
            self.tell("get_time")
            time.sleep(0.05)

    def until_end(self):
        """Ask until it ends by itself."""
        self.shown = self.shown[-1:]
        deadline = time.monotonic() + PATIENCE
        while self._process.poll() is None:
            assert time.monotonic() < deadline, self.shown[-3:]
            self.tell("get_time")
            time.sleep(0.05)
        assert self._process.returncode == 0

    def end(self):
        self._process.terminate()
        self._process.wait(PATIENCE)
        self._reading.join()
        self._process.stdout.close()
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()


def test_vlc_plays_the_film_whole(cinema, figures):
    program = need("vlc", "vlc-bin and vlc-plugin-base")
    if os.geteuid() == 0:
        need("setpriv", "util-linux")
    with cinema.viewing("watch", "--gateway", "--behaviour", "seeding") as viewing:
        vlc = Vlc(program, "--play-and-exit", viewing.event("gateway")["url"])
        try:
            forward = int(cinema.seconds * 0.7)
            vlc.until(lambda at: 1 <= at < forward)
            vlc.tell(f"seek {forward}")
            vlc.until(lambda at: at >= forward)
            vlc.tell("seek 0")
            vlc.until(lambda at: at < 2)
            vlc.tell("rate 3")
            vlc.until_end()
        finally:
            vlc.end()
        report = viewing.end()
    assert (
        vlc.shown[-1] >= int(cinema.seconds) - 3
    )  # it is asked now and then, and tells whole seconds
    steps = [late - early for early, late in pairwise(vlc.shown)]
    assert min(steps) >= 0
    # It tells whole seconds, at three times the pace, to a test that may have to wait for its turn.
    assert max(steps) <= max(3, cinema.seconds / 8)
    note(figures, "vlc", report)


# -- Chromium --------------------------------------------------------------------------------------


VIDEO = "document.querySelector('video')"
REACHED = f"""async until => {{
  const v = {VIDEO};
  while (!v.ended && !v.error && !(v.currentTime >= until && !v.seeking))
    await new Promise(done => setTimeout(done, 50));
  const ranges = [];
  for (let n = 0; n < v.played.length; n++) ranges.push([v.played.start(n), v.played.end(n)]);
  return {{ended: v.ended, error: v.error && v.error.message, at: v.currentTime, played: ranges,
           pictures: v.getVideoPlaybackQuality().totalVideoFrames,
           text: [...v.textTracks].map(t => t.cues && [...t.cues].map(c => c.text))}};
}}"""


def test_chromium_plays_the_film_whole(cinema, figures):
    program = need("chromium", "chromium")
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    options = ["--no-sandbox", "--disable-gpu", "--autoplay-policy=no-user-gesture-required"]
    with (
        cinema.viewing("watch", "--gateway", "--behaviour", "seeding") as viewing,
        api.sync_playwright() as playwright,
    ):
        url = viewing.event("gateway")["url"]
        browser = playwright.chromium.launch(executable_path=program, args=options)
        page = browser.new_page()
        page.set_default_timeout(PATIENCE * 1000)
        page.goto(url)  # the browser makes a page of its own around a film
        page.evaluate(
            f"""url => {{
            const track = document.createElement('track');
            track.src = url; track.default = true;
            {VIDEO}.append(track); {VIDEO}.muted = true; return {VIDEO}.play(); }}""",
            url.rpartition("/")[0] + "/subtitles/0.vtt",
        )
        forward = cinema.seconds * 0.7
        first = page.evaluate(REACHED, 1.0)
        page.evaluate(f"at => {{ {VIDEO}.currentTime = at }}", forward)
        second = page.evaluate(REACHED, forward + 0.5)
        page.evaluate(f"() => {{ {VIDEO}.currentTime = 0; {VIDEO}.playbackRate = 4 }}")
        last = page.evaluate(REACHED, cinema.seconds + 1)
        figures["chromium_version"] = browser.version
        browser.close()
        report = viewing.end()
    assert first["error"] is second["error"] is last["error"] is None
    assert forward <= second["at"] < forward + 5
    assert last["ended"]
    assert last["pictures"] > second["pictures"] > first["pictures"] > 0
    ((start, end),) = last["played"]  # all of it, in one piece
    assert start < 0.1
    assert end > cinema.seconds - 0.1
    assert last["text"] == [["de"]]
    note(figures, "chromium", report)
