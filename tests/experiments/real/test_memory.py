"""What a run holds."""

import os
from pathlib import Path

import pytest

from experiments.real.memory import (
    MEMORY_FOLDER,
    free_bytes,
    held_bytes,
    in_memory,
    stay_in_memory,
    stored_bytes,
)


def test_a_program_holds_memory_and_one_that_is_gone_none():
    own = held_bytes([os.getpid()])
    assert own > 1 << 20
    assert held_bytes([1 << 30]) == 0


def test_holes_do_not_count_and_links_count_once(tmp_path):
    (tmp_path / "deep").mkdir()
    with (tmp_path / "deep" / "film").open("wb") as file:
        file.write(bytes(65536))
        file.truncate(1 << 30)
    before = stored_bytes(tmp_path)
    os.link(tmp_path / "deep" / "film", tmp_path / "again")

    assert 65536 <= before < 1 << 20
    assert stored_bytes(tmp_path) == before


def test_a_folder_that_has_just_gone_holds_nothing(tmp_path):
    assert stored_bytes(tmp_path / "gone") == 0


@pytest.mark.skipif(not MEMORY_FOLDER.is_dir(), reason="no file system in memory here")
def test_files_in_memory_are_known():
    assert in_memory(MEMORY_FOLDER)
    assert not in_memory(Path("/proc"))


def test_there_is_room_somewhere(tmp_path):
    assert 0 < free_bytes(tmp_path) < 1 << 60


@pytest.mark.parametrize(("answer", "stays"), [(0, True), (-1, False)])
def test_what_measures_time_stays_in_memory_if_it_may(monkeypatch, answer, stays):
    asked = []

    class Library:
        def __init__(self, _):
            pass

        def mlockall(self, flags):
            asked.append(flags)
            return answer

    monkeypatch.setattr("experiments.real.memory.ctypes.CDLL", Library)
    assert stay_in_memory() is stays
    assert asked == [7]
