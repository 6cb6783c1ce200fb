"""The engines by name; made only when they are asked for, since each needs a room of its own."""

from collections.abc import Callable
from importlib import import_module
from typing import Final, cast

from experiments.errors import LabError
from experiments.swarms.engine import Engine

__all__ = ["ENGINES", "MakeEngine", "create_engine"]

ENGINES: Final = ("sim", "real")
MakeEngine = Callable[[], Engine]


def create_engine(name: str) -> Engine:
    """An engine by its name, one of `ENGINES`.

    Raises:
        LabError: there is none of that name.
    """
    if name not in ENGINES:
        raise LabError(f"there is no engine '{name}': choose {' or '.join(ENGINES)}")
    try:
        module = import_module(f"experiments.{name}.engine")
    except ModuleNotFoundError as error:
        raise LabError(f"the engine '{name}' is not installed: {error}") from error
    if name == "sim":
        return cast("Engine", module.SimEngine())
    return cast("Engine", module.RealEngine())
