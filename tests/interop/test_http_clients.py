"""Stock clients over our real server: curl, FFmpeg, aria2 and Chromium's <video>."""

import functools
import hashlib
import http.server
import json
import shutil
import subprocess
import threading
from email.parser import BytesHeaderParser

import pytest

from tests.conformance.check_ranges import Answer
from tests.interop.film_server import BIG_FILM, big_film, film_server

pytestmark = [pytest.mark.interop, pytest.mark.slow]

SECONDS = BIG_FILM.duration_seconds


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with film_server(tmp_path_factory.mktemp("clients"), big_film(tmp_path_factory)) as server:
        yield server


@pytest.fixture(scope="module")
def data(server):
    return server.film.read_bytes()


def need(name, package):
    program = shutil.which(name)
    if program is None:
        pytest.skip(f"{name} is not installed (Debian package {package})")
    return program


def run(*words):
    done = subprocess.run(
        [str(word) for word in words], capture_output=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr.decode(errors="replace")
    return done.stdout


@pytest.fixture
def curl(server, tmp_path):
    """Runs curl on the film's URL: (status, fields, content)."""
    program = need("curl", "curl")

    def curl(*options, output=tmp_path / "out"):
        head = tmp_path / "head"
        words = (program, "-sS", "-D", head, "-o", output, *options, server.content_url)
        run(*words)
        status, _, lines = head.read_bytes().partition(b"\r\n")
        fields = BytesHeaderParser().parsebytes(lines)
        return Answer(
            int(status.split()[1]),
            {name.lower(): value for name, value in fields.items()},
            output.read_bytes() if output.exists() else b"",
        )

    return curl


def test_curl_gets_the_whole_and_a_range(curl, data):
    whole = curl()
    assert (whole.status, whole.body) == (200, data)

    part = curl("--range", "1000000-1999999")
    assert (part.status, part.body) == (206, data[1_000_000:2_000_000])
    assert part.headers["content-range"] == f"bytes 1000000-1999999/{len(data)}"
    for name in ("etag", "last-modified", "accept-ranges", "content-type", "cache-control"):
        assert part.headers.get(name) == whole.headers.get(name)

    assert curl("--range", "-1").body == data[-1:]


def test_curl_gets_several_ranges_as_parts(curl, data):
    answer = curl("--range", "5000000-5099999,0-99,-100000")

    assert answer.status == 206
    assert [content for _, content in answer.parts] == [
        data[5_000_000:5_100_000],
        data[:100],
        data[-100_000:],
    ]
    assert [part["Content-Range"] for part, _ in answer.parts] == [
        f"bytes 5000000-5099999/{len(data)}",
        f"bytes 0-99/{len(data)}",
        f"bytes {len(data) - 100_000}-{len(data) - 1}/{len(data)}",
    ]


def test_curl_resumes_a_download(curl, data, tmp_path):
    half = tmp_path / "half"
    half.write_bytes(data[:7_654_321])

    answer = curl("-C", "-", output=half)

    assert answer.status == 206
    assert answer.headers["content-length"] == str(len(data) - 7_654_321)
    assert half.read_bytes() == data


def test_curl_asks_for_the_head_and_for_what_it_has_already(curl, data, tmp_path):
    head = curl("--head")
    assert head.status == 200
    assert head.headers["content-length"] == str(len(data))
    assert head.headers["accept-ranges"] == "bytes"

    tag = tmp_path / "tag"
    tag.write_text(head.headers["etag"] + "\n")
    assert curl("--etag-compare", tag).status == 304
    assert curl("-z", head.headers["last-modified"]).status == 304


@pytest.mark.parametrize("position", [0, 9.2])
def test_ffmpeg_decodes_from_the_url_what_it_decodes_from_the_file(server, position):
    """Checksums of ten pictures and of the sound beside them, from the start and after a seek."""
    program = need("ffmpeg", "ffmpeg")

    def decoded(source):
        words = ("-v", "error", "-ss", position, "-i", source, "-t", "0.4", "-f", "framemd5", "-")
        return run(program, *words)

    sums = decoded(server.content_url)
    assert sums == decoded(server.film)
    assert sums.count(b"\n") > 15


def test_ffprobe_finds_the_duration_and_the_streams(server):
    program = need("ffprobe", "ffmpeg")

    words = ("-v", "error", "-of", "json", "-show_format", "-show_streams", server.content_url)
    told = json.loads(run(program, *words))

    assert float(told["format"]["duration"]) == pytest.approx(SECONDS, abs=0.1)
    assert [stream["codec_name"] for stream in told["streams"]] == ["h264", "aac"]
    assert int(told["format"]["size"]) == server.film.stat().st_size


def test_aria2_downloads_over_eight_connections(server, data, tmp_path):
    program = need("aria2c", "aria2")
    before = server.status()

    words = ("--no-conf", "--quiet", "-x8", "-s8", "-k1M", "--file-allocation=none")
    run(program, *words, f"--dir={tmp_path}", "--out=film.mp4", server.content_url)

    assert (tmp_path / "film.mp4").read_bytes() == data
    assert server.status()["http_accepted"] - before["http_accepted"] >= 8


PAGE = """<!doctype html><video id=v muted preload=metadata width=320 height=180 src="{url}">
</video>"""


@pytest.fixture
def page_url(server, tmp_path):
    """A page with the film in it, from another origin."""
    (tmp_path / "index.html").write_text(PAGE.format(url=server.content_url))
    handler = functools.partial(_Quiet, directory=tmp_path)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as pages:
        thread = threading.Thread(target=pages.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{pages.server_port}/index.html"
        finally:
            pages.shutdown()
            thread.join()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture
def browser():
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("chromium is not installed (Debian package chromium)")
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    options = ["--no-sandbox", "--disable-gpu", "--autoplay-policy=no-user-gesture-required"]
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=options)
        yield browser
        browser.close()


LINK = {"offline": False, "latency": 0, "downloadThroughput": 3e6, "uploadThroughput": 3e6}
PLAYED = """async until => {
  const v = document.querySelector('video');
  while (v.currentTime < until && !v.error) await new Promise(r => setTimeout(r, 50));
  return {time: v.currentTime, error: v.error && v.error.message, duration: v.duration,
          pictures: v.getVideoPlaybackQuality().totalVideoFrames};
}"""
BUFFERED_TO = """() => {
  const b = document.querySelector('video').buffered;
  return b.length ? b.end(b.length - 1) : 0;
}"""


@pytest.mark.parametrize("direct", [False, True], ids=["in a page of another origin", "directly"])
def test_chromium_plays_and_seeks_into_what_it_has_not_loaded(
    server, browser, page_url, direct, figures
):
    """Time goes on and pictures change, before the seek and after it, and it asked for ranges."""
    page = browser.new_page()
    link = page.context.new_cdp_session(page)  # three times the film's rate: loopback has it all
    link.send("Network.emulateNetworkConditions", LINK)  # before one could seek
    answers = []

    def note(answer):
        if answer.url == server.content_url:
            answers.append((answer.status, answer.headers.get("content-range", "")))

    page.on("response", note)
    page.goto(server.content_url if direct else page_url)
    video = page.locator("video")

    page.evaluate("() => document.querySelector('video').play()")
    first = page.evaluate(PLAYED, 0.4)
    early = video.screenshot()
    loaded = page.evaluate(BUFFERED_TO)
    asked_before = len(answers)
    page.evaluate("() => { document.querySelector('video').currentTime = 11 }")
    second = page.evaluate(PLAYED, 11.4)
    late = video.screenshot()

    assert first["error"] is second["error"] is None
    assert first["duration"] == pytest.approx(SECONDS, abs=0.1)
    assert second["pictures"] > first["pictures"] > 0
    assert hashlib.sha256(early).digest() != hashlib.sha256(late).digest()
    assert loaded < 9.0
    assert {status for status, _ in answers[1:]} == {206}  # a page of its own is asked for whole
    starts = [
        int(span.removeprefix("bytes ").partition("-")[0]) for _, span in answers[asked_before:]
    ]
    size = server.film.stat().st_size
    assert any(start > loaded / SECONDS * size for start in starts)
    figures["chromium_version"] = browser.version
    figures["chromium_ranges"] = figures.get("chromium_ranges", 0) + len(answers)
