"""Made-up results of arrays."""

from experiments.arrays.result import conclude


def make_result(incidents, refused=0):
    """A result of streams that starved for so long each."""
    return conclude(
        incidents=incidents,
        responses=[0.1],
        refused=refused,
        lost=0,
        reads=1,
        busy_share=0.0,
        hit_share=0.0,
        model_streams=12.0,
    )
