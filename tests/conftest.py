"""What every room's tests may use: a real film, made once per run."""

import json
import os
import signal
import sys
from pathlib import Path

import pytest
from hypothesis import settings
from pyroute2 import IPRoute, netns

from experiments.film import FilmSpec, make_film

SMALL_FILM = FilmSpec(duration_seconds=6.0, bit_rate=125_000.0, width=320, height=180)


# How long an example takes is the machine's matter.
settings.register_profile("house", deadline=None)
settings.load_profile("house")

FIGURES = pytest.StashKey[dict]()


def pytest_addoption(parser):
    parser.addoption(
        "--full",
        action="store_true",
        help="the sizes that evidence is made of, and one line of JSON with the figures",
    )


def pytest_configure(config):
    config.stash[FIGURES] = {}
    # Processes that tests start find the tests' own helpers by it.
    sys.path.insert(0, str(config.rootpath))
    # Begun in the background of a shell, we and all whom we start would be deaf to Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_terminal_summary(terminalreporter, config):
    """With --full, one line of JSON: how many passed, failed, were skipped, and the figures."""
    if not config.getoption("--full"):
        return
    stats = terminalreporter.stats
    failed = len(stats.get("failed", ())) + len(stats.get("error", ()))
    counts = {
        "passed": len(stats.get("passed", ())),
        "failed": failed,
        "skipped": len(stats.get("skipped", ())),
    }
    terminalreporter.write_line("")
    terminalreporter.write_line(json.dumps(counts | config.stash[FIGURES]))


@pytest.fixture(scope="session")
def full(pytestconfig) -> bool:
    """Whether tests take the sizes that evidence is made of."""
    return pytestconfig.getoption("--full")


@pytest.fixture
def figures(pytestconfig) -> dict:
    """What a test measured, by name: printed at the end with --full."""
    return pytestconfig.stash[FIGURES]


@pytest.fixture(scope="session")
def small_film(tmp_path_factory) -> Path:
    """A real MP4 (H.264 + AAC, index in front): 6 s, 1 Mb/s, 320x180, 150 pictures.

    Shared by the whole run: tests read it and never write to it.
    """
    path = make_film(tmp_path_factory.mktemp("films") / "small.mp4", SMALL_FILM)
    path.chmod(0o444)
    return path


@pytest.fixture
def own_address():
    """An address that is not loopback, in a network namespace that this test makes and enters.

    Programs started meanwhile are in it too. It has no way out: nothing can reach them, and they
    can reach nothing, but each other.
    """
    name, address = f"toast-test-{os.getpid()}", "198.18.0.1"
    try:
        netns.create(name)
    except OSError as error:
        pytest.skip(f"no network namespace can be made here (root is needed): {error}")
    try:
        netns.pushns(name)
        try:
            with IPRoute() as route:
                (loopback,) = route.link_lookup(ifname="lo")
                route.link("set", index=loopback, state="up")
                route.addr("add", index=loopback, address=address, prefixlen=32)
            yield address
        finally:
            netns.popns()
    finally:
        netns.remove(name)
