import hashlib

import bencode2
import pytest

from tracker.errors import TrackerError
from tracker.permitted import read_permitted, stamp


def test_a_list_has_a_hash_a_line(tmp_path):
    file = tmp_path / "films"
    file.write_text(f"# ours\n{'ab' * 20}\n\n{'CD' * 20}  # the second\n")
    assert read_permitted(file) == {b"\xab" * 20, b"\xcd" * 20}


def test_a_folder_has_torrents(tmp_path):
    info = {b"name": b"film", b"piece length": 16384, b"pieces": b"x" * 20, b"length": 5}
    (tmp_path / "film.torrent").write_bytes(bencode2.bencode({b"info": info}))
    (tmp_path / "readme").write_text("no film")
    expected = hashlib.sha1(bencode2.bencode(info)).digest()
    assert read_permitted(tmp_path) == {expected}


@pytest.mark.parametrize("line", ["abc", "ab" * 21, "zz" * 20])
def test_a_line_that_is_no_hash_is_named(tmp_path, line):
    file = tmp_path / "films"
    file.write_text(f"{'ab' * 20}\n{line}\n")
    with pytest.raises(TrackerError, match="line 2"):
        read_permitted(file)


@pytest.mark.parametrize("content", [b"", b"d", b"i5e", b"de", b"d4:infoi5e"])
def test_a_file_that_is_no_torrent_is_named(tmp_path, content):
    (tmp_path / "broken.torrent").write_bytes(content)
    with pytest.raises(TrackerError, match=r"broken\.torrent is no"):
        read_permitted(tmp_path)


def test_a_list_that_is_not_there_is_one_clear_line(tmp_path):
    with pytest.raises(TrackerError, match="cannot be read"):
        read_permitted(tmp_path / "nowhere")
    assert stamp(tmp_path / "nowhere") is None


def test_a_change_is_seen(tmp_path):
    file = tmp_path / "films"
    file.write_text("")
    before = stamp(file)
    assert stamp(file) == before
    file.write_text("ab" * 20)
    assert stamp(file) != before
