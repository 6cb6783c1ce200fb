"""Commands that plan a store before it is bought: the model and its calibration."""

import dataclasses
import json
import math
import signal
from pathlib import Path
from typing import Any, Final

import click
import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from toast.common.cli import RATE, SECONDS, SIZE, print_json
from toast.common.errors import UsageError
from toast.common.units import format_bytes, format_rate
from vodserver.calibrate import Measurement, measure
from vodserver.cli.group import cli, interrupt, json_option
from vodserver.model import ETHERNET_PAYLOAD, DiskFigures, capacity, disks_needed
from vodserver.plan import PLACEMENTS, Wish, plan
from vodserver.scheduling.service import DEFAULT_ACCESS_SECONDS, DEFAULT_RATE
from vodserver.settings import ServeSettings

_TABLE_RATES: Final = tuple(megabits * 1e6 / 8 for megabits in (1, 2, 4, 6, 8, 12, 18, 25))
"""The bit rates from an iPod's to high definition, as in the thesis's figures."""

_MAX_CALIBRATION_BYTES: Final = 1 << 20


@cli.command("model")
@click.option("--access", type=SECONDS, help="Mean access time of a disk.  [default: 17ms]")
@click.option("--rate", type=RATE, help="Sequential rate of a disk.  [default: 525Mbps]")
@click.option(
    "--calibration", type=click.Path(path_type=Path), help="Output of 'calibrate --json'."
)
@click.option("--bit-rate", type=RATE, default="6Mbps", show_default=True, help="Of a film.")
@click.option(
    "--buffer", type=SECONDS, default="5s", show_default=True, help="Playing time of an extent."
)
@click.option("--disks", type=click.IntRange(1, 100_000), help="How many.  [default: 8]")
@click.option(
    "--stripe",
    type=click.IntRange(1, 1000),
    default=1,
    show_default=True,
    help="Disks that each extent is spread over.",
)
@click.option("--link", type=RATE, help="Ethernet's bit rate; 94.9 % of it carries films.")
@click.option(
    "--streams", type=click.IntRange(1, 10_000_000), help="Say how many disks these take."
)
@json_option
def model_command(streams: int | None, as_json: bool, **options: Any) -> None:
    """Say how many streams disks serve, or the reverse.

    \b
    Example:
      vodserver model --access 17ms --rate 525Mbps --bit-rate 6Mbps --disks 8 --link 4Gbps
      vodserver model --streams 1000
    """
    array = _array(*(options[name] for name in ("access", "rate", "calibration", "disks")))
    link = None if options["link"] is None else options["link"] * ETHERNET_PAYLOAD
    buffer, stripe, bit_rate = options["buffer"], options["stripe"], options["bit_rate"]
    if streams is not None:
        _reverse(array, streams, bit_rate, buffer, stripe=stripe, link=link, as_json=as_json)
        return
    found = capacity(array, bit_rate, buffer, stripe=stripe, link_rate=link)
    table = [
        (of, capacity(array, of, buffer, stripe=stripe, link_rate=link)) for of in _TABLE_RATES
    ]
    if as_json:
        print_json(
            dataclasses.asdict(found)
            | {
                "disks": len(array),
                "bit_rate_bps": bit_rate * 8,
                "buffer_seconds": buffer,
                "stripe": stripe,
                "table": [
                    {"bit_rate_bps": of * 8, "streams": row.streams, "limit": row.limit}
                    for of, row in table
                ],
            }
        )
        return
    click.echo(
        f"{found.streams} streams of {format_rate(bit_rate)} from {_count_disks(len(array))}; "
        f"limited by the {found.limit}"
    )
    shown = Table(box=None, pad_edge=False)
    for heading in ("bit rate", "streams", "limited by"):
        shown.add_column(heading, justify="right")
    for of, row in table:
        shown.add_row(format_rate(of), str(row.streams), row.limit)
    Console().print(shown)


def _reverse(
    array: list[DiskFigures],
    streams: int,
    bit_rate: float,
    buffer: float,
    *,
    stripe: int,
    link: float | None,
    as_json: bool,
) -> None:
    # Disks of several kinds: as many of each as there are now.
    disks = disks_needed(streams, _mean(array), bit_rate, buffer, stripe=stripe)
    fits = link is None or streams * bit_rate <= link
    if as_json:
        print_json({"disks": disks, "streams": streams, "link_suffices": fits})
        return
    click.echo(f"{_count_disks(disks)} for {streams} streams of {format_rate(bit_rate)}")
    if not fits:
        click.echo(
            f"the link is too slow for them: they take {format_rate(streams * bit_rate)} of payload"
        )


def _mean(array: list[DiskFigures]) -> DiskFigures:
    """A disk that takes as long as these do on the mean."""
    return DiskFigures(
        float(np.mean([disk.access_seconds for disk in array])),
        1 / float(np.mean([1 / disk.rate for disk in array])),
    )


def _count_disks(number: int) -> str:
    return "1 disk" if number == 1 else f"{number} disks"


def _array(
    access: float | None, rate: float | None, calibration: Path | None, disks: int | None
) -> list[DiskFigures]:
    """The disks as described by the options.

    Raises:
        UsageError: options that do not go together, or a calibration that cannot be read.
    """
    if calibration is None:
        figures = DiskFigures(
            DEFAULT_ACCESS_SECONDS if access is None else access,
            DEFAULT_RATE if rate is None else rate,
        )
        return [figures] * (8 if disks is None else disks)
    if access is not None or rate is not None:
        raise UsageError("--calibration says what --access and --rate say: give one or the other")
    measured = _read_calibration(calibration)
    # More disks than were measured: more of the same, in turn.
    return [measured[n % len(measured)] for n in range(len(measured) if disks is None else disks)]


def _read_calibration(path: Path) -> list[DiskFigures]:
    try:
        with path.open("rb") as file:
            content = json.loads(file.read(_MAX_CALIBRATION_BYTES))
        figures = [
            DiskFigures(float(row["access_seconds"]), float(row["rate"]))
            for row in content["disks"]
        ]
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise UsageError(
            f"{path} is no calibration: write one with 'vodserver calibrate DIR --json'"
        ) from error
    if not figures:
        raise UsageError(f"{path} holds no disks: calibrate at least one directory")
    return figures


@cli.command("plan")
@click.option("--films", type=click.IntRange(1, 10_000_000), required=True, help="How many.")
@click.option(
    "--duration", type=SECONDS, default="100min", show_default=True, help="Length of a film."
)
@click.option("--bit-rate", type=RATE, default="6Mbps", show_default=True, help="Of a film.")
@click.option(
    "--viewers", type=click.IntRange(1, 10_000_000), required=True, help="Streams at a time."
)
@click.option("--disk-size", type=SIZE, default="4TB", show_default=True, help="Of one disk.")
@click.option("--access", type=SECONDS, help="Mean access time of a disk.  [default: 17ms]")
@click.option("--rate", type=RATE, help="Sequential rate of a disk.  [default: 525Mbps]")
@click.option(
    "--calibration", type=click.Path(path_type=Path), help="Output of 'calibrate --json'."
)
@click.option(
    "--buffer", type=SECONDS, default="5s", show_default=True, help="Playing time of an extent."
)
@click.option(
    "--busy",
    type=click.IntRange(1, 100),
    default=ServeSettings().disk_busy_percent,
    show_default=True,
    help="Per cent of a disk's time for streams, as the server admits them.",
)
@json_option
def plan_command(as_json: bool, **options: Any) -> None:
    """Say how many disks films and viewers take.

    For each placement: disks, streams that they feed with viewers choosing films at random, how
    many without one disk, and how many films are lost with it or with two. rda-3 is rda with three
    copies ('init --copies 3').

    \b
    Example:
      vodserver plan --films 500 --viewers 1000 --bit-rate 6Mbps --disk-size 4TB
    """
    figures = _mean(_array(options["access"], options["rate"], options["calibration"], None))
    wish = Wish(
        films=options["films"],
        film_seconds=options["duration"],
        stream_rate=options["bit_rate"],
        viewers=options["viewers"],
        buffer_seconds=options["buffer"],
        disk=figures,
        disk_bytes=options["disk_size"],
        busy_share=options["busy"] / 100,
    )
    plans = [plan(name, wish) for name in PLACEMENTS]
    if as_json:
        print_json({"plans": [dataclasses.asdict(one) for one in plans]})
        return
    shown = Table(box=None, pad_edge=False)
    headings = (
        *("", "disks", "for films", "for viewers", "streams", "less a disk"),
        *("films lost", "by two"),
    )
    for heading in headings:
        shown.add_column(heading, justify="right" if heading else "left")
    for one in plans:
        numbers = (
            *(one.disks, one.disks_for_films, one.disks_for_viewers),
            *(one.streams_random, one.streams_after_failure, one.films_lost),
            f"{one.films_lost_by_two:.3g}",
        )
        shown.add_row(one.placement, *map(str, numbers))
    Console().print(shown)


@cli.command("calibrate")
@click.argument(
    "directories", metavar="DIR...", nargs=-1, required=True, type=click.Path(path_type=Path)
)
@click.option(
    "--seconds", type=click.FloatRange(1, 3600), default=10.0, show_default=True, help="For each."
)
@click.option(
    "--size",
    type=SIZE,
    default="1GiB",
    show_default=True,
    help="Of the scratch file; smaller where space is short.",
)
@json_option
def calibrate_command(
    directories: tuple[Path, ...], seconds: float, size: float, as_json: bool
) -> None:
    """Measure access time and rate of disks.

    Writes a scratch file into each DIR, reads it in random places, and leaves nothing behind.

    \b
    Example:
      vodserver calibrate /mnt/a /mnt/b --json > disks.json
      vodserver model --calibration disks.json --bit-rate 6Mbps
    """
    signal.signal(signal.SIGTERM, interrupt)
    console = Console(stderr=True)
    hidden = as_json or not console.is_terminal
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    found = []
    with Progress(*columns, console=console, disable=hidden, transient=True) as bar:
        for directory in directories:
            task = bar.add_task(f"{directory}", total=1.0)

            def progress(what: str, part: float, *, of: Path = directory, at: Any = task) -> None:
                bar.update(at, description=f"{of}: {what}", completed=part)

            found.append(
                measure(
                    directory,
                    seconds=seconds,
                    size=int(size),
                    rng=np.random.default_rng(),
                    progress=progress,
                )
            )
    if as_json:
        print_json({"disks": [_describe(one) for one in found]})
        return
    for one in found:
        _show(one)


def _describe(measured: Measurement) -> dict[str, Any]:
    fit = measured.fit
    fastest = fit.rate_interval[1]
    return {
        "path": str(measured.path),
        "access_seconds": fit.access_seconds,
        "access_interval": fit.access_interval,
        "rate": fit.rate,
        "rate_interval": [fit.rate_interval[0], fastest if math.isfinite(fastest) else None],
        "reads": fit.reads,
        "outliers": fit.outliers,
        "scratch_bytes": measured.scratch_bytes,
        "direct": measured.direct,
    }


def _show(measured: Measurement) -> None:
    fit = measured.fit
    low, high = (1000 * bound for bound in fit.access_interval)
    slow, fast = (format_rate(r) if math.isfinite(r) else "any" for r in fit.rate_interval)
    how = "past the page cache" if measured.direct else "dropped from the page cache before"
    click.echo(f"{measured.path}:")
    click.echo(f"  access time  {1000 * fit.access_seconds:.3g} ms ({low:.3g} to {high:.3g})")
    click.echo(f"  rate         {format_rate(fit.rate)} ({slow} to {fast})")
    click.echo(
        f"  {fit.reads} reads of {format_bytes(measured.scratch_bytes)}, {how}; "
        f"{fit.outliers} left out; intervals of 95 %"
    )
