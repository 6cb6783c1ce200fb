"""What must be shown: cells, each a command and what must be true of its figures. Pure."""

import contextlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from experiments.cell import Cell, Check

__all__ = ["CELLS", "Cell", "Check", "judge", "read_outcome"]

_COUNTS = re.compile(r"(\d+) (passed|failed|errors?|skipped|deselected|xfailed|xpassed)\b")


_WELL = (Check("stalls", "=", 0), Check("verified", "=", True))
_DEMO = ("toast-lab", "demo", "--json")
_TESTS = ("pytest", "-q", "-p", "no:cacheprovider")
_FULL = (*_TESTS, "--full")
_TUN = "tests/lab/test_netem_tun.py"
_ACCURACY = "tests/lab/test_netem_accuracy.py"
_ALL_PASS = (Check("passed", ">=", 1), Check("failed", "=", 0), Check("skipped", "=", 0))


def _none(*names: str) -> tuple[Check, ...]:
    return tuple(Check(name, "=", 0) for name in names)


def _picker(name: str, share: float) -> Cell:
    return Cell(
        f"picker-{name}",
        f"what is asked of peers is what the {name} picker chose",
        (*_DEMO, "--picker", name),
        (*_WELL, Check("choice_share", ">=", share)),
    )


def _speed(name: str, shows: str, *options: str) -> Cell:
    """Ranges of every size as fast as nginx with sendfile gives them, small ones half as fast."""
    command = ("python", "benchmarks/bench_server.py", "--json", "--seconds", "2", "--rounds", "5")
    return Cell(
        name,
        shows,
        (*command, *options),
        (
            *_none("invalid_cells"),
            Check("throughput_ratio_default_64k_min", ">=", 0.5),
            *(Check(f"throughput_ratio_default_{size}_min", ">=", 1.0) for size in _LARGE),
            *(Check(f"p99_ratio_default_{size}_max", "<=", 2.0) for size in ("64k", *_LARGE)),
        ),
        limit_seconds=1200.0,
    )


_LARGE: Final = ("256k", "1m", "4m")

CELLS: Final[tuple[Cell, ...]] = (
    Cell(
        "demo",
        "the demonstration as it is, within five minutes; hybrid picker",
        _DEMO,
        (
            *_WELL,
            Check("decode_errors", "=", 0),
            Check("upload_cap_respected", "=", True),
            Check("start_seconds_p95", "<=", 1.0),
            Check("offload", ">=", 0.60),
            Check("choice_share", ">=", 0.80),
            Check("receipts_agree", "=", True),
            *(
                Check(name, ">=", 0)
                for name in (
                    *("viewers", "film_bytes", "bound", "copies", "waste"),
                    *("stall_seconds", "start_seconds_p50"),
                )
            ),
        ),
        limit_seconds=300.0,
    ),
    Cell(
        "demo-20",
        "twenty viewers with half the film's rate to give",
        (*_DEMO, "--viewers", "20", "--upload", "1Mbps", "--picker", "in-order"),
        _WELL,
    ),
    Cell(
        "demo-no-seed",
        "without the operator's seed",
        (*_DEMO, "--no-seed"),
        (*_WELL, Check("operator_seed_bytes", "=", 0)),
    ),
    _picker("in-order", 0.90),
    _picker("rarest-first", 0.80),
    _picker("beta", 0.80),
    _picker("hybrid", 0.80),
    Cell(
        "plenty",
        "ten viewers with four times the film's rate to give: next to nothing is sent twice",
        (*_DEMO, "--viewers", "10", "--spacing", "3", "--upload", "8Mbps"),
        (
            *_WELL,
            Check("waste", "<=", 0.02),
            Check("offload", ">=", 0.80),
            Check("regretted_bytes", ">=", 0),
        ),
    ),
    Cell(
        "discipline",
        "who quits at a tenth, alone or among peers; a budget that is spent",
        (*_FULL, "tests/lab/test_origin_discipline.py"),
        (
            *_ALL_PASS,
            Check("quit_alone_seconds_beyond", "<=", 15.0),
            Check("quit_among_peers_seconds_beyond", "<=", 15.0),
            Check("budget_over_bytes", "<=", 0),
            Check("budget_stalls", "=", 0),
        ),
    ),
    Cell(
        "netem-tun",
        "an emulated network has the delay, loss and rate that it was asked for",
        (*_FULL, "-k", "not on_uml and not on_kernel", _TUN, "tests/netem", _ACCURACY),
        (
            *_ALL_PASS,
            Check("netem_home_rtt_ms", ">=", 49.5),
            Check("netem_home_rtt_ms", "<=", 50.5),
            Check("netem_home_rate_mbps", ">=", 97.0),
            Check("netem_home_rate_mbps", "<=", 103.0),
            Check("netem_same_seed_same_losses", "=", True),
            Check("netem_forwarder_cpu_share", ">=", 0),
            Check("netem_up_50_hosts_seconds", "<=", 5.0),
            Check("netem_down_50_hosts_seconds", "<=", 2.0),
            Check("netem_tun_wrong", "=", 0),
        ),
    ),
    Cell(
        "netem-uml",
        "the same of real NetEm in user-mode Linux guests, and what these leave",
        (*_FULL, "-k", "not on_tun", "tests/lab/test_netem_uml.py", _ACCURACY),
        (
            *_ALL_PASS,
            Check("guest_seconds", ">=", 0),
            Check("netem_uml_up_50_hosts_seconds", "<=", 5.0),
            Check("netem_uml_down_50_hosts_seconds", "<=", 2.0),
            Check("netem_uml_wrong", "=", 0),
        ),
        limit_seconds=1200.0,
    ),
    Cell(
        "netem-swarm",
        "twenty real viewers over NetEm's 4 ms on all that each machine sends, in a guest",
        (*_FULL, "tests/lab/test_netem_swarm.py"),
        (
            *_ALL_PASS,
            *_none("netem_swarm_stalls"),
            Check("netem_swarm_verified", "=", True),
            Check("netem_swarm_offload", ">=", 0.2),
        ),
    ),
    Cell(
        "never-worse",
        "peers that are slow, silent, poisonous, gone, choking or lying; plain HTTP beside",
        (*_FULL, "tests/lab/test_never_worse.py"),
        (
            *_ALL_PASS,
            *_none("never_worse_stalls", "never_worse_wrong_bytes", "never_worse_refetched_late"),
            Check("never_worse_start_excess_ms", "<=", 100),
            Check("never_worse_poisoners_banned", ">=", 1),
            *(
                Check(f"never_worse_{kind}_bytes_wasted", ">=", 0)
                for kind in ("slow", "silent", "poison", "churn")
            ),
        ),
        limit_seconds=1200.0,
    ),
    Cell(
        "start",
        "the first picture of an hour's film, and the one after a seek, beside plain HTTP; 50 ms",
        (*_FULL, "tests/lab/test_start.py"),
        (
            *_ALL_PASS,
            *(
                Check(f"start_{kind}_{peers}_peers_begin_toast_p50_ms", "<=", 400.0)
                for kind in ("front", "end", "mkv")
                for peers in (0, 10)
            ),
            Check("start_p95_worst_ms", "<=", 800.0),
            Check("start_extra_worst_ms", "<=", 100.0),
            Check("start_p50_worst_ms", ">=", 0.0),
            Check("seek_p95_ms", "<=", 500.0),
            Check("seek_back_bytes", "=", 0),
            Check("seek_back_ms", ">=", 0.0),
        ),
        limit_seconds=2400.0,
    ),
    Cell(
        "failures",
        "servers and viewers are killed in the middle of a film",
        (*_TESTS, "tests/lab/test_failures.py"),
        _ALL_PASS,
    ),
    Cell(
        "one-line-errors",
        "bad films, bad torrents, full disks, taken ports",
        (*_TESTS, "tests/lab/test_one_line_errors.py"),
        _ALL_PASS,
    ),
    Cell(
        "interop",
        "stock BitTorrent clients get the film, bit-identical",
        (*_TESTS, "tests/interop/test_aria2.py", "tests/interop/test_transmission.py"),
        _ALL_PASS,
    ),
    Cell(
        "http-ranges",
        "every rule of ranges, from the RFC, Go and nginx, over sockets, nginx beside",
        (*_FULL, "tests/toast/common", "tests/interop/test_http_ranges.py"),
        (
            *_ALL_PASS,
            Check("rfc9110_rows_ours_passed", ">=", 64),
            Check("go_rows_ours_passed", ">=", 22),
            Check("nginx_rows_ours_passed", ">=", 36),
        ),
    ),
    Cell(
        "http-clients",
        "curl, ffmpeg, aria2 and Chromium's video element play and load from the server",
        (*_FULL, "tests/interop/test_http_clients.py"),
        _ALL_PASS,
    ),
    Cell(
        "http-hostile",
        "traversal, smuggling, slow, deaf and ten thousand idle clients, forged and expired links",
        (*_FULL, "tests/lab/test_hostile_http.py", "tests/lab/test_hostile_links.py"),
        (
            *_ALL_PASS,
            *_none("honest_wrong_bytes", "honest_failures", "slowloris_left"),
            Check("idle_connections", ">=", 10_000),
            Check("hostile_rss_mb_after", "<=", 400),
        ),
    ),
    _speed("server-speed", "ranges of a cached film, nginx beside; the server's core is full"),
    _speed(
        "server-speed-wrk", "the same asked for by wrk, whose core is full first", "--load", "wrk"
    ),
    Cell(
        "slow-disk",
        "a disk that takes its time holds up neither the event loop nor other films",
        (*_FULL, "tests/lab/test_slow_disk.py"),
        _ALL_PASS,
    ),
    Cell(
        "crashes",
        "killed at any point, the store loses nothing and shows nothing unfinished",
        (*_FULL, "tests/lab/test_crashes.py"),
        (
            *_ALL_PASS,
            Check("kills", ">=", 100),
            *_none("lost_titles", "partial_titles", "fsck_unclean", "not_resumed"),
        ),
        limit_seconds=1200.0,
    ),
    Cell(
        "disk-loss",
        "one of four disks is deleted under load, and replaced",
        (*_FULL, "tests/lab/test_disk_loss.py"),
        (
            *_ALL_PASS,
            *_none(
                *(f"{what}_wrong_bytes" for what in ("disk_loss", "disk_errors", "mount_vanished")),
                *(f"{what}_failed_requests" for what in ("disk_loss", "disk_errors")),
                "mount_vanished_failed_requests",
            ),
            Check("disk_loss_progress_lines", ">=", 10),
        ),
    ),
    Cell(
        "rot",
        "rot in one replica of every hundredth extent, there at the start and while running",
        (*_FULL, "tests/lab/test_rot.py"),
        (
            *_ALL_PASS,
            *_none("rot_wrong_bytes", "rot_failed_requests", "rot_seed_bans"),
            *_none("rot_replicas_in_the_end_bad"),
            Check("rot_at_start_repaired", ">=", 4),
            Check("rot_while_running_repaired", ">=", 4),
        ),
    ),
    Cell(
        "seed-faults",
        "replicas fail under the seed while peers load from it",
        (*_FULL, "tests/lab/test_seed_faults.py", "tests/lab/test_seed_many.py"),
        _ALL_PASS,
    ),
    Cell(
        "streams",
        "paced streams that are let in never starve, and the next one is told when to come back",
        (*_FULL, "tests/lab/test_streams.py"),
        (*_ALL_PASS, *_none("stream_wrong_films", "stream_starvation_incidents")),
    ),
    Cell(
        "web-viewer",
        "the web viewer in Chromium: start, seeks, subtitles, reload, every state; its picture",
        (*_FULL, "tests/interop/test_web_viewer.py", "tests/toast/web"),
        (
            *_ALL_PASS,
            *_none("web_stalls"),
            Check("web_start_seconds", "<=", 3.0),
            Check("web_seek_forward_seconds", "<=", 1.0),
            Check("web_seek_back_seconds", "<=", 1.0),
        ),
    ),
    Cell(
        "workers",
        "several processes on one port, one that reads the disks",
        (*_FULL, "tests/lab/test_workers.py"),
        _ALL_PASS,
    ),
    Cell(
        "limited-buffer",
        "viewers that keep a quarter of the film see it whole, feed each other, and step back",
        (*_FULL, "tests/lab/test_limited_buffer.py"),
        (
            *_ALL_PASS,
            *_none("buffer_over_bound_bytes", "buffer_wrong_films", "buffer_bans"),
            Check("ejected_served_again_by_server", ">=", 1),
            Check("ejected_served_again_by_peers", ">=", 1),
            Check("buffer_offload", ">=", 0.3),
        ),
    ),
    Cell(
        "wake-up",
        "from a finished piece to its bytes on the player's socket, in a real swarm",
        (*_FULL, "tests/lab/test_wakeup.py"),
        (
            *_ALL_PASS,
            Check("wakeup_seconds_p95", "<=", 0.010),
            Check("wakeup_pieces", ">=", 100),
        ),
    ),
    Cell(
        "players",
        "mpv, FFmpeg, VLC and Chromium play a film whole with two seeks, from a real swarm",
        (*_FULL, "tests/interop/test_players.py"),
        (
            Check("passed", ">=", 4),  # VLC is not on every machine
            Check("failed", "=", 0),
            *(Check(f"{name}_played_whole", "=", True) for name in ("mpv", "ffmpeg", "chromium")),
            Check("ffmpeg_frames", ">=", 1500),
            Check("mpv_stalls", "=", 0),
        ),
    ),
    Cell(
        "gateway-speed",
        "one stream of a full store through the viewer, a file server and a bare socket beside",
        ("python", "benchmarks/bench_gateway.py", "--json", "--rounds", "9"),
        (
            Check("gateway_gbps_p50", ">=", 1.0),
            *(Check(f"{name}_gbps_p50", ">=", 1.0) for name in ("aiohttp", "socket")),
            Check("gateway_gbps_min", ">=", 0.0),
        ),
    ),
    Cell(
        "daemon-crashes",
        "killed at any moment, the daemon loses nothing confirmed; damage is set aside",
        (*_FULL, "tests/lab/test_daemon_kill.py"),
        (
            *_ALL_PASS,
            Check("daemon_kills", ">=", 50),
            Check("daemon_changes_confirmed", ">=", 250),
            *_none("daemon_changes_lost", "daemon_starts_failed"),
            Check("daemon_film_whole", "=", True),
            Check("daemon_films_taken_up_again", "=", 2),
        ),
        limit_seconds=900.0,
    ),
    Cell(
        "daemon-cost",
        "a daemon with ten films and nothing to do, and one with a hundred peers",
        (*_FULL, "tests/lab/test_daemon_cost.py"),
        (
            *_ALL_PASS,
            Check("daemon_idle_films", ">=", 10),
            Check("daemon_idle_cpu_percent", "<=", 2.0),
            Check("daemon_peers", ">=", 100),
            Check("daemon_rss_anon_mb", "<=", 150),
        ),
    ),
    Cell(
        "tracker-speed",
        "announces over UDP beside opentracker, over HTTP; memory of a million peers",
        ("python", "benchmarks/bench_tracker.py", "--json", "--rounds", "60"),
        (
            *_none("udp_refused", "udp_logged_refused", "http_refused"),
            Check("udp_log_cost", "<=", 0.1),
            Check("udp_answers_per_cpu_second_at_full_speed", ">=", 60_000),
            Check("http_answers_per_cpu_second_at_full_speed", ">=", 15_000),
            Check("bytes_per_peer", "<=", 250),
            Check("bytes_per_peer_with_playheads", "<=", 250),
            Check("udp_ratio_to_opentracker", ">=", 0.25),
        ),
    ),
    Cell(
        "tracker-hostile",
        "a million mutated datagrams and requests; a kill and a restart under load",
        (*_FULL, "tests/tracker/test_fuzz.py", "tests/tracker/test_restart.py"),
        (
            *_ALL_PASS,
            *_none("fuzz_escaped_exceptions"),
            Check("fuzz_worst_amplification_unproved", "<=", 1.0),
            Check("restart_whole_after_intervals", "<=", 1.0),
        ),
    ),
    Cell(
        "tracker-restart",
        "the tracker is killed, and started again, while real viewers watch",
        (*_FULL, "tests/lab/test_tracker_restart.py"),
        (
            *_ALL_PASS,
            *_none("restart_real_stalls"),
            Check("restart_real_whole_after_intervals", "<=", 1.0),
        ),
    ),
    Cell(
        "tracker-clients",
        "aria2, Transmission and libtorrent exchange a film through it: HTTP, UDP, IPv4, IPv6",
        (*_TESTS, "tests/interop/test_tracker.py"),
        _ALL_PASS,
    ),
)
"""All that must be shown, in the order in which it is obtained."""


def judge(cell: Cell, exit_code: int, figures: Mapping[str, Any], seconds: float) -> list[str]:
    """What of a cell does not hold, in words; empty if all does."""
    wrong = [] if exit_code == 0 else [f"its exit code is {exit_code}"]
    if seconds > cell.limit_seconds:
        wrong.append(f"it took longer than {cell.limit_seconds:g} s")
    return wrong + [failure for check in cell.checks if (failure := check.failure(figures))]


def read_outcome(lines: Sequence[str]) -> dict[str, Any]:
    """The figures in what a program printed: its last JSON object, or pytest's counts."""
    for line in reversed(lines):
        with contextlib.suppress(ValueError):
            value = json.loads(line)
            if isinstance(value, dict):
                return value
    for line in reversed(lines):
        counts = {what.rstrip("s"): int(count) for count, what in _COUNTS.findall(line)}
        if counts:
            return {
                "passed": counts.get("passed", 0),
                "failed": counts.get("failed", 0) + counts.get("error", 0),
                "skipped": counts.get("skipped", 0),
            }
    return {}
