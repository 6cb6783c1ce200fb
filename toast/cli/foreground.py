"""One film in the foreground: what `toast watch` and `toast play` have in common."""

import asyncio
import contextlib
import signal
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

import aiohttp
import click
import numpy as np

from toast.cli.amounts import BUFFER
from toast.cli.display import Display
from toast.cli.network import NetworkOptions, network_options
from toast.cli.positions import Positions
from toast.common.cli import RATE, SECONDS, SIZE
from toast.common.errors import UsageError
from toast.gateway import Gateway
from toast.gateway.players import Opening, Player, SideTrack
from toast.policy.budget import BudgetSettings
from toast.policy.neighbours import neighbours_names
from toast.policy.pickers import picker_names
from toast.swarm import SessionSettings, SwarmSession
from toast.viewer import (
    Behaviour,
    FilmReader,
    Pace,
    Source,
    Viewer,
    ViewerSettings,
    assemble_viewer,
    resolve_source,
    viewer_http,
)

__all__ = [
    "GATEWAY_PORT",
    "Request",
    "make_request",
    "run_viewing",
    "shared_options",
]

_DEFAULTS = ViewerSettings()
_LAST_READS_SECONDS = 5.0
_REMEMBER_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Request:
    """What was asked for on the command line."""

    source: str
    settings: ViewerSettings
    session: SessionSettings
    origin: str | None
    film: str | None
    gateway_port: int | None
    seed: int | None
    remembers: bool
    """Whether to remember where the film is left."""
    resumes: bool
    """Whether to begin where it was left."""


GATEWAY_PORT: Final = click.option(
    "--gateway-port",
    type=click.IntRange(0, 65535),
    default=0,
    help="Port of the gateway.  [default: any free one]",
)


def shared_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the argument and the options that both commands have."""
    options: list[Callable[[Callable[..., Any]], Callable[..., Any]]] = [
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
            "--origin-rate",
            type=RATE,
            help="Most to take from the VoD server on average, such as 1Mbps.  [default: no limit]",
        ),
        click.option(
            "--origin-day",
            type=SIZE,
            help="Most to take from it in any 24 hours, such as 2GB.  [default: no limit]",
        ),
        click.option(
            "--upload",
            type=RATE,
            help="Most to send to others, such as 2Mbps.  [default: no limit]",
        ),
        click.option(
            "--download", type=RATE, help="Most to take from others.  [default: no limit]"
        ),
        network_options,
        click.option(
            "--file", "film", metavar="NAME", help="Which film, of a torrent of several files."
        ),
        click.option(
            "--buffer",
            type=BUFFER,
            metavar="SIZE|PERCENT",
            help="Most of the film to keep on disk, such as 2GB or 25%.  [default: all of it]",
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


def make_request(
    behaviour: str,
    gateway_port: int | None,
    *,
    pace: Pace = Pace.CLOCK,
    remembers: bool = False,
    resumes: bool = False,
    source: str,
    folder: Path,
    origin: str | None,
    origin_rate: float | None,
    origin_day: float | None,
    upload: float | None,
    download: float | None,
    listen: str,
    film: str | None,
    buffer: tuple[int | None, float | None] | None,
    utp: str,
    port_mapping: bool,
    discovery: bool,
    picker: str,
    in_order_seconds: float | None,
    neighbours: str,
    start: float,
    random_seed: int | None,
) -> Request:
    """Put together what the options say.

    Raises:
        UsageError: some of them do not go together.
    """
    for name, rate in (
        ("--upload", upload),
        ("--download", download),
        ("--origin-rate", origin_rate),
    ):
        if rate is not None and rate < 1:
            raise UsageError(f"{name} must be more than nothing; leave it out for no limit")
    if in_order_seconds is not None and picker != "hybrid":
        raise UsageError("--in-order-seconds is for the hybrid picker only")
    network = NetworkOptions.parse(
        listen=listen, utp=utp, port_mapping=port_mapping, discovery=discovery
    )
    return Request(
        source=source,
        settings=ViewerSettings(
            folder=folder,
            behaviour=Behaviour(behaviour),
            picker=picker,
            picker_options=(
                {} if in_order_seconds is None else {"in_order_seconds": in_order_seconds}
            ),
            neighbours=neighbours,
            start_seconds=start,
            buffer_bytes=None if buffer is None else buffer[0],
            buffer_fraction=None if buffer is None else buffer[1],
            pace=pace,
            budget=BudgetSettings(
                rate=origin_rate, day_bytes=None if origin_day is None else int(origin_day)
            ),
        ),
        session=SessionSettings(**asdict(network), upload_rate=upload, download_rate=download),
        origin=origin,
        film=film,
        gateway_port=gateway_port,
        seed=random_seed,
        remembers=remembers,
        resumes=resumes,
    )


async def run_viewing(request: Request, display: Display, player: Player | None) -> int:
    """View a film until its behaviour's end, the player's end, or a signal.

    Returns:
        The exit code.

    Raises:
        ToastError: the film cannot be watched, or the player does not work.
    """
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
        async with viewer_http(request.session) as http:
            await session.wait_listening()
            source = await resolve_source(
                request.source,
                http=http,
                session=session,
                origin=request.origin,
                film=request.film,
            )
            left_at = _left_at(request, source)
            if left_at:
                settings = replace(request.settings, start_seconds=left_at)
                request = replace(request, settings=settings)
            viewer = _make_viewer(request, source, http, session)
            viewing.append(viewer)
            display.source(source)
            if left_at:
                display.resumed(left_at)
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


def _left_at(request: Request, source: Source) -> float:
    """Where the film was left, if it is to begin there; else 0."""
    if not request.resumes:
        return 0.0
    return Positions(request.settings.folder).get(source.metainfo.info_hash.hex())


async def _remember(viewer: Viewer) -> None:
    """Note now and then where the film is, and once more at the end."""
    positions = Positions(viewer.settings.folder)
    film_id = viewer.metainfo.info_hash.hex()

    def note() -> None:
        if viewer.timemap is not None:
            positions.put(film_id, viewer.own_position, viewer.timemap.duration)

    try:
        while True:
            await asyncio.sleep(_REMEMBER_SECONDS)
            note()
    finally:
        note()


def _make_viewer(
    request: Request, source: Source, http: aiohttp.ClientSession, session: SwarmSession
) -> Viewer:
    return assemble_viewer(
        source,
        settings=request.settings,
        session=session,
        http=http,
        rng=np.random.default_rng(request.seed),
    )


async def _run(viewer: Viewer, request: Request, display: Display, player: Player | None) -> None:
    gateway = None
    helpers: list[asyncio.Task[None]] = []
    try:
        if request.gateway_port is not None:
            reader = FilmReader(viewer)
            gateway = Gateway(reader, port=request.gateway_port)
            await gateway.start()
            display.gateway(gateway.url, gateway.playlist_url)
            if player is not None:
                playing = _play(player, viewer, reader, gateway, display)
                helpers.append(asyncio.create_task(playing))
        if request.remembers:
            helpers.append(asyncio.create_task(_remember(viewer)))
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


async def _play(
    player: Player, viewer: Viewer, reader: FilmReader, gateway: Gateway, display: Display
) -> None:
    """Run the player; when it ends, so does the viewing."""
    opening = Opening(
        url=gateway.url,
        playlist_url=gateway.playlist_url,
        title=reader.title,
        start_seconds=viewer.settings.start_seconds,
        subtitles=[
            SideTrack(url, each.label, each.language)
            for url, each in zip(gateway.subtitle_urls, reader.subtitles, strict=False)
        ],
    )
    try:
        await player.play(opening, _Listener(viewer, display))
    finally:
        viewer.stop()


class _Listener:
    """Takes to the viewing what a player tells."""

    def __init__(self, viewer: Viewer, display: Display) -> None:
        self._viewer = viewer
        self._display = display

    def position(self, seconds: float, *, paused: bool, rate: float) -> None:
        """The player is there."""
        self._viewer.report_position(seconds, paused=paused, rate=rate)

    def trouble(self, text: str) -> None:
        """Something does not work, but the film goes on."""
        self._display.trouble(text)
