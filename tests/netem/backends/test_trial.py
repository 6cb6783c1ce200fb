import errno
import os
from pathlib import Path

import pytest

from netem.backends.kernel import KernelBackend
from netem.backends.trial import _explain, measure_delay


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (errno.ENOENT, "no NetEm"),
        (errno.EPERM, "needs root"),
        (errno.EINVAL, "refused a netem queueing discipline: Invalid argument"),
    ],
)
def test_refusals_are_explained(number, said):
    assert said in _explain(number)


def test_loopback_without_netem_has_next_to_no_delay():
    assert 0 < measure_delay() < 0.1


@pytest.mark.slow
def test_the_kernel_is_really_tried():
    """Whatever this machine is, the report is one of the answers that a trial can give."""
    namespace = Path("/proc/self/ns/net")
    before = namespace.readlink()
    report = KernelBackend().probe()
    assert namespace.readlink() == before
    if os.geteuid():
        assert not report.works
        assert "root" in report.reason
    elif report.works:
        assert 0.0036 <= report.facts["delay_seconds"] <= 0.02
    else:
        assert "netem" in report.reason.lower() or "namespace" in report.reason
