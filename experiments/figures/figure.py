"""What a figure is: cells of a grid of scenarios, what is plotted of them, and what is claimed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from experiments.bound import Behaviour
from experiments.errors import MissingResultError
from experiments.figures.results import Results
from experiments.swarms.presets import scaled

__all__ = ["PICKERS", "UPLOADS", "Claim", "Figure", "FigureCell", "Verdict", "judge", "make_cell"]

PICKERS: Final = ("rarest-first", "in-order", "beta", "hybrid")
UPLOADS: Final[Mapping[str, float]] = {"1 Mb/s": 0.5, "1.5 Mb/s": 0.75, "2 Mb/s": 1.0}
"""Upload caps, and their shares of the film's bit rate."""


@dataclass(frozen=True, slots=True)
class FigureCell:
    """One scenario of a figure.

    Attributes:
        name: a word for it, for files; the same scenario has the same name in every figure.
        scenario: what is run, with each seed: a swarm's, or an array's.
        axes: where it stands in the figure, such as picker = hybrid.
    """

    name: str
    scenario: Any
    axes: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a claim was reproduced.

    Attributes:
        reproduced: None where these results cannot tell.
        number: the figure that decides; None if there is none.
        words: that figure in words.
    """

    reproduced: bool | None
    number: float | None
    words: str

    @property
    def label(self) -> str:
        """In a word or two."""
        if self.reproduced is None:
            return "cannot tell"
        return "reproduced" if self.reproduced else "not"


@dataclass(frozen=True, slots=True)
class Claim:
    """Something that the source says of a figure.

    Attributes:
        text: in short, with its number.
        test: whether results show it; may raise MissingResultError.
    """

    text: str
    test: Callable[[Results], Verdict]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A figure of the source."""

    name: str
    """Its number, or a word."""
    title: str
    """What it is about."""
    x: tuple[str, ...]
    """The axes along the abscissa, joined."""
    series: str
    """The axis that is told apart by colour."""
    cells: Callable[[str], tuple[FigureCell, ...]]
    """Its cells at a scale."""
    claims: Sequence[Claim]
    """What the source says of it."""
    field: str = "offload"
    """What is plotted: a field of a result."""
    level: str | None = None
    """What is dashed above each bar; None: the bound, where the offload is plotted."""
    lines: bool = False
    """Lines over a number, and not bars. A cell that has no place on the abscissa is a level."""
    note: str = ""
    """What a reader must know."""


def judge(claim: Claim, results: Results) -> Verdict:
    """Whether results show a claim."""
    try:
        return claim.test(results)
    except MissingResultError as error:
        return Verdict(None, None, str(error))


def make_cell(
    scale: str,
    picker: str,
    upload: str = "2 Mb/s",
    behaviour: Behaviour = Behaviour.STREAMING,
    *,
    extra: Mapping[str, str] | None = None,
    changes: Mapping[str, Any] | None = None,
) -> FigureCell:
    """A cell of the source's scenario.

    Args:
        scale: "source", "compressed" or "quick".
        picker: which one.
        upload: one of `UPLOADS`.
        behaviour: when viewers leave.
        extra: further axes of the figure.
        changes: further fields of the scenario.
    """
    extra, changes = extra or {}, changes or {}
    # What changes nothing has no part in the name, so that figures can share the cell's runs.
    words = [picker, upload, str(behaviour), *(extra.values() if changes else ())]
    name = "-".join(
        word.lower().replace(" mb/s", "mbps").replace(" %", "pct").replace(" ", "-")
        for word in words
    )
    name = "".join(c for c in name if c.isalnum() or c in "._-")
    scenario = scaled(scale, upload=UPLOADS[upload], picker=picker)
    return FigureCell(
        name,
        scenario.with_(name=name, behaviour=behaviour, **changes),
        {"picker": picker, "upload": upload, "behaviour": str(behaviour), **extra},
    )
