"""Certificates: the ones that work, and what is said of the others."""

import asyncio
import contextlib
import shutil
import ssl
import subprocess

import pytest

from vodserver.errors import TlsError
from vodserver.http.tls import Tls

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the keys")


def make_pair(folder, name, *options):
    certificate, key = folder / f"{name}.pem", folder / f"{name}.key"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    command += ["-subj", f"/CN={name}", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2"]
    command += ["-keyout", str(key), "-out", str(certificate), *(options or ("-nodes",))]
    subprocess.run(command, check=True, capture_output=True)
    return certificate, key


@pytest.fixture(scope="session")
def keys(tmp_path_factory):
    folder = tmp_path_factory.mktemp("keys")
    return {
        "one": make_pair(folder, "one"),
        "two": make_pair(folder, "two"),
        "locked": make_pair(folder, "locked", "-passout", "pass:secret"),
    }


async def name_of(context, trusted, **limits):
    """The name in the certificate that a client is shown, and the TLS version."""
    server = await asyncio.start_server(lambda _, w: w.close(), "127.0.0.1", 0, ssl=context)
    client = ssl.create_default_context(cafile=trusted)
    for name, value in limits.items():
        setattr(client, name, value)
    try:
        _, writer = await asyncio.open_connection(*server.sockets[0].getsockname(), ssl=client)
        shown = writer.get_extra_info("peercert")["subject"][0][0][1]
        version = writer.get_extra_info("ssl_object").version()
        writer.close()
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            await writer.wait_closed()
    finally:
        server.close()
        await server.wait_closed()
    return shown, version


async def test_a_pair_is_served_and_replaced_while_the_server_runs(keys, tmp_path):
    certificate, key = tmp_path / "cert", tmp_path / "key"
    for source, target in zip(keys["one"], (certificate, key), strict=True):
        shutil.copy(source, target)
    tls = Tls(certificate, key)
    assert await name_of(tls.context, keys["one"][0]) == ("one", "TLSv1.3")

    for source, target in zip(keys["two"], (certificate, key), strict=True):
        shutil.copy(source, target)
    tls.reload()
    assert (await name_of(tls.context, keys["two"][0]))[0] == "two"

    key.write_text("rubbish")
    with pytest.raises(TlsError):
        tls.reload()
    assert (await name_of(tls.context, keys["two"][0]))[0] == "two"


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion")
async def test_old_versions_are_refused(keys):
    tls = Tls(*keys["one"])

    assert (await name_of(tls.context, keys["one"][0], maximum_version=ssl.TLSVersion.TLSv1_2)) == (
        "one",
        "TLSv1.2",
    )
    with pytest.raises((ssl.SSLError, ConnectionError)):
        await name_of(
            tls.context,
            keys["one"][0],
            minimum_version=ssl.TLSVersion.TLSv1,
            maximum_version=ssl.TLSVersion.TLSv1_1,
        )


@pytest.mark.parametrize(
    ("certificate", "key", "words"),
    [
        (("none", 0), ("one", 1), "cannot read the TLS certificate"),
        (("one", 0), ("none", 1), "cannot read the TLS key"),
        (("one", 0), ("two", 1), "is not that of the certificate"),
        (("one", 1), ("one", 1), "no PEM certificate"),
        (("one", 0), ("one", 0), "no PEM private key"),
        (("locked", 0), ("locked", 1), "passphrase"),
    ],
)
def test_files_that_do_not_fit_are_one_clear_line(keys, tmp_path, certificate, key, words):
    missing = (tmp_path / "none", tmp_path / "none")
    paths = [keys.get(name, missing)[which] for name, which in (certificate, key)]

    with pytest.raises(TlsError, match=words) as told:
        Tls(*paths)

    assert "\n" not in str(told.value)
