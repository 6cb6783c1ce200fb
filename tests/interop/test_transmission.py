"""Transmission (https://transmissionbt.com), as Debian packages it, against tracker and seed."""

import json
import shutil
import socket

import pytest

pytestmark = [pytest.mark.interop, pytest.mark.slow]

SETTINGS = {
    # Our seed speaks TCP only. Transmission tries uTP first, and for half a minute.
    "utp-enabled": False,
    "dht-enabled": False,
    "lpd-enabled": False,
    "pex-enabled": False,
}


@pytest.fixture
def transmission(own_address, programs, tmp_path):
    """Starts a download; returns the folder that the film appears in."""
    program = shutil.which("transmission-cli")
    if program is None:
        pytest.skip("transmission-cli is not installed (Debian package transmission-cli)")

    def transmission(torrent):
        folder, config = tmp_path / "transmission", tmp_path / "config"
        folder.mkdir()
        config.mkdir()
        (config / "settings.json").write_text(json.dumps(SETTINGS))
        with socket.socket() as probe:
            probe.bind((own_address, 0))
            port = probe.getsockname()[1]
        options = ("--no-portmap", "--port", port, "--config-dir", config, "--download-dir", folder)
        programs.start(program, *options, torrent)
        return folder

    return transmission


def test_a_film_comes_from_the_swarm_alone(own_address, start_service, transmission, wait_until):
    """In a namespace of its own: Transmission takes no peers on loopback from a tracker."""
    service = start_service(seed=True, host=own_address)
    before = service.origin_status()["http_bytes_sent"]
    film = transmission(service.swarm_torrent) / service.film.name
    # It appears under another name until it is whole.
    wait_until(film.exists, "the film is whole", seconds=90.0)
    assert film.read_bytes() == service.film.read_bytes()
    status = service.origin_status()
    assert status["seed_bytes_sent"] >= service.film.stat().st_size
    assert status["http_bytes_sent"] - before < 10_000
    tracker = service.tracker_status()
    assert tracker["failures"] == 0
    assert tracker["peers"] == 2
