"""`toast watch` and `toast play`: one film, in the foreground."""

import asyncio
import contextlib
import ipaddress
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import click
import numpy as np

from toast.cli.display import Display, make_display
from toast.common.cli import RATE, SECONDS
from toast.common.errors import UsageError
from toast.gateway import Gateway
from toast.policy.neighbours import neighbours_names
from toast.policy.pickers import picker_names
from toast.swarm import SessionSettings, SwarmSession
from toast.viewer import (
    Behaviour,
    FilmReader,
    Source,
    Viewer,
    ViewerError,
    ViewerSettings,
    assemble_viewer,
    resolve_source,
)

__all__ = ["listen_address", "play", "watch"]

_DEFAULTS = ViewerSettings()
_SESSION = SessionSettings()
_LAST_READS_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class _Request:
    """What was asked for on the command line."""

    source: str
    settings: ViewerSettings
    session: SessionSettings
    origin: str | None
    gateway_port: int | None
    seed: int | None
    in_order_seconds: float | None


def listen_address(text: str) -> tuple[str, int]:
    """`1.2.3.4`, `1.2.3.4:6881`, `::1` or `[::1]:6881`."""
    host, port = text, "0"
    if text.startswith("["):
        host, _, rest = text[1:].partition("]")
        port = rest.removeprefix(":") or "0"
    elif text.count(":") == 1:
        host, _, port = text.partition(":")
    try:
        address, number = str(ipaddress.ip_address(host)), int(port)
    except ValueError as error:
        raise UsageError(f"'{text}' is not an address: write for example 0.0.0.0:6881") from error
    if not 0 <= number <= 65535:
        raise UsageError(f"'{text}' is not an address: a port is a number up to 65535")
    return address, number


def _shared_options(command: Callable[..., Any]) -> Callable[..., Any]:
    options = [
        click.argument("source"),
        click.option(
            "--folder",
            type=click.Path(file_okay=False, path_type=Path),
            default=_DEFAULTS.folder,
            show_default=True,
            help="Where films are kept and resumed from.",
        ),
        click.option("--origin", metavar="URL", help="VoD server, if the .torrent names none."),
        click.option(
            "--upload",
            type=RATE,
            help="Most to send to others, such as 2Mbps.  [default: no limit]",
        ),
        click.option(
            "--download", type=RATE, help="Most to take from others.  [default: no limit]"
        ),
        click.option(
            "--listen",
            default=_SESSION.listen_host,
            show_default=True,
            metavar="IP[:PORT]",
            help="Where other viewers reach us.",
        ),
        click.option(
            "--picker",
            type=click.Choice(sorted(picker_names())),
            default=_DEFAULTS.picker,
            show_default=True,
            help="Which piece to ask for next.",
        ),
        click.option(
            "--in-order-seconds", type=SECONDS, help="Length of the hybrid picker's in-order range."
        ),
        click.option(
            "--neighbours",
            type=click.Choice(sorted(neighbours_names())),
            default=_DEFAULTS.neighbours,
            show_default=True,
            help="Whom to take the film from.",
        ),
        click.option(
            "--start",
            type=SECONDS,
            default=_DEFAULTS.start_seconds,
            help="Where to begin, such as 90s or 1:30.  [default: at the beginning]",
        ),
        click.option(
            "--random-seed",
            type=click.IntRange(min=0),
            help="Makes the choices of policies repeatable.",
        ),
        click.option("--json", "as_json", is_flag=True, help="One JSON object per line."),
    ]
    for option in reversed(options):
        command = option(command)
    return command


@click.command()
@_shared_options
@click.option(
    "--behaviour",
    type=click.Choice([str(behaviour) for behaviour in Behaviour]),
    default=str(_DEFAULTS.behaviour),
    show_default=True,
    help="How long to serve others.",
)
@click.option("--gateway", is_flag=True, help="Also let players of this machine read along.")
@click.option(
    "--gateway-port",
    type=click.IntRange(0, 65535),
    default=0,
    help="Port of the gateway.  [default: any free one]",
)
def watch(behaviour: str, gateway: bool, gateway_port: int, as_json: bool, **options: Any) -> int:
    """Watch SOURCE without a screen, at the film's own pace.

    SOURCE is a .torrent, the URL of a title on a VoD server, or a magnet link. A report at the end
    says how it went and where the film came from.

    \b
    Example:
      toast watch http://127.0.0.1:8080/titles/film --upload 2Mbps
    """
    request = _request(behaviour, gateway_port if gateway else None, **options)
    return asyncio.run(_watch(request, make_display(as_json), None))


@click.command()
@_shared_options
@click.option(
    "--gateway-port",
    type=click.IntRange(0, 65535),
    default=0,
    help="Port of the gateway.  [default: any free one]",
)
@click.option(
    "--player",
    default="auto",
    show_default=True,
    help="Program to open the film with; 'none' prints the URL; 'auto' is mpv where there is one.",
)
def play(gateway_port: int, player: str, as_json: bool, **options: Any) -> int:
    """Play SOURCE in a player of this machine.

    SOURCE is a .torrent, the URL of a title on a VoD server, or a magnet link. The film is offered
    on a local URL that any player can open. Ends with the player, or on Ctrl-C.

    \b
    Example:
      toast play film.torrent
    """
    request = _request(str(Behaviour.SEEDING), gateway_port, **options)
    program: str | None = player
    if player == "auto":
        program = shutil.which("mpv")
    elif player == "none":
        program = None
    elif shutil.which(player) is None:
        raise UsageError(f"there is no player '{player}' here: install it, or use --player none")
    return asyncio.run(_watch(request, make_display(as_json), program))


def _request(
    behaviour: str,
    gateway_port: int | None,
    *,
    source: str,
    folder: Path,
    origin: str | None,
    upload: float | None,
    download: float | None,
    listen: str,
    picker: str,
    in_order_seconds: float | None,
    neighbours: str,
    start: float,
    random_seed: int | None,
) -> _Request:
    for name, rate in (("--upload", upload), ("--download", download)):
        if rate is not None and rate < 1:
            raise UsageError(f"{name} must be more than nothing; leave it out for no limit")
    if in_order_seconds is not None and picker != "hybrid":
        raise UsageError("--in-order-seconds is for the hybrid picker only")
    host, port = listen_address(listen)
    return _Request(
        source=source,
        settings=ViewerSettings(
            folder=folder,
            behaviour=Behaviour(behaviour),
            picker=picker,
            neighbours=neighbours,
            start_seconds=start,
        ),
        session=SessionSettings(
            listen_host=host, listen_port=port, upload_rate=upload, download_rate=download
        ),
        origin=origin,
        gateway_port=gateway_port,
        seed=random_seed,
        in_order_seconds=in_order_seconds,
    )


@asynccontextmanager
async def _http(request: _Request) -> AsyncIterator[aiohttp.ClientSession]:
    host = request.session.listen_host
    # In a lab every viewer has an address of its own, and the tracker must see it.
    local = None if host in {"0.0.0.0", "::"} else (host, 0)  # noqa: S104  # compared, not bound
    connector = aiohttp.TCPConnector(local_addr=local, limit=16)
    async with aiohttp.ClientSession(
        connector=connector,
        headers={"User-Agent": "Toast/0.1", "Accept-Encoding": "identity"},
        auto_decompress=False,  # bytes are bounded as they come, not as they unfold
    ) as http:
        yield http


async def _watch(request: _Request, display: Display, player: str | None) -> int:
    interrupted: list[signal.Signals] = []
    viewing: list[Viewer] = []
    current = asyncio.current_task()
    assert current is not None

    def on_signal(number: signal.Signals) -> None:
        interrupted.append(number)
        if viewing and len(interrupted) == 1:
            viewing[0].stop()
        else:
            current.cancel()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, on_signal, number)
    session = SwarmSession(request.session)
    try:
        async with _http(request) as http:
            await session.wait_listening()
            source = await resolve_source(
                request.source, http=http, session=session, origin=request.origin
            )
            viewer = _make_viewer(request, source, http, session)
            viewing.append(viewer)
            display.source(source)
            await viewer.open(display.checking)
            await _run(viewer, request, display, player)
            display.report(await viewer.report())
    except asyncio.CancelledError:
        if not interrupted:
            raise
        return 130
    finally:
        display.close()
        await session.close()
    return 130 if signal.SIGINT in interrupted and request.gateway_port is None else 0


def _make_viewer(
    request: _Request, source: Source, http: aiohttp.ClientSession, session: SwarmSession
) -> Viewer:
    options = {}
    if request.in_order_seconds is not None:
        options["in_order_seconds"] = request.in_order_seconds
    return assemble_viewer(
        source,
        settings=request.settings,
        session=session,
        http=http,
        rng=np.random.default_rng(request.seed),
        picker_options=options,
    )


async def _run(viewer: Viewer, request: _Request, display: Display, player: str | None) -> None:
    gateway = None
    helpers: list[asyncio.Task[None]] = []
    try:
        if request.gateway_port is not None:
            gateway = Gateway(FilmReader(viewer), port=request.gateway_port)
            await gateway.start()
            display.gateway(gateway.url)
            if player is not None:
                helpers.append(asyncio.create_task(_player(player, gateway.url, viewer)))
        following = asyncio.create_task(display.follow(viewer))
        following.add_done_callback(lambda _: viewer.stop())  # nobody is left to show it to
        helpers.append(following)
        await viewer.run()
        display.tell_start(viewer)
        if gateway is not None and player is None:
            # Whoever reads along may be a little behind the playhead: let it have the end.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LAST_READS_SECONDS):
                    await gateway.wait_idle()
    finally:
        for helper in helpers:
            helper.cancel()
        results = await asyncio.gather(*helpers, return_exceptions=True)
        if gateway is not None:
            await gateway.close()
    for result in results:
        if isinstance(result, Exception):
            raise result


async def _player(program: str, url: str, viewer: Viewer) -> None:
    """Run the player; when it ends, so does the viewing."""
    try:
        process = await asyncio.create_subprocess_exec(
            program, url, stdin=asyncio.subprocess.DEVNULL, stdout=sys.stderr
        )
    except OSError as error:
        viewer.stop()
        raise ViewerError(f"{program} cannot be started: {error.strerror}") from error
    try:
        await process.wait()
    finally:
        if process.returncode is None:
            process.terminate()
            with contextlib.suppress(ProcessLookupError):
                await process.wait()
        viewer.stop()
