"""The access log: whole lines of what was asked, whatever was asked, and never a wait."""

import dataclasses
import json
import os
import re
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vodserver.errors import ServeUsageError
from vodserver.http.access_log import AccessEntry, AccessLog, combined_line, json_line

ENTRY = AccessEntry(
    at=1_790_000_000.25,
    peer="192.0.2.7",
    method="GET",
    target="/titles/clock/content?x=1",
    version="HTTP/1.1",
    status=206,
    sent_bytes=4096,
    seconds=0.0125,
    referer="http://films.example/",
    agent="player/1.0 (a box)",
)


def test_the_combined_format_is_what_log_readers_read():
    assert combined_line(ENTRY) == (
        "192.0.2.7 - - [21/Sep/2026:14:13:20 +0000] "
        '"GET /titles/clock/content?x=1 HTTP/1.1" 206 4096 '
        '"http://films.example/" "player/1.0 (a box)"'
    )
    bare = dataclasses.replace(ENTRY, referer="", agent="")
    assert combined_line(bare).endswith('206 4096 "-" "-"')


def test_a_json_line_has_every_fact():
    told = json.loads(json_line(ENTRY))

    assert told == dataclasses.asdict(ENTRY)


@given(
    target=st.text(max_size=600),
    agent=st.text(max_size=600),
    method=st.text(max_size=20),
    referer=st.text(max_size=20),
)
def test_nothing_that_a_client_sends_makes_a_line_of_its_own(target, agent, method, referer):
    entry = dataclasses.replace(ENTRY, target=target, agent=agent, method=method, referer=referer)

    combined, as_json = combined_line(entry), json_line(entry)

    for line in (combined, as_json):
        assert line.isascii()
        assert line.isprintable()
        assert len(line) < 25_000
    assert combined.count('"') == 6
    assert re.search(r'" 206 4096 "', combined)
    assert json.loads(as_json)["status"] == 206


def lines_of(path):
    return path.read_text("ascii").splitlines()


def test_entries_are_written_in_their_order(tmp_path):
    path = tmp_path / "access.log"
    path.write_text("what was there before\n")
    log = AccessLog(str(path))
    for number in range(2500):
        log.note(dataclasses.replace(ENTRY, sent_bytes=number))
    log.close()

    first, *rest = lines_of(path)
    assert first == "what was there before"
    assert [int(line.split(" 206 ")[1].split()[0]) for line in rest] == list(range(2500))
    assert log.dropped == 0


def test_standard_output_is_a_dash(capsys):
    log = AccessLog("-", "json")
    log.note(ENTRY)
    log.close()

    assert json.loads(capsys.readouterr().out)["peer"] == "192.0.2.7"


def test_a_renamed_log_is_left_for_a_new_one_when_told(tmp_path):
    path = tmp_path / "access.log"
    log = AccessLog(str(path), "json")
    log.note(ENTRY)
    log.close()
    log = AccessLog(str(path), "json")
    path.rename(tmp_path / "access.log.1")
    log.reopen()
    log.note(dataclasses.replace(ENTRY, status=404))
    log.close()

    assert len(lines_of(tmp_path / "access.log.1")) == 1
    assert json.loads(lines_of(path)[0])["status"] == 404


@pytest.mark.slow
def test_a_log_that_cannot_be_written_drops_and_counts_and_blocks_nobody(tmp_path):
    """A pipe that nobody reads stands for a disk that hangs."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reading = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    log = AccessLog(str(path), most_waiting=100)
    noted = threading.Event()

    def note_many():
        for _ in range(20_000):
            log.note(ENTRY)
        noted.set()

    threading.Thread(target=note_many, daemon=True).start()

    assert noted.wait(10)
    assert log.dropped > 10_000
    assert log._entries.qsize() <= 100
    os.close(reading)  # what hangs in the pipe fails now, and is counted too
    log.close()
    assert not log._thread.is_alive()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")  # noqa: PTH110
def test_a_full_disk_is_told_once(caplog):
    log = AccessLog("/dev/full")
    for _ in range(3):
        log.note(ENTRY)
        while log._entries.qsize():
            pass
    log.close()

    assert log.dropped == 3
    assert caplog.text.count("cannot be written") == 1


@pytest.mark.parametrize("name", ["", "no/such/folder/log"])
def test_a_log_that_cannot_be_opened_is_one_clear_line(tmp_path, name):
    with pytest.raises(ServeUsageError, match="cannot write the access log"):
        AccessLog(str(tmp_path / name))


def test_an_unknown_format_is_one_clear_line(tmp_path):
    with pytest.raises(ServeUsageError, match="combined, json"):
        AccessLog(str(tmp_path / "log"), "xml")
