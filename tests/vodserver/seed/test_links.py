"""Links that libtorrent opens, and that are changed under it."""

import pytest

from vodserver.seed.links import Links


@pytest.fixture
def links(tmp_path):
    links = Links()
    links.open(tmp_path / "seed")
    return links


def files(tmp_path, *names):
    for name in names:
        (tmp_path / name).write_text(name)
    return [str(tmp_path / name) for name in names]


def test_a_link_leads_to_one_file_and_then_to_another(links, tmp_path):
    first, second = files(tmp_path, "first", "second")
    links.point("f", 3, first)
    before = links.path("f", 3).read_text()
    links.point("f", 3, second)

    assert (before, links.path("f", 3).read_text()) == ("first", "second")
    assert [path.name for path in links.path("f", 3).parent.iterdir()] == ["000003"]


def test_who_opened_the_old_file_reads_it_on(links, tmp_path):
    first, second = files(tmp_path, "first", "second")
    links.point("f", 0, first)
    with links.path("f", 0).open() as file:
        links.point("f", 0, second)

        assert file.read() == "first"


def test_a_link_may_lead_nowhere(links):
    links.point("f", 0, None)

    with pytest.raises(FileNotFoundError):
        links.path("f", 0).read_text()


def test_the_extent_of_a_link_is_told_and_of_nothing_else(links, tmp_path):
    assert links.extent_of(links.path("f", 12)) == ("f", 12)
    assert links.extent_of(tmp_path / "f" / "000012") is None
    assert links.extent_of(links.path("f", 12).with_name("nowhere")) is None


def test_what_a_killed_process_left_is_cleared_away(links, tmp_path):
    (path,) = files(tmp_path, "kept")
    links.point("f", 0, path)
    (tmp_path / "seed" / "f" / "000000.new").symlink_to("whatever")

    Links().open(tmp_path / "seed")

    assert list((tmp_path / "seed").iterdir()) == []
    assert (tmp_path / "kept").read_text() == "kept"


def test_a_draft_that_was_left_is_no_obstacle(links, tmp_path):
    (path,) = files(tmp_path, "kept")
    links.point("f", 0, None)
    links.path("f", 0).with_suffix(".new").symlink_to("whatever")
    links.point("f", 0, path)

    assert links.path("f", 0).read_text() == "kept"


def test_a_link_in_the_directory_s_place_is_not_followed(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "precious").write_text("")
    (tmp_path / "seed").symlink_to(tmp_path / "elsewhere")

    Links().open(tmp_path / "seed")

    assert (tmp_path / "elsewhere" / "precious").exists()
    assert not (tmp_path / "seed").is_symlink()


def test_dropping_a_title_and_closing_leave_nothing(links, tmp_path):
    (path,) = files(tmp_path, "kept")
    links.point("f", 0, path)
    links.point("g", 0, path)
    links.drop("f")
    left = [each.name for each in (tmp_path / "seed").iterdir()]
    links.close()

    assert left == ["g"]
    assert not (tmp_path / "seed").exists()
    assert (tmp_path / "kept").exists()
