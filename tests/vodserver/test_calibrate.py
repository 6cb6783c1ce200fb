"""What a disk's timings say, and that it is the disk that was timed."""

import math
import os
from pathlib import Path

import numpy as np
import pytest

from vodserver.calibrate import READ_BYTES, fit, measure
from vodserver.errors import CalibrationError, DiskError, StoreUsageError

HARD_DISK = (0.017, 525e6 / 8)
FLASH = (0.0001, 1e9)


def timings(access, rate, *, reads=600, seed=1, jitter=0.3, spread=0.0):
    """Reads of all sizes: access varies by `jitter` of itself, the whole by `spread`."""
    rng = np.random.default_rng(seed)
    sizes = rng.permutation(np.resize(READ_BYTES, reads)).astype(float)
    seconds = access * (1 + rng.uniform(-jitter, jitter, reads)) + sizes / rate
    return sizes, seconds * (1 + rng.uniform(-spread, spread, reads))


@pytest.mark.parametrize("disk", [HARD_DISK, FLASH, (0.006, 1e8)])
def test_both_figures_are_found(disk):
    found = fit(*timings(*disk, spread=0.1))

    assert found.access_seconds == pytest.approx(disk[0], rel=0.05)
    assert found.rate == pytest.approx(disk[1], rel=0.05)
    assert found.outliers == 0
    assert found.reads == 600


@pytest.mark.parametrize("disk", [HARD_DISK, FLASH])
def test_the_intervals_hold_the_truth_as_often_as_they_say(disk):
    """Of 200 measurements about 190: 95 % within three standard errors, 4.6 %."""
    held = np.zeros(2)
    for seed in range(200):
        found = fit(*timings(*disk, seed=seed, spread=0.2, reads=120))
        held += [
            found.access_interval[0] <= disk[0] <= found.access_interval[1],
            found.rate_interval[0] <= disk[1] <= found.rate_interval[1],
        ]
    assert (held >= 181).all(), held
    assert (held < 200).all(), "the intervals are too wide to say anything"


def test_exact_timings_give_exact_figures():
    found = fit(*timings(0.01, 1e8, jitter=0.0))

    assert found.access_seconds == pytest.approx(0.01, rel=1e-6)
    assert found.access_interval == pytest.approx((0.01, 0.01), rel=1e-6)
    assert found.rate == pytest.approx(1e8, rel=1e-6)


@pytest.mark.parametrize("factor", [20.0, 1000.0])
def test_what_is_far_off_is_left_out(factor):
    """One read in thirty meets another program's burst."""
    sizes, seconds = timings(*HARD_DISK)
    seconds[::30] *= factor

    found = fit(sizes, seconds)

    assert found.outliers == 20
    assert found.access_seconds == pytest.approx(HARD_DISK[0], rel=0.05)
    assert found.rate == pytest.approx(HARD_DISK[1], rel=0.05)


def test_an_access_time_is_never_negative():
    sizes, seconds = timings(1e-9, 1e9, spread=0.5, reads=60)
    found = fit(sizes, seconds)

    assert found.access_seconds >= 0
    assert found.access_interval[0] >= 0
    assert found.access_interval[0] <= found.access_interval[1]


def test_a_rate_that_the_reads_do_not_show_has_no_upper_bound():
    """The largest read takes a tenth more than the smallest, in noise of a half."""
    found = fit(*timings(0.01, READ_BYTES[-1] / 1e-3, seed=8, jitter=0.5, reads=60))

    assert found.rate_interval[1] == math.inf
    assert found.rate_interval[0] > 0


@pytest.mark.parametrize(
    ("sizes", "seconds", "message"),
    [
        (np.full(10, 4096.0), np.full(10, 0.01), "too few"),
        (np.full(100, 4096.0), np.full(100, 0.01), "one size"),
        (np.resize([4096.0, 65536.0], 100), np.resize([0.02, 0.01], 100), "no longer"),
    ],
)
def test_timings_that_say_nothing_are_refused(sizes, seconds, message):
    with pytest.raises(CalibrationError, match=message):
        fit(sizes, seconds)


def run(directory: Path, **options):
    settings = {"seconds": 0.05, "size": 8 << 20, "min_size": 8 << 20}
    return measure(directory, rng=np.random.default_rng(1), **settings | options)


def on_disk(path: Path) -> Path:
    """Skip where the directory is in memory: that is refused, and tested below."""
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields = line.split()
        kind = fields[fields.index("-") + 1]
        if kind in {"tmpfs", "ramfs"} and fields[4] != "/" and path.is_relative_to(fields[4]):
            pytest.skip(f"{path} is in memory")
    return path


@pytest.mark.slow
def test_a_real_directory_is_measured_and_nothing_is_left(tmp_path):
    told = []
    found = run(on_disk(tmp_path), progress=lambda what, part: told.append((what, part)))

    assert found.path == tmp_path
    assert found.scratch_bytes == 8 << 20
    assert found.fit.reads >= 40
    assert 0 <= found.fit.access_seconds < 10
    assert found.fit.rate > 1e5
    assert list(tmp_path.iterdir()) == []
    assert [what for what, _ in told] == sorted((what for what, _ in told), reverse=True)
    assert {what for what, _ in told} == {"writing", "reading"}
    assert all(0 <= part <= 1 for _, part in told)


@pytest.mark.slow
def test_a_file_system_without_direct_reads_is_measured_too(tmp_path, monkeypatch):
    monkeypatch.setattr("vodserver.calibrate._DIRECT", 0)
    found = run(on_disk(tmp_path), size=16 << 20)

    assert not found.direct
    assert found.fit.reads >= 40


def test_memory_is_not_taken_for_a_disk():
    memory = Path("/dev/shm")
    if not memory.is_dir() or not os.access(memory, os.W_OK):
        pytest.skip("no directory in memory here")
    before = set(memory.iterdir())

    with pytest.raises(CalibrationError, match="kept in memory"):
        run(memory)

    assert not {path for path in set(memory.iterdir()) - before if "calibrate" in path.name}


@pytest.mark.parametrize("stop", [KeyboardInterrupt, RuntimeError])
@pytest.mark.parametrize("where", ["writing", "reading"])
def test_whatever_stops_it_leaves_nothing(tmp_path, where, stop):
    def progress(what, part):
        assert list(tmp_path.iterdir()) == [], "the scratch file has a name"
        if what == where:
            raise stop

    on_disk(tmp_path)
    with pytest.raises(stop):
        run(tmp_path, progress=progress)

    assert list(tmp_path.iterdir()) == []
    assert not [fd for fd in Path("/proc/self/fd").iterdir() if _names(fd, tmp_path)]


def _names(fd: Path, directory: Path) -> bool:
    try:
        return str(fd.readlink()).startswith(str(directory))
    except OSError:
        return False


def test_what_is_no_directory_is_refused(tmp_path):
    (tmp_path / "file").write_text("x")
    for path in (tmp_path / "absent", tmp_path / "file"):
        with pytest.raises(StoreUsageError, match="is not a directory"):
            run(path)


def test_too_little_space_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(DiskError, match=r"has room for \d+ MiB and measuring takes"):
        run(tmp_path, min_size=1 << 60)


def test_where_nothing_can_be_written_one_line_says_so():
    with pytest.raises(DiskError, match="cannot measure /proc"):
        run(Path("/proc/self"), min_size=0)
