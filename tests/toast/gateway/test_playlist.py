"""What a player reads in a playlist."""

from hypothesis import given
from hypothesis import strategies as st

from toast.gateway.playlist import make_playlist

URL = "http://127.0.0.1:9/films/0/a%20film.mp4"


def test_a_playlist_says_title_length_and_place():
    text = make_playlist(title="A film", duration_seconds=90.6, film_url=URL)
    assert text.splitlines() == ["#EXTM3U", "#PLAYLIST:A film", "#EXTINF:91,A film", URL]


def test_an_unknown_length_is_minus_one():
    assert "#EXTINF:-1,x" in make_playlist(title="x", duration_seconds=None, film_url=URL)


def test_subtitles_are_hinted_at_in_their_order():
    text = make_playlist(
        title="x", duration_seconds=1, film_url=URL, subtitle_urls=["http://h/0", "http://h/1"]
    )
    assert "#EXTVLCOPT:input-slave=http://h/0#http://h/1\n" in text


@given(st.text(max_size=60))
def test_no_title_adds_a_line(title):
    """A file name comes from strangers: it must not write options or another film into the list."""
    text = make_playlist(title=title, duration_seconds=1, film_url=URL)
    assert len(text.splitlines()) == 4
    assert text.splitlines()[-1] == URL
