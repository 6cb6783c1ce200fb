"""The page of all films, in a real browser: every state it can be in, by mouse and by keyboard."""

import re

import pytest

from tests.toast.web.conftest import check_contrasts, wait_until
from tests.toast.web.fake_api import film

pytestmark = [pytest.mark.interop, pytest.mark.slow]

STATES = {
    "queued": "Queued",
    "checking": "Checking",
    "waiting": "Waiting",
    "downloading": "Downloading",
    "watching": "Watching",
    "seeding": "Sharing",
    "paused": "Paused",
    "complete": "Complete",
    "error": "Failed",
}


@pytest.fixture
def expect():
    return pytest.importorskip("playwright.sync_api").expect


def titles(page):
    return page.locator(".card-title").all_text_contents()


def has_no_sideways_scroll(page):
    return page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_an_empty_library_says_how_to_fill_it(open_page, expect):
    page = open_page()
    expect(page.locator(".empty-title")).to_have_text("No films yet")
    page.get_by_role("button", name="Add a film").last.click()
    expect(page.get_by_role("dialog")).to_be_visible()
    expect(page.locator("#add-source")).to_be_focused()


def test_every_state_is_shown_in_words(open_page, daemon, expect):
    daemon.put(
        *(
            film(number, state=state, error="the server is away: start it" * (state == "error"))
            for number, state in enumerate(STATES, start=1)
        )
    )
    page = open_page()
    for state, words in STATES.items():
        expect(page.locator(f"[data-state={state}] .badge")).to_have_text(words)
    expect(page.locator("[data-state=error] .card-error")).to_have_text(
        "the server is away: start it"
    )
    expect(page.locator("[data-state=error]").get_by_label("Stop downloading")).to_be_hidden()


def test_a_card_tells_how_far_it_was_watched_and_how_much_is_here(open_page, daemon, expect):
    daemon.put(
        film(1, position_seconds=2700.0, pieces_have=300),
        film(2, poster_url=None, pieces_have=399, duration_seconds=None),
    )
    page = open_page()
    first = page.locator("[data-id$='1']")
    expect(first.get_by_label("Watched")).to_have_attribute("aria-valuenow", "50")
    expect(first.get_by_label("Here")).to_have_attribute("aria-valuenow", "75")
    expect(first.locator(".card-facts")).to_have_text("1:30:00 · 858 MB · 75 % here · ↓ 3.3 Mb/s")
    assert first.locator("img").evaluate("async image => { await image.decode(); return 1 }")
    second = page.locator("[data-id$='2']")
    expect(second.locator(".card-facts")).to_contain_text("858 MB · 99 % here")
    assert second.locator("img").count() == 0


def test_what_changes_is_shown_without_asking_and_the_focus_stays(open_page, daemon, expect):
    daemon.put(film(1), film(2))
    page = open_page()
    page.locator("[data-id$='1'] .card-link").focus()
    daemon.put(film(1, state="complete", pieces_have=400), film(3))
    expect(page.locator("[data-id$='1'] .badge")).to_have_text("Complete")
    expect(page.locator(".card")).to_have_count(3)
    expect(page.locator("[data-id$='1'] .card-link")).to_be_focused()


def test_search_and_order(open_page, daemon, expect):
    daemon.put(
        film(1, title="Éclair 10", size_bytes=3),
        film(2, title="eclair 9", size_bytes=9, position_seconds=900.0),
        film(3, title="Other", state="error", error="no", size_bytes=5),
    )
    page = open_page()
    expect(page.locator(".card")).to_have_count(3)
    assert titles(page) == ["Other", "eclair 9", "Éclair 10"]
    for order, expected in {
        "title": ["eclair 9", "Éclair 10", "Other"],
        "watched": ["eclair 9", "Éclair 10", "Other"],
        "size": ["eclair 9", "Other", "Éclair 10"],
    }.items():
        page.get_by_label("Order").select_option(order)
        assert titles(page) == expected
    page.get_by_label("Which films").select_option("trouble")
    assert titles(page) == ["Other"]
    page.get_by_label("Which films").select_option("all")
    page.keyboard.press("/")
    page.keyboard.type("ECLÁIR")
    assert titles(page) == ["eclair 9", "Éclair 10"]
    page.keyboard.type(" zebra")
    expect(page.locator(".empty-title")).to_have_text("No film is like that")
    assert not page.get_by_role("button", name="Add a film").last.is_hidden()


def test_two_hundred_films_and_titles_of_every_kind(open_page, daemon, expect):
    long = "A title that goes on " * 20
    arabic = "مدينة الرياح"
    films = [film(number) for number in range(1, 199)]
    daemon.put(*films, film(199, title=arabic), film(200, title=long), film(201, title="x" * 300))
    page = open_page(width=360, height=700)
    expect(page.locator(".card")).to_have_count(201)
    assert has_no_sideways_scroll(page)
    card = page.locator(".card").filter(has_text=arabic)
    assert card.locator(".card-title").evaluate("e => getComputedStyle(e).direction") == "rtl"
    heights = page.locator(".card-title").evaluate_all(
        "all => all.slice(0, 3).map(e => Math.round(e.getBoundingClientRect().height))"
    )
    assert max(heights) <= 60, "a long title is cut after two lines"


def test_by_keyboard_alone_to_a_film_and_back(open_page, daemon, expect):
    daemon.put(*(film(number) for number in range(1, 10)))
    page = open_page()
    expect(page.locator(".card")).to_have_count(9)
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    page.keyboard.press("Enter")
    for _ in range(4):
        page.keyboard.press("Tab")  # search, filter, order, the first film
    expect(page.locator(".card-link").first).to_be_focused()
    width = page.locator(".card").first.evaluate("e => getComputedStyle(e).outlineWidth")
    assert width == "3px", "the focus can be seen"
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    columns = page.locator(".cards").evaluate(
        "e => getComputedStyle(e).gridTemplateColumns.split(' ').length"
    )
    expect(page.locator(".card-link").nth(1 + columns)).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("video")).to_be_attached()
    page.keyboard.press("Escape")
    expect(page.locator(".card")).to_have_count(9)


def test_adding_tells_the_daemon_what_was_chosen(open_page, daemon, expect, tmp_path):
    page = open_page()
    expect(page.locator(".empty-title")).to_be_visible()
    page.keyboard.press("a")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("Give an address")
    page.keyboard.type(" magnet:?xt=1 ")
    page.get_by_label("Then").select_option("download")
    page.get_by_label("Sharing").select_option("seeding")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.locator(".card")).to_have_count(1)
    chosen = {"source": "magnet:?xt=1", "mode": "download", "behaviour": "seeding"}
    assert daemon.calls == [("POST", "/api/v1/films", chosen)]

    bad, good = tmp_path / "bad.torrent", tmp_path / "good.torrent"
    bad.write_bytes(b"<html>")
    good.write_bytes(b"d4:infode")
    page.get_by_role("button", name="Add a film").click()
    page.locator("input[type=file]").set_input_files(bad)
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_role("alert")).to_have_text("bad.torrent is not a .torrent")
    page.locator("input[type=file]").set_input_files(good)
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.locator("video")).to_be_attached()  # "watch now" goes there
    assert daemon.calls[1] == ("POST", "/api/v1/films?mode=watch", b"d4:infode")


def test_what_the_daemon_refuses_is_said_and_can_be_mended(open_page, daemon, expect):
    daemon.refusal = "http://x is not a title: name http://HOST:PORT/titles/ID"
    page = open_page()
    page.get_by_role("button", name="Add a film").first.click()
    page.keyboard.type("http://x")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_have_text(daemon.refusal)
    expect(page.locator("#add-source")).to_have_value("http://x")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_removing_asks_first(open_page, daemon, expect):
    daemon.put(film(1), film(2))
    page = open_page()
    card = page.locator("[data-id$='2']")
    card.get_by_label("Remove").click()
    expect(page.get_by_role("button", name="Keep it")).to_be_focused()
    page.keyboard.press("Enter")
    assert daemon.calls == []
    card.get_by_label("Remove").click()
    page.get_by_label("Delete its data too").check()
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    expect(page.locator(".card")).to_have_count(1)
    assert [(method, path[-7:]) for method, path, _ in daemon.calls] == [("DELETE", "?data=1")]
    expect(page.locator("[data-id$='1'] .card-link")).to_be_focused()


def test_pausing_and_going_on(open_page, daemon, expect):
    daemon.put(film(1))
    page = open_page()
    page.get_by_label("Stop downloading").click()
    expect(page.locator(".badge")).to_have_text("Paused")
    page.get_by_label("Go on downloading").click()
    expect(page.locator(".badge")).to_have_text("Downloading")
    assert [body for *_, body in daemon.calls] == [{"paused": True}, {"paused": False}]


def test_the_daemon_goes_away_and_comes_back(open_page, daemon, expect):
    daemon.put(film(1))
    page = open_page()
    expect(page.locator(".card")).to_have_count(1)
    expect(page.locator("#connection")).to_be_hidden()
    daemon.stop()
    expect(page.locator("#connection")).to_contain_text("The daemon is away")
    expect(page.locator(".card")).to_have_count(1)
    daemon.films = {each["id"]: each for each in (film(1), film(2))}
    daemon.start()
    page.get_by_role("button", name="Try now").click()
    expect(page.locator("#connection")).to_be_hidden()
    expect(page.locator(".card")).to_have_count(2)


def test_without_a_token_it_says_what_to_do(open_page, daemon, expect):
    daemon.locked = True
    page = open_page()
    expect(page.locator("#connection")).to_contain_text("not let in yet. Run “toast open”")
    daemon.locked = False
    page.get_by_label("Token").fill("se cret")
    page.get_by_role("button", name="Let me in").click()
    page.wait_for_url(re.compile(r"\?token=se%20cret$"))
    expect(page.locator(".empty-title")).to_be_visible()


def test_text_can_be_read_in_light_and_dark(open_page, daemon, expect):
    daemon.put(film(1, state="error", error="no server has it: add one"))
    page = open_page()
    expect(page.locator(".card")).to_have_count(1)
    grounds = []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        check_contrasts(page)
        grounds.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert grounds == ["rgb(250, 247, 242)", "rgb(20, 18, 15)"]


def test_landmarks_and_names_for_those_who_do_not_see(open_page, daemon, expect):
    daemon.put(film(1, state="downloading"))
    page = open_page()
    expect(page.locator(".card")).to_have_count(1)
    for role in ("banner", "main", "contentinfo", "search"):
        expect(page.get_by_role(role)).to_have_count(1)
    expect(page.get_by_role("heading", level=1)).to_have_text("Films")
    nameless = page.evaluate(
        """() => [...document.querySelectorAll("button, a, input, select")]
             .filter(e => e.checkVisibility() && !(e.textContent.trim() || e.ariaLabel || e.title
                          || e.labels?.length)).map(e => e.outerHTML)"""
    )
    assert nameless == []


def test_a_page_that_nobody_looks_at_listens_no_longer(open_page, daemon, expect):
    """The clock is the test's; the window is told that it is hidden, and later that it is not."""
    daemon.put(film(1))
    page = open_page(clock=True)
    expect(page.locator(".card")).to_have_count(1)
    assert daemon.listeners == 1
    hide(page, hidden=True)
    page.clock.run_for(31_000)
    wait_until(page, lambda: daemon.listeners == 0)
    daemon.put(film(1), film(2))
    hide(page, hidden=False)
    expect(page.locator(".card")).to_have_count(2)
    assert daemon.listeners == 1


def hide(page, *, hidden):
    page.evaluate(
        """hidden => {
          Object.defineProperty(document, 'hidden', { value: hidden, configurable: true });
          document.dispatchEvent(new Event('visibilitychange'));
        }""",
        hidden,
    )
