"""`toast play`: a film in a player of this machine."""

import asyncio
from typing import Any

import click
from click.core import ParameterSource

from toast.cli.display import make_display
from toast.cli.foreground import GATEWAY_PORT, make_request, run_viewing, shared_options
from toast.gateway.players import choose_player
from toast.viewer import Behaviour, Pace

__all__ = ["play"]


@click.command()
@shared_options
@GATEWAY_PORT
@click.option(
    "--player",
    default="auto",
    show_default=True,
    metavar="auto|mpv|vlc|none|COMMAND",
    help="Program to open the film with, and its arguments; 'none' prints the URL; 'auto' is mpv,"
    " VLC or ffplay, whichever is found first.",
)
def play(gateway_port: int, player: str, as_json: bool, **options: Any) -> int:
    """Play SOURCE in a player of this machine.

    SOURCE is a .torrent, the URL of a title on a VoD server, or a magnet link. The film is offered
    on a local URL that any player can open, with the subtitles found beside it. Begins where the
    film was left, unless --start says where. Ends with the player, or on Ctrl-C.

    \b
    Example:
      toast play film.torrent
      toast play film.torrent --player "mpv --fs" --start 41:30
      toast play film.torrent --player "vlc --fullscreen {url}"
    """
    told = click.get_current_context().get_parameter_source("start") is not ParameterSource.DEFAULT
    request = make_request(
        str(Behaviour.SEEDING),
        gateway_port,
        pace=Pace.READERS,
        remembers=True,
        resumes=not told,
        **options,
    )
    return asyncio.run(run_viewing(request, make_display(as_json), choose_player(player)))
