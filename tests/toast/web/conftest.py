"""A real Chromium, and a daemon's interface in whatever state a test wants."""

import shutil
import time

import pytest

from experiments.film import FilmSpec, make_film
from tests.toast.web.fake_api import SECONDS, FakeDaemon
from toast.media.poster import take_poster

FLAGS = ["--no-sandbox", "--disable-gpu", "--autoplay-policy=no-user-gesture-required"]
EXPECTED = (
    "Failed to load resource",  # what a browser says of every answer that is an error
    "Canvas2D: Multiple readback",  # a test looks at what was painted
)


@pytest.fixture(scope="module")
def browser():
    """Debian's Chromium; one for all tests of a file, since starting it takes a second."""
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("chromium is not installed (Debian package chromium)")
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def page_film(tmp_path_factory):
    """A real film of 10 s for a <video>; ten seconds, so that there is somewhere to go."""
    spec = FilmSpec(duration_seconds=SECONDS, bit_rate=60_000.0, width=160, height=90, fps=10)
    return make_film(tmp_path_factory.mktemp("page") / "film.mp4", spec)


@pytest.fixture(scope="module")
def house(page_film):
    """The daemon's interface; it is as new for each test, see `daemon`."""
    with page_film.open("rb") as file:
        poster = take_poster(file)
    with FakeDaemon(page_film, poster) as daemon:
        yield daemon


@pytest.fixture
def daemon(house):
    house.reset()
    yield house
    house.start_again()


@pytest.fixture
def open_page(browser, daemon):
    """Opens the page in a window of its own; fails the test if the page's code failed."""
    contexts, failures = [], []

    def open_page(path="", *, width=1100, height=800, clock=False, **options):
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(8000)
        page.on("pageerror", lambda error: failures.append(str(error)))
        page.on("console", lambda message: failures.append(message.text) if is_bad(message) else 0)
        if clock:
            page.clock.install()
        page.goto(daemon.url + path)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert failures == []


def wait_until(page, condition, what="it is so"):
    # The page's policy forbids Playwright's own waiting, which evaluates text.
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline, what
        page.wait_for_timeout(20)


def is_bad(message):
    return message.type in {"error", "warning"} and not message.text.startswith(EXPECTED)


CONTRASTS = r"""() => {
  const rgb = text => text.match(/[\d.]+/g).map(Number);
  const light = ([r, g, b]) => {
    const part = v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  };
  const ground = element => {
    for (let at = element; at; at = at.parentElement) {
      const colour = rgb(getComputedStyle(at).backgroundColor);
      if (colour.length < 4 || colour[3] === 1) return colour;
      if (colour[3] > 0) return null; // half transparent over something
    }
    return [255, 255, 255];
  };
  const found = {};
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some(n => n.nodeType === 3 && n.data.trim());
    const below = own && element.checkVisibility() ? ground(element) : null;
    if (!below || element.closest("svg")) continue;
    const [a, b] = [light(rgb(getComputedStyle(element).color)), light(below)];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    found[`${element.tagName}.${element.className}: ${element.textContent}`] = ratio;
  }
  return found;
}"""


def check_contrasts(page):
    """Text and ground differ by at least 4.5 (WCAG 2.2, 1.4.3), wherever the ground is plain."""
    pairs = page.evaluate(CONTRASTS)
    assert len(pairs) > 12
    assert {what: ratio for what, ratio in pairs.items() if ratio < 4.5} == {}
