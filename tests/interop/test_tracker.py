"""Foreign clients find each other at our tracker, over each of its ways in."""

import json
import shutil
import socket
import urllib.request

import bencode2
import libtorrent
import pytest

pytestmark = [pytest.mark.interop, pytest.mark.slow]

WAYS = [("udp", "127.0.0.1"), ("http", "::1")]


def free_port(host):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        try:
            probe.bind((host, 0))
        except OSError as error:
            pytest.skip(f"no {host} here: {error}")
        return probe.getsockname()[1]


class Tracker:
    """Our tracker as a program; its announce URLs by scheme."""

    def __init__(self, programs, host):
        free_port(host)
        ready = programs.start_server("tracker", "--host", host, "--port", "0", "--json")
        self.urls = {"http": ready["announce_url"], "udp": ready["udp_announce_url"]}
        self._status = f"{ready['url']}/status"

    def peers(self):
        with urllib.request.urlopen(self._status, timeout=10) as response:
            return json.load(response)["peers"]


@pytest.fixture
def torrent(small_film, tmp_path):
    """Makes a .torrent of the small film for an announce URL, without anything else in it."""

    def torrent(url):
        storage = libtorrent.file_storage()
        libtorrent.add_files(storage, str(small_film))
        made = libtorrent.create_torrent(storage, flags=libtorrent.create_torrent.v1_only)
        made.add_tracker(url)
        libtorrent.set_piece_hashes(made, str(small_film.parent))
        file = tmp_path / "film.torrent"
        file.write_bytes(libtorrent.bencode(made.generate()))
        return file

    return torrent


@pytest.fixture
def start_aria2(programs, tmp_path):
    """Starts an aria2 on a torrent, in a folder of its name."""
    program = shutil.which("aria2c")
    if program is None:
        pytest.skip("aria2c is not installed (Debian package aria2)")

    def start_aria2(torrent, name, host, *options):
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        # Without DHT it has no UDP at all; it is given nobody to talk to there.
        return programs.start(
            *(program, "--no-conf", "--quiet", f"--dir={folder}"),
            f"--listen-port={free_port(host)}",
            *("--enable-dht=true", f"--dht-listen-port={free_port(host)}", "--enable-dht6=false"),
            *(f"--dht-file-path={tmp_path / name}.dht", "--bt-enable-lpd=false"),
            *("--enable-peer-exchange=false", "--file-allocation=none"),
            *(() if ":" in host else ("--disable-ipv6=true",)),
            *(*options, torrent),
        )

    return start_aria2


@pytest.fixture
def start_holder(start_aria2, small_film, tmp_path, wait_until):
    """Starts an aria2 that has the film, and waits until the tracker knows it."""

    def start_holder(torrent, host, tracker):
        folder = tmp_path / "holder"
        folder.mkdir()
        shutil.copyfile(small_film, folder / small_film.name)
        start_aria2(torrent, "holder", host, "--check-integrity=true", "--seed-ratio=0.0")
        wait_until(lambda: tracker.peers() == 1, "the holder is at the tracker", seconds=60.0)

    return start_holder


@pytest.mark.parametrize(("scheme", "host"), WAYS, ids=["udp", "http-ipv6"])
def test_two_aria2_exchange_a_film(  # noqa: PLR0917 - fixtures have no other way in
    scheme, host, programs, torrent, start_holder, start_aria2, small_film, tmp_path, wait_until
):
    tracker = Tracker(programs, host)
    file = torrent(tracker.urls[scheme])
    start_holder(file, host, tracker)
    viewer = start_aria2(file, "viewer", host, "--seed-time=0")
    wait_until(lambda: viewer.poll() is not None, "the viewer has the film and ends", seconds=90.0)
    copy = tmp_path / "viewer" / small_film.name
    assert copy.read_bytes() == small_film.read_bytes()


def test_transmission_has_a_film_from_aria2_over_udp(  # noqa: PLR0917 - as above
    own_address, programs, torrent, start_holder, small_film, tmp_path, wait_until
):
    """In a namespace of its own: Transmission takes no peers on loopback from a tracker."""
    program = shutil.which("transmission-cli")
    if program is None:
        pytest.skip("transmission-cli is not installed (Debian package transmission-cli)")
    tracker = Tracker(programs, own_address)
    file = torrent(tracker.urls["udp"])
    start_holder(file, own_address, tracker)
    folder, config = tmp_path / "transmission", tmp_path / "config"
    folder.mkdir()
    config.mkdir()
    names = ("utp-enabled", "dht-enabled", "lpd-enabled", "pex-enabled")
    (config / "settings.json").write_text(json.dumps(dict.fromkeys(names, False)))
    port = free_port(own_address)
    options = ("--no-portmap", "--port", port, "--config-dir", config, "--download-dir", folder)
    programs.start(program, *options, file)
    # It appears under another name until it is whole.
    wait_until((folder / small_film.name).exists, "the film is whole", seconds=90.0)
    assert (folder / small_film.name).read_bytes() == small_film.read_bytes()


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_two_libtorrents_exchange_a_film_over_udp(  # noqa: PLR0917 - as above
    host, programs, torrent, small_film, tmp_path, wait_until
):
    """The only one of these that announces over UDP on IPv6, too."""
    file = torrent(Tracker(programs, host).urls["udp"])
    shown = f"[{host}]" if ":" in host else host
    settings = {
        "listen_interfaces": f"{shown}:0",
        **dict.fromkeys(("enable_dht", "enable_lsd", "enable_upnp", "enable_natpmp"), False),
        "ssrf_mitigation": False,
        "allow_multiple_connections_per_ip": True,
    }
    sessions = []
    for folder in (small_film.parent, tmp_path / "viewer"):
        session = libtorrent.session(settings)
        parameters = libtorrent.add_torrent_params()
        parameters.ti = libtorrent.torrent_info(bencode2.bdecode(file.read_bytes()))
        parameters.save_path = str(folder)
        sessions.append((session, session.add_torrent(parameters)))
        handle = sessions[0][1]
        wait_until(lambda handle=handle: handle.status().is_seeding, "the holder has the film")
    viewer = sessions[1][1]
    wait_until(lambda: viewer.status().is_seeding, "the film is whole", seconds=90.0)
    assert (tmp_path / "viewer" / small_film.name).read_bytes() == small_film.read_bytes()
