"""Policies by name: how the command line, scenarios and the simulator ask for them."""

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from toast.common.errors import UsageError

__all__ = ["Registry"]


T = TypeVar("T")


class Registry(Generic[T]):
    """Makes policies of one kind from their names and parameters.

    Args:
        kind: what one of them is called in messages.
        error: raised for a name that nobody has, and for parameters that do not fit.
    """

    def __init__(self, kind: str, error: type[UsageError]) -> None:
        self._kind = kind
        self._error = error
        self._factories: dict[str, Callable[..., T]] = {}

    def register(self, name: str, factory: Callable[..., T]) -> None:
        """Make a policy known under a name."""
        self._factories[name] = factory

    def names(self) -> tuple[str, ...]:
        """The known names, sorted."""
        return tuple(sorted(self._factories))

    def create(self, name: str, **params: Any) -> T:
        """Make a policy.

        Raises:
            UsageError: of the kind's own sort: no such name, or not its parameters.
        """
        # A command line writes in-order where Python writes in_order.
        factory = self._factories.get(name.replace("_", "-"))
        if factory is None:
            known = ", ".join(self.names())
            raise self._error(f"there is no {self._kind} '{name}': choose one of {known}")
        try:
            return factory(**params)
        except TypeError as error:
            given = ", ".join(params) or "none"
            raise self._error(f"{self._kind} '{name}' does not take these: {given}") from error
