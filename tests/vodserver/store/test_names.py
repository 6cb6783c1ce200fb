"""Any name becomes one that can be shown, and an id that can stand in a URL."""

from hypothesis import given
from hypothesis import strategies as st

from vodserver.errors import FilmError
from vodserver.store.names import clean_name, title_id


@given(st.text(max_size=300))
def test_any_name_is_cleaned_or_refused(name):
    try:
        cleaned = clean_name(name)
    except FilmError:
        assert not any(c.isalnum() for c in name)
        return
    assert cleaned == cleaned.strip()
    assert 0 < len(cleaned) <= 200
    assert cleaned not in {".", ".."}
    assert not set(cleaned) & set("/\\\0\n\r\t")
    assert clean_name(cleaned) == cleaned


@given(st.text(min_size=1, max_size=300), st.sets(st.sampled_from(["film", "film-2", "a"])))
def test_any_title_gets_an_id_that_is_free_and_safe_in_a_url(name, taken):
    found = title_id(name, taken)

    assert found not in taken
    assert 0 < len(found) <= 60
    assert set(found) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
