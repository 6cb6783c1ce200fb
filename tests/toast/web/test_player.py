"""The page of one film in a real Chromium: playing, keys, subtitles, piece map, and trouble."""

import itertools

import pytest

from tests.toast.web.conftest import check_contrasts, wait_until
from tests.toast.web.fake_api import SECONDS, film
from toast.viewer import PieceSource

pytestmark = [pytest.mark.interop, pytest.mark.slow]

SUBTITLES = [
    {"label": "English", "language": "en", "url": "/films/x/subtitles/english.vtt"},
    {"label": "Deutsch", "language": "de", "url": "/films/x/subtitles/deutsch.vtt"},
]
VIDEO = "document.querySelector('video')"


@pytest.fixture
def expect():
    return pytest.importorskip("playwright.sync_api").expect


@pytest.fixture
def watch(open_page, daemon):
    """Puts one film there and opens its page; waits until it plays, if it can."""

    def watch(*, plays=True, sources=(), page_options=None, **changes):
        shown = film(1, duration_seconds=SECONDS, **changes)
        daemon.put(shown)
        daemon.put_pieces(shown["id"], sources)
        page = open_page(f"#/film/{shown['id']}", **(page_options or {}))
        if plays:
            wait(page, "video?.currentTime > 0 && !video.paused")
        return page

    return watch


def video(page, what):
    return page.evaluate(f"{VIDEO}.{what}")


def wait(page, condition):
    """Wait until something is true of the video, or of the page."""
    wait_until(page, lambda: page.evaluate(f"(video => {condition})({VIDEO})"), condition)


def test_it_starts_by_itself_and_keys_drive_it(watch, expect):
    page = watch()
    for key, condition in {
        "k": "video.paused",
        "5": f"video.currentTime === {SECONDS / 2}",
        "ArrowLeft": "video.currentTime === 0",
        "l": f"video.currentTime === {SECONDS - 0.1}",
        "j": "video.currentTime < 0.1",
        "m": "video.muted",
        "ArrowDown": "!video.muted && video.volume === 0.9",
        ">": "video.playbackRate === 1.25",
        "<": "video.playbackRate === 1",
        " ": "!video.paused",
    }.items():
        page.keyboard.press(key)
        wait(page, condition)
    page.keyboard.press("c")
    expect(page.locator(".hint")).to_have_text("No subtitles were found for this film")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("to that tenth of the film")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.locator("video")).to_be_attached()
    page.keyboard.press("f")
    wait(page, "document.fullscreenElement?.className.startsWith('stage')")
    page.keyboard.press("f")
    wait(page, "!document.fullscreenElement")


def test_keys_on_a_button_are_the_buttons(watch, expect):
    """The space bar on the sound button turns the sound off; it does not also pause the film."""
    page = watch()
    page.get_by_label("Sound off").focus()
    page.keyboard.press(" ")
    wait(page, "video.muted && !video.paused")
    expect(page.get_by_label("Sound on")).to_be_focused()
    page.get_by_label("Volume").focus()
    page.keyboard.press("ArrowRight")
    wait(page, "!video.muted && video.volume < 0.2")


def test_keys_held_down_ask_for_the_last_place_only(watch):
    page = watch()
    page.keyboard.press("k")
    page.evaluate(
        "() => { window.seeks = []; document.querySelector('video').onseeking ="
        " event => seeks.push(event.target.currentTime); }"
    )
    for key in "123456789":
        page.keyboard.press(key)
    wait(page, f"video.currentTime === {SECONDS * 0.9} && !video.seeking")
    assert 1 <= len(page.evaluate("seeks")) <= 4


def test_the_seek_bar_seeks_when_it_is_let_go(watch, expect):
    page = watch()
    page.keyboard.press("k")
    before = video(page, "currentTime")
    box = page.locator(".timeline").bounding_box()
    at = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * 0.25, at)
    expect(page.locator(".timeline-tip")).to_contain_text("0:02")
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.75, at, steps=5)
    assert video(page, "currentTime") == before
    page.mouse.up()
    wait(page, "!video.seeking && Math.abs(video.currentTime - 7.5) < 0.3")
    slider = page.get_by_label("Position in the film")
    expect(slider).to_have_attribute("aria-valuetext", "7 seconds of 10 seconds")


def test_the_place_is_reported_and_a_reload_goes_on_there(watch, daemon, expect):
    page = watch()
    wait(page, "video.currentTime > 1.2")
    page.keyboard.press("k")
    page.keyboard.press("7")
    wait(page, f"video.currentTime === {SECONDS * 0.7} && !video.seeking")
    wait_until(page, lambda: daemon.positions[-1]["position_seconds"] == SECONDS * 0.7, "told")
    assert daemon.positions[-1] == {"position_seconds": 7.0, "paused": True, "rate": 1}
    assert any(not each["paused"] for each in daemon.positions)
    known = daemon.films[film(1)["id"]]
    known["duration_seconds"] = 100.0  # so that the last seconds are not its end yet

    page.reload()
    wait(page, "video && video.currentTime >= 7")
    expect(page.locator(".message")).to_contain_text("Going on at 0:07")
    page.get_by_role("button", name="From the start").click()
    wait(page, "video.currentTime < 3")


def test_leaving_the_page_reports_the_place_and_lets_go_of_the_film(watch, daemon):
    page = watch()
    page.keyboard.press("k")
    page.keyboard.press("6")
    wait(page, f"video.currentTime === {SECONDS * 0.6}")
    daemon.positions.clear()
    page.keyboard.press("Escape")
    wait(page, "!video")
    wait_until(page, lambda: daemon.positions, "told")
    assert daemon.positions[-1]["position_seconds"] == SECONDS * 0.6


REFUSES_ONCE = """() => {
  const play = HTMLMediaElement.prototype.play;
  HTMLMediaElement.prototype.play = () => {
    HTMLMediaElement.prototype.play = play;
    return Promise.reject(new DOMException('a click is wanted first', 'NotAllowedError'));
  };
}"""


def test_a_browser_that_wants_a_click_first_gets_a_large_button(open_page, daemon, expect):
    """Browsers may start nothing that has sound by themselves; a key is enough, too."""
    daemon.put(film(1, duration_seconds=100.0, position_seconds=6.0))
    page = open_page()
    page.evaluate(REFUSES_ONCE)
    page.locator(".card-link").click()
    expect(page.get_by_label("Play the film")).to_be_visible()
    wait(page, "video.paused && video.currentTime === 6")
    page.keyboard.press("k")
    wait(page, "!video.paused && video.currentTime > 6.1")
    expect(page.get_by_label("Play the film")).to_be_hidden()


def test_a_film_that_was_nearly_over_begins_anew(watch):
    page = watch(position_seconds=SECONDS - 1)
    assert video(page, "currentTime") < SECONDS / 2


def test_subtitles_are_shown_and_the_choice_is_remembered(watch, expect):
    page = watch(subtitles=SUBTITLES)
    page.keyboard.press("c")
    expect(page.locator(".hint")).to_have_text("Subtitles: English")
    wait(page, "video.textTracks[0].activeCues?.[0]?.text === 'Line of english.vtt'")
    page.get_by_label("Subtitles", exact=True).select_option("Deutsch")
    wait(page, "video.textTracks[1].activeCues?.[0]?.text === 'Line of deutsch.vtt'")
    assert video(page, "textTracks[0].mode") == "disabled"
    page.reload()
    wait(page, "video?.textTracks[1]?.mode === 'showing'")
    page.keyboard.press("c")
    expect(page.get_by_label("Subtitles", exact=True)).to_have_value("-1")


def test_subtitles_that_are_found_later_are_offered(watch, daemon, expect):
    page = watch()
    expect(page.get_by_label("Subtitles", exact=True)).to_be_hidden()
    daemon.put(film(1, duration_seconds=SECONDS, subtitles=SUBTITLES))
    expect(page.get_by_label("Subtitles", exact=True)).to_be_visible()
    page.keyboard.press("c")
    wait(page, "video.textTracks[0].activeCues?.[0]?.text === 'Line of english.vtt'")
    daemon.put(film(1, duration_seconds=SECONDS, subtitles=SUBTITLES, neighbours=2))
    expect(page.locator(".figures dd").nth(1)).to_have_text("2")
    assert video(page, "textTracks[0].mode") == "showing"


def test_a_paused_film_goes_on_when_it_is_played(watch, daemon):
    watch(state="paused")
    assert daemon.calls == [("PATCH", f"/api/v1/films/{film(1)['id']}", {"paused": False})]


def test_the_piece_map_shows_where_each_piece_came_from(watch, daemon, expect):
    """Each source has its colour and, looked at closely, a texture of its own."""
    sources = [source for source in PieceSource for _ in range(40)]
    page = watch(sources=sources)
    page.keyboard.press("k")
    page.keyboard.press("0")  # so that the playhead is on none of the fields that are looked at
    wait(page, "video.paused && video.currentTime === 0")
    expect(page.get_by_role("img", name="Piece map")).to_have_attribute(
        "aria-label",
        "Piece map, 240 pieces: Missing 40, Viewers 40, Operator's seed 40, Server 40,"
        " Ejected 40, Disk 40",
    )
    expect(page.locator(".map-panel .count")).to_have_text(["17 %"] * 6)
    looks = page.evaluate(FIELDS, 40)
    assert len({tuple(look["colour"]) for look in looks}) == 6
    assert [look["textured"] for look in looks] == [False, False, True, True, True, True]

    daemon.put_pieces(film(1)["id"], [PieceSource.PEERS] * 240)
    expect(page.locator(".map-tip")).to_have_text("240 of 240 here")
    assert {tuple(look["colour"]) for look in page.evaluate(FIELDS, 40)} == {
        tuple(looks[1]["colour"])
    }
    page.locator(".map").hover(position={"x": 8, "y": 8})
    expect(page.locator(".map-tip")).to_contain_text("Piece 0, about 0:00: viewers")


FIELDS = """async each => {
  await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
  const { layout } = await import('/app/piecemap.js');
  const map = document.querySelector('.map'), pen = map.getContext('2d');
  const { edge, columns } = layout(240, map.clientWidth - 6);
  return [0, 1, 2, 3, 4, 5].map(source => {
    const piece = source * each + 20;
    const pixels = pen.getImageData(3 + (piece % columns) * edge + 1,
      3 + Math.floor(piece / columns) * edge + 1, edge - 4, edge - 4).data;
    const colours = {};
    for (let at = 0; at < pixels.length; at += 4) {
      const key = pixels.slice(at, at + 3).join();
      colours[key] = (colours[key] ?? 0) + 1;
    }
    const [colour] = Object.entries(colours).sort((a, b) => b[1] - a[1])[0];
    return { colour: colour.split(','), textured: Object.keys(colours).length > 1 };
  });
}"""


def test_the_map_of_any_film_fits(open_page):
    """No piece without a field, and never higher than a hand's width of screen."""
    page = open_page()
    for pieces, width in itertools.product((1, 7, 3000, 60_000), (300, 900)):
        shape = page.evaluate(
            "async ([pieces, width]) => (await import('/app/piecemap.js')).layout(pieces, width)",
            [pieces, width],
        )
        assert shape["columns"] * shape["edge"] <= width
        assert shape["columns"] * shape["rows"] * shape["group"] >= pieces
        assert shape["rows"] * shape["edge"] <= 200


def test_numbers_are_live(watch, daemon, expect):
    page = watch()
    panel = page.locator(".figures")
    expect(panel.locator("dd")).to_have_text(
        ["31 s", "7", "3.3 Mb/s", "1.58 Mb/s", "79 %", "0", "1", "25 %"]
    )
    expect(panel.locator(".count")).to_have_text(["170 MB · 79 %", "21 MB · 10 %", "23 MB · 11 %"])
    more = {"neighbours": 9, "stalls": 2, "offload": None, "bytes_from_origin": 0}
    daemon.put(film(1, duration_seconds=SECONDS, state="seeding", **more))
    expect(panel.locator("dd").nth(1)).to_have_text("9")
    expect(panel.locator(".state")).to_have_text("Sharing")
    expect(panel.locator("dd").nth(4)).to_have_text("\u2013")
    expect(panel.locator(".count").nth(2)).to_have_text("0 B")


@pytest.mark.parametrize(
    ("codecs", "said", "blocks"),
    [
        (("hevc", "aac"), "it has no decoder for H.265 (HEVC)", True),
        (("h264", "dts"), "without sound: it has no decoder for DTS", False),
    ],
)
def test_a_codec_that_the_browser_lacks_is_said_so(watch, expect, codecs, said, blocks):
    content = {"content_url": "/films/x/broken.mp4"} if blocks else {}
    page = watch(plays=False, video_codec=codecs[0], audio_codec=codecs[1], **content)
    box = page.locator(".trouble")
    expect(box).to_contain_text(said)
    expect(box).to_contain_text(
        f"mpv http://127.0.0.1:{page.url.split(':')[2].split('/')[0]}/films"
    )
    playlist = box.get_by_role("link", name="Open the playlist")
    assert playlist.get_attribute("href").endswith("/playlist.m3u8")
    if not blocks:
        box.get_by_role("button", name="All right").click()
        expect(box).to_be_hidden()
        wait(page, "video.currentTime > 0")


def test_a_film_that_cannot_be_decoded_is_said_so(watch, expect):
    page = watch(plays=False, content_url="/films/x/broken.mp4")
    expect(page.locator(".trouble")).to_contain_text(
        "This browser cannot play this film. It is made of H.264 and AAC."
    )


def test_a_film_that_halts_says_what_it_waits_for(watch, daemon, expect):
    page = watch(plays=False, content_url="/films/x/stuck.mp4", neighbours=3, down_rate=1000.0)
    expect(page.locator(".waiting")).to_have_text("Waiting for this part: 8 kb/s, 3 neighbours")
    daemon.put(film(1, content_url="/films/x/stuck.mp4", neighbours=0, down_rate=0.0))
    expect(page.locator(".waiting")).to_contain_text("nobody has been found yet")


def test_the_daemon_goes_away_while_a_film_plays_and_it_goes_on_after(watch, daemon, expect):
    page = watch()
    page.keyboard.press("k")
    daemon.stop()
    expect(page.locator("#connection")).to_contain_text("The daemon is away")
    daemon.start()
    page.get_by_role("button", name="Try now").click()
    expect(page.locator("#connection")).to_be_hidden()
    page.keyboard.press("8")
    page.keyboard.press("k")
    wait(page, "video.currentTime > 8.2")


def test_a_film_that_is_removed_elsewhere_leads_back_to_the_others(watch, daemon, expect):
    page = watch()
    daemon.remove(film(1)["id"])
    expect(page.locator(".message")).to_have_text("Film 1 was removed")
    expect(page.locator(".empty-title")).to_have_text("No films yet")


def test_an_address_of_no_film_says_so(open_page, expect):
    page = open_page("#/film/%E0%A4%A")
    expect(page.locator(".empty-title")).to_have_text("No films yet")
    page = open_page("#/film/abc")
    expect(page.get_by_role("heading", level=1)).to_have_text("This film is not here")


def test_in_a_narrow_window(watch, expect):
    long = "A very long title " * 12
    options = {"width": 360, "height": 700, "reduced_motion": "reduce"}
    page = watch(title=long, subtitles=SUBTITLES, sources=[1] * 3000, page_options=options)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    for name in ("Pause", "10 seconds back", "Subtitles", "Speed", "Whole screen"):
        box = page.get_by_label(name, exact=True).bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 360
        assert box["height"] >= 24, "large enough to be touched (WCAG 2.2, 2.5.8)"
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        check_contrasts(page)


def test_numbers_are_written_as_people_read_them(open_page):
    page = open_page()
    told = page.evaluate(
        """async () => {
      const f = await import('/app/format.js');
      return [f.bytes(0), f.bytes(999), f.bytes(999_600), f.bytes(858e6), f.rate(250_000),
        f.rate(1.2345e9), f.clock(3723.9), f.clock(59), f.clock(NaN), f.span(3.21), f.span(601),
        f.percent(1, 1e6), f.percent(999_999, 1e6), f.percent(1, 1), f.percent(0, 0),
        f.spokenTime(3601), f.spokenTime(0)];
    }"""
    )
    assert [each.replace("\u00a0", " ") for each in told] == [
        *(
            "0 B",
            "999 B",
            "1 MB",
            "858 MB",
            "2 Mb/s",
            "9.88 Gb/s",
            "1:02:03",
            "0:59",
            "\u2013:\u2013\u2013",
        ),
        *("3.2 s", "10 min", "1 %", "99 %", "100 %", "0 %", "1 hour 1 second", "0 seconds"),
    ]
