"""Runs `vodserver` in processes that kill themselves at a given step. Jobs on standard input.

A step is a moment after which a disk or the catalog may be another: a file of the store is opened
to be written, written (half of it), flushed, renamed or removed, a directory is made or removed,
a statement changes the catalog, a transaction begins or commits. Killing before every one of them
covers what lies after every other.

A job is a line of JSON: {"argv": [...], "kill_at": N, "folder": DIR, "log": FILE}; with 0 the
program lives. The answer is {"status": N, "steps": N}; the status is negative for a signal. Each
program is a fork of this process, which has everything imported and no thread.
"""

import builtins
import json
import os
import signal
import sqlite3
import sys
import threading

from vodserver.cli import main

CHANGES = ("BEGIN", "COMMIT", "INSERT", "UPDATE", "DELETE", "ALTER", "CREATE", "DROP")
EVENTS = {"os.mkdir", "os.rename", "os.remove", "os.rmdir"}


class Mortal:
    """Counts steps, and kills this process at one of them."""

    def __init__(self, kill_at, folder):
        self.kill_at = kill_at
        self.folder = folder
        self.steps = 0
        self._lock = threading.Lock()
        self._write, self._fsync = os.write, os.fsync
        self._connect = sqlite3.connect

    def install(self):
        os.write, os.fsync = self.write, self.fsync
        sqlite3.connect = self.connect
        sys.addaudithook(self.audit)

    def step(self, before_death=None):
        with self._lock:
            self.steps += 1
            if self.steps == self.kill_at:
                if before_death is not None:
                    before_death()
                os.kill(os.getpid(), signal.SIGKILL)
                signal.pause()

    def audit(self, event, arguments):
        if event == "open":
            path, _, flags = arguments
            writes = isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR)
            if writes and str(path).startswith(self.folder):
                self.step()
        elif event in EVENTS:
            self.step()

    def write(self, fd, data):
        if len(data) > 4096:  # of an extent, and not a word to another thread or program
            self.step(lambda: self._write(fd, data[: len(data) // 2]))
        return self._write(fd, data)

    def fsync(self, fd):
        self.step()
        return self._fsync(fd)

    def connect(self, *arguments, **options):
        db = self._connect(*arguments, **options)
        db.set_trace_callback(self.trace)
        return db

    def trace(self, statement):
        if statement.startswith(CHANGES):
            self.step()


def run(job, report):
    """In the fork: the program, to its end or to its death."""
    log = os.open(job["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for fd in (1, 2):
        os.dup2(log, fd)
    sys.stdin = builtins.open(os.devnull)  # noqa: SIM115, PTH123 - until the process ends
    mortal = Mortal(job["kill_at"], job["folder"])
    mortal.install()
    sys.argv = ["vodserver", *job["argv"]]
    status = 1
    try:
        main()
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else 1
    finally:
        sys.stdout.flush()
        os.write(report, str(mortal.steps).encode())
        os._exit(status)


def serve():
    """Answer jobs until there are no more."""
    for line in sys.stdin:
        job = json.loads(line)
        hear, tell = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(hear)
            run(job, tell)
        os.close(tell)
        steps = os.read(hear, 100)
        os.close(hear)
        _, status = os.waitpid(child, 0)
        answer = {"status": os.waitstatus_to_exitcode(status), "steps": int(steps or 0)}
        print(json.dumps(answer), flush=True)  # noqa: T201 - the answer


if __name__ == "__main__":
    serve()
