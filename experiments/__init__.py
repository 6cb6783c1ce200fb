"""The laboratory: films, scenarios, bounds and whole swarms of real processes, measured."""

import os as _os

if _os.environ.get("TOAST_LAB_COMPILED"):
    # Before anything else of ours is loaded, or it would be too late (see experiments.compiled).
    from pathlib import Path as _Path

    from experiments.compiled.loading import ENVIRONMENT as _ENVIRONMENT
    from experiments.compiled.loading import load as _load

    _load(_Path(_os.environ[_ENVIRONMENT]))
