"""`toast watch`: a film without a screen."""

import asyncio
from typing import Any

import click

from toast.cli.display import make_display
from toast.cli.foreground import GATEWAY_PORT, make_request, run_viewing, shared_options
from toast.viewer import Behaviour, ViewerSettings

__all__ = ["watch"]


@click.command()
@shared_options
@click.option(
    "--behaviour",
    type=click.Choice([str(behaviour) for behaviour in Behaviour]),
    default=str(ViewerSettings().behaviour),
    show_default=True,
    help="How long to serve others.",
)
@click.option("--gateway", is_flag=True, help="Also let players of this machine read along.")
@GATEWAY_PORT
def watch(behaviour: str, gateway: bool, gateway_port: int, as_json: bool, **options: Any) -> int:
    """Watch SOURCE without a screen, at the film's own pace.

    SOURCE is a .torrent, the URL of a title on a VoD server, or a magnet link. A report at the end
    says how it went and where the film came from.

    \b
    Example:
      toast watch http://127.0.0.1:8080/titles/film --upload 2Mbps
    """
    request = make_request(behaviour, gateway_port if gateway else None, **options)
    return asyncio.run(run_viewing(request, make_display(as_json), None))
