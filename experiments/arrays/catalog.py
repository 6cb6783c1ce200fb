"""Every figure of disk arrays, by name: the source's of chapters 3 and 4, and ours."""

from collections.abc import Mapping
from typing import Final

from experiments.arrays.hotspot_figures import HOTSPOT_FIGURES
from experiments.arrays.model_figures import MODEL_FIGURES
from experiments.arrays.own_figures import OWN_FIGURES
from experiments.arrays.piece_figures import PIECE_FIGURES
from experiments.arrays.sick_figures import SICK_FIGURES
from experiments.figures.figure import Figure

__all__ = ["ARRAY_FIGURES"]

ARRAY_FIGURES: Final[Mapping[str, Figure]] = {
    figure.name: figure
    for figure in (
        *MODEL_FIGURES,
        *HOTSPOT_FIGURES,
        *SICK_FIGURES,
        *OWN_FIGURES,
        *PIECE_FIGURES,
    )
}
