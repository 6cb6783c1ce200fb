"""Languages in file names."""

import pytest

from toast.media.languages import find_language


@pytest.mark.parametrize(
    ("words", "tag"),
    [
        (["en"], "en"),
        (["ENG"], "en"),
        (["2", "French"], "fr"),
        (["fre"], "fr"),
        (["fra"], "fr"),
        (["pt", "br"], "pt-BR"),
        (["por", "br"], "pt"),
        (["en", "hi"], "en"),
        (["hi"], "hi"),
        (["cut", "sv"], "sv"),
    ],
)
def test_a_word_names_a_language(words, tag):
    found = find_language(words)
    assert found is not None
    assert found.tag == tag


@pytest.mark.parametrize("words", [[], [""], ["directors", "cut"], ["xx"]])
def test_other_words_name_none(words):
    assert find_language(words) is None
