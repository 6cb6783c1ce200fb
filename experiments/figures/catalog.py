"""Every figure that the laboratory makes, by name: the source's, and some of our own."""

from collections.abc import Mapping
from typing import Final

from experiments.arrays.catalog import ARRAY_FIGURES
from experiments.baselines.comparison import COMPARISON
from experiments.errors import ScenarioError
from experiments.figures.conditions import CONDITION_FIGURES
from experiments.figures.figure import Figure
from experiments.figures.neighbours import NEIGHBOURS
from experiments.figures.paths import PATHS, PATHS_STARTS
from experiments.figures.policies import POLICY_FIGURES

__all__ = ["FIGURES", "KNOWN", "find_figures"]

FIGURES: Final[Mapping[str, Figure]] = {
    figure.name: figure for figure in (*POLICY_FIGURES, *CONDITION_FIGURES)
}
"""The source's."""
KNOWN: Final[Mapping[str, Figure]] = {
    **FIGURES,
    **{figure.name: figure for figure in (NEIGHBOURS, PATHS, PATHS_STARTS, COMPARISON)},
}
"""Those, and our own, which have to be asked for by name."""


def find_figures(name: str) -> tuple[Figure, ...]:
    """The figure of a name; "all" is every one of the source's.

    Raises:
        ScenarioError: there is none of that name.
    """
    if name == "all":
        return tuple(FIGURES.values())
    if name not in KNOWN:
        raise ScenarioError(
            f"there is no figure '{name}': choose {', '.join(KNOWN)} or all;"
            f" of disk arrays {', '.join(ARRAY_FIGURES)} or arrays"
        )
    return (KNOWN[name],)
