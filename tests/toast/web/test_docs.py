"""docs/desktop.md names every key of the page, and every source of pieces as the page does."""

import re
from pathlib import Path

import pytest

from toast.viewer import PieceSource
from toast.web import PAGE_FILES

PAGE = (Path(__file__).parents[3] / "docs/desktop.md").read_text("utf-8")


def source(name):
    return PAGE_FILES[name].content.decode("utf-8")


def section(title):
    return PAGE.split(f"### {title}\n")[1].split("\n#")[0]


KEYS = re.findall(r'shown: "([^"]+)", does: "([^"]+)"', source("keys.js"))
KEYS += re.findall(r'^  \["([^"]+)", "([^"]+)"\],$', source("keys.js"), re.MULTILINE)


@pytest.mark.parametrize(("shown", "does"), KEYS)
def test_every_key_is_in_the_table(shown, does):
    rows = re.findall(r"^\| (.+) \| (.+) \|$", section("Keys"), re.MULTILINE)
    assert any(shown in keys and does in what for keys, what in rows)


def test_there_are_keys_to_look_for():
    assert len(KEYS) == 19


def test_every_source_of_pieces_is_explained_in_the_pages_own_words():
    told = re.findall(r'key: "(\w+)", label: "([^"]+)", means: "([^"]+)"', source("sources.js"))
    assert [key.upper() for key, *_ in told] == [each.name for each in PieceSource]
    for _, label, means in told:
        assert re.search(
            rf"^\| \*\*{re.escape(label)}\*\* \| [^|]+ \| {re.escape(means)} \|$",
            section("What the colours of the pieces mean"),
            re.MULTILINE,
        ), label
