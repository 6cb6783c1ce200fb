"""The log's own process: lines of a tracker that runs, in a file that may come and go."""

import asyncio
import io
import logging
import marshal
import signal
import time

import pytest

from tests.tracker.asking import HASH, announce, until
from tracker import log_writer
from tracker.server import serve_tracker
from tracker.settings import TrackerSettings

SETTINGS = TrackerSettings(port=0)
LINE = (1.0, 0, (127 << 40) + 7, "udp", "announce", HASH, False)


def frame(*content):
    data = marshal.dumps(content)
    return len(data).to_bytes(4, "big") + data


@pytest.mark.slow
async def test_each_announce_and_each_refusal_is_a_line(tmp_path):
    file = tmp_path / "log"
    async with serve_tracker(SETTINGS, 1, log=file) as server:
        await announce(server, extra="&event=started")
        await announce(server, extra="&numwant=many")
    started, refused = file.read_text().splitlines()
    when, rest = started.split(" ", 1)
    assert abs(float(when) - time.time()) < 60
    assert rest == f"127.0.0.1:7001 http started {HASH.hex()} incomplete"
    assert refused.split(" ", 1)[1].startswith("127.0.0.1 http refused numwant")
    assert asyncio.all_tasks() == {asyncio.current_task()}


@pytest.mark.slow
async def test_a_writer_that_is_killed_is_started_anew(tmp_path, monkeypatch):
    monkeypatch.setattr(log_writer, "_EVERY_SECONDS", 0.01)
    writers = []
    start = log_writer._start

    async def spied(file):
        writers.append(await start(file))
        return writers[-1]

    monkeypatch.setattr(log_writer, "_start", spied)
    file = tmp_path / "log"
    async with serve_tracker(SETTINGS, 1, log=file) as server:
        await announce(server)
        await until(file.exists)
        writers[0].send_signal(signal.SIGKILL)
        await writers[0].wait()
        await announce(server, port=7002)
        await until(lambda: ":7002 " in file.read_text())
    assert len(writers) == 2


def test_the_file_may_be_moved_away(tmp_path):
    file = tmp_path / "log"

    class Frames(io.BytesIO):
        def read(self, size=-1):
            if file.exists() and size == 4:
                file.rename(tmp_path / "log.1")
            return super().read(size)

    log_writer.write_frames(Frames(frame([LINE], 0.0, 0) + frame([LINE] * 2, 0.0, 5)), file)
    assert (tmp_path / "log.1").read_text().count("announce") == 2
    assert "5 more there was no room for" in (tmp_path / "log.1").read_text()


def test_a_file_that_cannot_be_written_is_said_once(tmp_path, caplog):
    caplog.set_level(logging.WARNING)
    frames = io.BytesIO(frame([LINE], 0.0, 0) * 3)
    log_writer.write_frames(frames, tmp_path / "no" / "log")
    assert caplog.text.count("cannot be written: No such file") == 1


def test_half_a_frame_ends_it(tmp_path):
    whole = frame([LINE], 0.0, 0)
    log_writer.write_frames(io.BytesIO(whole + whole[:-1]), tmp_path / "log")
    assert (tmp_path / "log").read_text().count("announce") == 1
