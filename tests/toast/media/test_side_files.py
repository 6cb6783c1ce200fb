"""Which files beside a film are its subtitles."""

import os

import pytest

from toast.media.errors import SubtitleError
from toast.media.side_files import SideFiles, find_subtitles


@pytest.fixture
def film(tmp_path):
    """A film in a folder with another one."""
    for name in ("Film.mkv", "Other.mp4"):
        (tmp_path / name).touch()
    return tmp_path / "Film.mkv"


def put(film, *names):
    for name in names:
        path = film.parent / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("1\n")


def found(film):
    return [str(each.path.relative_to(film.parent)) for each in find_subtitles(film)]


def test_those_beside_the_film_that_have_its_name(film):
    put(film, "Film.srt", "film.en.VTT", "Other.srt", "Filmed.srt", "Film.txt", "Film.mkv.srt")
    assert found(film) == ["Film.mkv.srt", "Film.srt", "film.en.VTT"]


def test_those_in_a_folder_for_subtitles(film):
    put(film, "Subs/Film.de.srt", "Subs/Film/2_English.srt", "Subs/Other.srt", "More/Film.srt")
    put(film, "subtitles/Film.fr.srt", "Subs/Film/deep/er.srt")
    assert found(film) == ["Subs/Film/2_English.srt", "Subs/Film.de.srt", "subtitles/Film.fr.srt"]


def test_all_of_them_where_the_film_is_alone(film):
    (film.parent / "Other.mp4").unlink()
    put(film, "Subs/English.srt", "Subs/2_German.srt", "unrelated.srt")
    assert found(film) == ["Subs/2_German.srt", "Subs/English.srt"]


@pytest.mark.parametrize(
    ("name", "label", "language"),
    [
        ("Film.srt", "Subtitles", None),
        ("Film.en.srt", "English", "en"),
        ("Film.ger.srt", "German", "de"),
        ("Film.pt-BR.vtt", "Portuguese (Brazil)", "pt-BR"),
        ("Film.English.forced.srt", "English (forced)", "en"),
        ("Film.eng.SDH.srt", "English (SDH)", "en"),
        ("Film.en.hi.srt", "English (SDH)", "en"),
        ("Film.Director's cut.srt", "Director's cut", None),
        ("Subs/Film/2_English.srt", "English", "en"),
    ],
)
def test_names_say_which_they_are(film, name, label, language):
    put(film, name)
    (each,) = find_subtitles(film)
    assert (each.label, each.language) == (label, language)
    assert each.file_name == name.rpartition("/")[2]


def test_nothing_outside_the_folder_is_reached(film, tmp_path_factory):
    """Links are not followed, neither to files nor to folders; nor is what only looks like one."""
    outside = tmp_path_factory.mktemp("outside")
    (outside / "Film.srt").write_text("secret")
    (film.parent / "Film.en.srt").symlink_to(outside / "Film.srt")
    (film.parent / "Subs").symlink_to(outside)
    (film.parent / "Film.srt").mkdir()
    os.mkfifo(film.parent / "Film.de.srt")
    assert found(film) == []


async def test_a_file_that_becomes_a_link_or_a_pipe_is_not_read(film, tmp_path_factory):
    put(film, "Film.srt", "Film.de.srt")
    pipe, link = find_subtitles(film)
    secret = tmp_path_factory.mktemp("outside") / "secret"
    secret.write_text("secret")
    link.path.unlink()
    link.path.symlink_to(secret)
    pipe.path.unlink()
    os.mkfifo(pipe.path)
    for each in (pipe, link):
        with pytest.raises(SubtitleError, match=each.file_name):
            await each.load()


async def test_files_are_read_up_to_a_bound(film):
    put(film, "Film.srt")
    (each,) = find_subtitles(film)
    assert await each.load() == b"1\n"
    with each.path.open("wb") as file:
        file.truncate(4 * 1024 * 1024 + 1)
    with pytest.raises(SubtitleError, match="too large"):
        await each.load()
    each.path.unlink()
    with pytest.raises(SubtitleError, match="cannot be read"):
        await each.load()


def test_a_folder_that_is_not_there_has_none(tmp_path):
    assert find_subtitles(tmp_path / "nowhere" / "Film.mkv") == []


def test_there_are_only_so_many(film):
    put(film, *(f"Film.{number:03d}.srt" for number in range(80)))
    assert len(find_subtitles(film)) == 64
    assert len(SideFiles(film).list()) == 64


def test_a_number_never_comes_to_mean_another_file(film):
    """What comes later is added at the end, and what goes leaves its place."""
    now = [0.0]
    files = SideFiles(film, clock=lambda: now[0])
    put(film, "Film.en.srt")
    assert [each.label for each in files.list()] == ["English"]
    put(film, "Film.de.srt")
    assert len(files.list()) == 1  # two seconds have not passed
    now[0] = 2.0
    assert [each.label for each in files.list()] == ["English", "German"]
    (film.parent / "Film.en.srt").unlink()
    now[0] = 4.0
    assert [each.label for each in files.list()] == ["English", "German"]
