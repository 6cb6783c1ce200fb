"""The web viewer as people have it: Chromium, a daemon, a swarm and a VoD server, all real.

With --full, the film is two minutes long and a picture of the page is written to
docs/evidence/web_viewer.png.
"""

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from PIL import Image

from experiments.film import FilmSpec, make_film
from tests.interop.conftest import get_json

pytestmark = [pytest.mark.interop, pytest.mark.slow, pytest.mark.timeout(300)]

PICTURE = Path(__file__).parents[2] / "docs/evidence/web_viewer.png"
MOST_PICTURE_BYTES = 250_000
FLAGS = ["--no-sandbox", "--disable-gpu", "--autoplay-policy=no-user-gesture-required"]
CODECS = 'video/mp4; codecs="avc1.640028, mp4a.40.2"'
LINES = "1\n00:00:00,000 --> 00:10:00,000\n{text}\n"
NAME = "The Long Way to the Sea"


@pytest.fixture(scope="module")
def small_film(tmp_path_factory, full):
    """What `start_service` puts on the server."""
    spec = FilmSpec(duration_seconds=120.0 if full else 14.0, bit_rate=125_000.0)
    if not full:
        spec = FilmSpec(duration_seconds=14.0, bit_rate=125_000.0, width=320, height=180)
    return make_film(tmp_path_factory.mktemp("viewer") / f"{NAME}.mp4", spec)


class Daemon:
    """`toast daemon`, on the same port each time that it is started."""

    def __init__(self, programs, folder, *options):
        self.state = folder / "state"
        self._programs = programs
        self._options = options
        self._process = None
        self.url = None

    def start(self):
        port = "0" if self.url is None else self.url.rpartition(":")[2]
        words = ("--state", self.state, "--port", port, "--listen", f"{address(8)}", "--json")
        self._process = self._programs.start(
            *(sys.executable, "-c", "from toast.cli import main; main()", "daemon"),
            *words,
            *self._options,
            stdout=subprocess.PIPE,
        )
        ready, _, _ = select.select([self._process.stdout], [], [], 30)
        line = self._process.stdout.readline() if ready else b""
        assert line, self._programs.running[-1][1].read_text()
        self.url = json.loads(line)["url"]

    def stop(self):
        self._process.send_signal(signal.SIGTERM)
        assert self._process.wait(20) == 0

    @property
    def page_url(self):
        return f"{self.url}/?token={(self.state / 'token').read_text().strip()}"

    def add_subtitles(self):
        """What people do who have subtitles: put the file beside the film."""
        (folder,) = (self.state / "films").iterdir()
        (folder / f"{NAME}.en.srt").write_text(LINES.format(text="The sea is not far now."))
        (folder / f"{NAME}.de.srt").write_text(LINES.format(text="Das Meer ist nicht mehr weit."))


def address(number):
    """An address of this machine for one peer."""
    return f"127.{1 + os.getpid() % 250}.99.{number}"


@pytest.fixture
def daemon(programs, tmp_path, full):
    # Slower than the loopback, so that something is still missing when one looks.
    daemon = Daemon(programs, tmp_path, *(("--download", "3Mbps") if full else ()))
    daemon.start()
    return daemon


@pytest.fixture
def browser_page():
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("chromium is not installed (Debian package chromium)")
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    failures = []
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        page = browser.new_page(viewport={"width": 1240, "height": 830})
        page.set_default_timeout(15_000)
        page.on("pageerror", lambda error: failures.append(str(error)))
        if not page.evaluate(f"document.createElement('video').canPlayType('{CODECS}')"):
            pytest.skip("this Chromium has no H.264 and AAC")
        yield page
        browser.close()
    assert failures == []


@pytest.fixture
def screen(browser_page):
    return Screen(browser_page)


class Screen:
    """What a person sees and does at the page."""

    def __init__(self, page):
        self.page = page
        self.expect = pytest.importorskip("playwright.sync_api").expect

    def video(self, what):
        return self.page.evaluate(f"(video => {what})(document.querySelector('video'))")

    def wait(self, condition, seconds=20.0):
        """Wait until something is true of the video; returns how long that took."""
        start = time.monotonic()
        while not self.video(condition):
            assert time.monotonic() < start + seconds, (condition, self.state())
            self.page.wait_for_timeout(20)
        return round(time.monotonic() - start, 3)

    def state(self):
        return self.video(
            "video && [video.currentTime, video.readyState, video.error?.message, video.paused,"
            " document.querySelector('.waiting').textContent]"
        )

    def press(self, *keys):
        for key in keys:
            self.page.keyboard.press(key)

    def wait_playing(self, seconds):
        """Wait until the film has gone on from where it is."""
        at = self.video("video.currentTime")
        self.wait(f"!video.paused && video.currentTime > {at + seconds}")

    def wait_sought(self, low, high):
        """Wait until the picture of the new place is there."""
        place = f"video.currentTime >= {low} && video.currentTime <= {high}"
        return self.wait(f"!video.seeking && video.readyState > 2 && {place}")


@pytest.fixture
def service(start_service, programs, tmp_path, wait_until, full):
    """A VoD server with its seed, a tracker, and viewers who have the whole film."""
    service = start_service(seed=True)
    peers = 2 if full else 1
    for number in range(1, peers + 1):
        folder = tmp_path / f"peer-{number}"
        folder.mkdir()
        shutil.copy(service.film, folder)
        programs.start(
            *(sys.executable, "-c", "from toast.cli import main; main()", "watch"),
            *(service.torrent, "--folder", folder, "--listen", address(number)),
            *("--behaviour", "seeding", "--upload", "1500kbps" if full else "20Mbps", "--json"),
        )
    wait_until(
        lambda: service.tracker_status()["peers"] == peers + 1, "the peers are at the tracker"
    )
    return service


def test_a_film_of_the_swarm_is_watched_in_the_browser(service, daemon, screen, full, figures):
    """Added, started, sought forward and back, with subtitles, paused, reloaded, to its end."""
    duration = 120.0 if full else 14.0
    add_and_start(service, daemon, screen, figures)
    screen.press("8")
    figures["web_seek_forward_seconds"] = screen.wait_sought(0.8 * duration - 0.5, duration)
    screen.wait_playing(0.5)
    screen.press("1")
    figures["web_seek_back_seconds"] = screen.wait_sought(0, 0.1 * duration + 3)
    screen.wait_playing(0.5)
    show_subtitles(daemon, screen)
    if full:
        take_picture(screen, daemon, figures)
    pause_and_reload(screen)

    screen.press("9", ">", ">", ">")
    screen.wait("video.ended", seconds=30)
    assert screen.video("video.getVideoPlaybackQuality().corruptedVideoFrames") == 0
    look_at_library(screen, figures)
    if full:
        here = screen.page.locator(".card").get_by_label("Here")
        screen.expect(here).to_have_attribute("aria-valuenow", "100", timeout=120_000)
        (copy,) = (daemon.state / "films").glob("*/*.mp4")
        assert copy.read_bytes() == service.film.read_bytes()


def add_and_start(service, daemon, screen, figures):
    """In by the address that `toast open` opens; what is added to be watched plays by itself."""
    page = screen.page
    page.goto(daemon.page_url)
    assert page.url == f"{daemon.url}/", "the token does not stay in the address line"
    screen.expect(page.locator(".empty-title")).to_have_text("No films yet")
    (title,) = get_json(f"{service.origin_url}/titles")
    screen.press("a")
    page.keyboard.type(f"{service.origin_url}/titles/{title['id']}")
    start = time.monotonic()
    screen.press("Enter")
    page.locator("video").wait_for(state="attached")
    screen.wait("video.currentTime > 0")
    figures["web_start_seconds"] = round(time.monotonic() - start, 3)
    screen.expect(page.get_by_role("heading", level=1)).to_have_text(NAME)
    screen.wait_playing(1.0)


def show_subtitles(daemon, screen):
    """They are put beside the film while it plays, and can be chosen without a reload."""
    daemon.add_subtitles()
    choice = screen.page.get_by_label("Subtitles", exact=True)
    screen.expect(choice).to_be_visible()
    choice.select_option("English")
    screen.wait("[...video.textTracks].some(track => track.activeCues?.length)")
    showing = "[...video.textTracks].filter(track => track.mode === 'showing')"
    shown = screen.video(f"{showing}.map(track => track.activeCues[0].text)")
    assert shown == ["The sea is not far now."]
    choice.evaluate("choice => choice.blur()")  # keys are the player's again


def pause_and_reload(screen):
    """Paused is paused, and a reload goes on at the place, subtitles and all."""
    screen.press("5", "k")
    screen.wait("video.paused && !video.seeking")
    place = screen.video("video.currentTime")
    screen.page.wait_for_timeout(400)
    assert screen.video("video.currentTime") == place
    screen.page.reload()
    screen.wait(f"video && video.readyState > 2 && Math.abs(video.currentTime - {place}) < 3")
    screen.expect(screen.page.locator(".message")).to_contain_text("Going on at")
    screen.wait("[...video.textTracks].some(track => track.mode === 'showing')")


def look_at_library(screen, figures):
    """The film is watched, and has a poster."""
    screen.press("Escape")
    card = screen.page.locator(".card")
    screen.expect(card.get_by_label("Watched")).to_have_attribute("aria-valuenow", "100")
    poster = card.locator("img")
    screen.expect(poster).to_be_attached()
    size = poster.evaluate("async image => { await image.decode(); return image.naturalWidth }")
    assert size >= 300
    figures["web_poster_pixels"] = size


def take_picture(screen, daemon, figures):
    """The page in the midst of it: some from the disk, some from others, some missing."""
    page = screen.page
    connection = page.locator("#connection")
    screen.press("k")
    daemon.stop()
    screen.expect(connection).to_contain_text("The daemon is away")
    daemon.start()
    screen.expect(connection).to_be_hidden()
    screen.press("5", "k")
    screen.wait_sought(59.5, 63)
    screen.wait_playing(12.0)
    page.mouse.move(5, 5)
    figures["web_stalls"] = int(page.locator(".figures dd").nth(5).inner_text())
    raw = PICTURE.with_name("web_viewer.raw.png")
    page.screenshot(path=raw)
    try:
        with Image.open(raw) as picture:
            # A palette: the film's grain would make it five times as large. This method keeps
            # colours of which there is little, such as those of the legend.
            small = picture.convert("RGB").quantize(256, method=Image.Quantize.FASTOCTREE)
            small.save(PICTURE, optimize=True)
    finally:
        raw.unlink()
    figures["web_picture_bytes"] = PICTURE.stat().st_size
    assert figures["web_picture_bytes"] < MOST_PICTURE_BYTES
