"""Lines of the log: who, what, when, in one line each, and no more than there is room for."""

from tracker.access_log import AccessLog, format_lines
from tracker.swarm import key_of

FILM = bytes(range(20))


def test_lines_are_written_out():
    six = key_of(bytes.fromhex("20010db8000000000000000000000001"), 6881)
    lines = [
        (1.5, 0, key_of(bytes([198, 51, 100, 7]), 6881), "udp", "completed", FILM, True),
        (2.0, 1, six, "http", "announce", FILM, False),
        (2.0, 0, key_of(bytes([198, 51, 100, 7]), 0), "udp", "no\nsuch\x1b[31m film", None, False),
    ]
    assert format_lines(lines, 1000.0, {}).splitlines() == [
        f"1001.500 198.51.100.7:6881 udp completed {FILM.hex()} complete",
        f"1002.000 [2001:db8::1]:6881 http announce {FILM.hex()} incomplete",
        "1002.000 198.51.100.7 udp refused no?such?[31m film",
    ]


def test_no_more_is_kept_than_there_is_room_for():
    log = AccessLog(2)
    for _ in range(3):
        log.add((0.0, 0, 1, "udp", "announce", FILM, False))
    lines, dropped = log.take()
    assert (len(lines), dropped) == (2, 1)
    assert log.take() == ([], 0)
